"""What one socket carries: a thread, or the caller's grants. Each is a small machine between what is wanted and what the server knows.

            due() → subscribe                opened / snapshot
    absent ──────────────────────▶ opening ─────────────────────▶ open
      ▲ ▲                             │                             │
      │ └──────── error, closed ──────┘                             │
      └───── due() → unsubscribe, or closed by the server, ─────────┘
             or the socket is gone (from any state)

At most one subscribe is unanswered at a time, so an answer always belongs to the one that was sent last. An unsubscribe is not answered;
what still arrives of the old subscription finds the machine `absent` or `opening`, and is passed over (spec 2, "Closing a
Subscription").
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal, Protocol

from bubble.client.backoff import Backoff
from bubble.client.follower import Follower
from bubble.client.wire import stored_event
from bubble.protocol.errors import BubbleError
from bubble.protocol.frames import ClientFrame, ThreadSubscribe, ThreadUnsubscribe

__all__ = ["PASSING", "Channel", "ThreadChannel"]

# Reasons that pass by themselves: the subscription is opened again after a while.
PASSING = frozenset({"unavailable", "internal", "rate_limited"})

WireState = Literal["absent", "opening", "open"]


class Channel(Protocol):
    """One line on a socket."""

    @property
    def wire(self) -> WireState:
        """What the server knows of it, as far as can be told here."""

    @property
    def is_idle(self) -> bool:
        """Whether nobody wants it and the server knows nothing of it."""

    def due(self) -> ClientFrame | None:
        """The next frame to send towards what is wanted; it counts as sent."""

    def disconnected(self) -> None:
        """The socket is gone, and what the server knew with it."""

    def fail(self, error: BaseException) -> None:
        """It cannot go on: tells whoever wanted it, and forgets them."""


class ThreadChannel:
    """One thread on one socket. `touched` is called when `due` may have something to say."""

    def __init__(self, thread_id: str, *, backoff: Backoff, touched: Callable[[ThreadChannel], None]) -> None:
        self.thread_id = thread_id
        self.wire: WireState = "absent"
        self._follower: Follower | None = None
        self._sent_for: Follower | None = None
        self._backoff = backoff
        self._touched = touched
        self._cause: BubbleError | None = None
        self._failures = 0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_taken(self) -> bool:
        """Whether somebody follows here."""
        return self._follower is not None

    @property
    def is_idle(self) -> bool:
        """Whether nobody wants it and the server knows nothing of it."""
        return self._follower is None and self.wire == "absent"

    def attach(self, follower: Follower) -> None:
        """`follower` follows here from now on."""
        self._follower = follower
        self._failures = 0
        self._stop_waiting()
        follower.on_change = self._changed
        self._touched(self)

    def detach(self, follower: Follower) -> None:
        """`follower` no longer follows here."""
        if self._follower is follower:
            self._follower = None
            self._stop_waiting()
            self._touched(self)

    def due(self) -> ClientFrame | None:
        """The next frame to send towards what is wanted; it counts as sent."""
        wanted = self._follower if self._follower is not None and self._follower.wants and self._timer is None else None
        if self.wire == "open" and (wanted is None or wanted is not self._sent_for):
            self._forget()
            return ThreadUnsubscribe(thread_id=self.thread_id)
        if self.wire == "absent" and wanted is not None:
            self.wire, self._sent_for = "opening", wanted
            return ThreadSubscribe(thread_id=self.thread_id, from_seq=wanted.next_seq)
        return None

    # --- what the server says ---------------------------------------------------------------------------------------------------

    def opened(self, through_seq: int) -> None:
        """`thread.subscription_opened`."""
        self.wire = "open"
        self._cause = None
        if self._sent_for is not None and self._sent_for is self._follower:
            self._follower.opened(through_seq)
        self._touched(self)

    def event(self, text: bytes) -> None:
        """`thread.event`. Raises `Gap`."""
        follower = self._follower
        if self.wire == "open" and follower is not None and follower is self._sent_for:
            self._failures = 0
            if not follower.accept(stored_event(text)):
                # This subscription has run ahead of its reader: whatever the reader does next, it is of no use any more.
                self._sent_for = None

    def error(self, error: BubbleError) -> None:
        """A scoped `error`: the refusal of a subscribe, or the explanation of the `subscription_closed` that follows."""
        if self.wire == "opening":
            self._ended(error)
        else:
            self._cause = error

    def closed(self, error: BubbleError) -> None:
        """`thread.subscription_closed`; the explanation that came before it says more than its reason."""
        if self.wire == "absent":
            return
        explained = self._cause is not None and self._cause.code == error.code
        self._ended(self._cause if explained and self._cause is not None else error)

    def disconnected(self) -> None:
        """The socket is gone, and what the server knew with it."""
        self._forget()
        self._stop_waiting()
        self._touched(self)

    def fail(self, error: BaseException) -> None:
        """It cannot go on: tells whoever wanted it, and forgets them."""
        follower, self._follower = self._follower, None
        self._stop_waiting()
        if follower is not None:
            follower.on_change = _nothing
            follower.fail(error)

    def _ended(self, error: BubbleError) -> None:
        concerns_the_follower = self._sent_for is self._follower
        self._forget()
        if concerns_the_follower and self._follower is not None:
            if error.code in PASSING:
                self._wait()
            else:
                self.fail(error)
        self._touched(self)

    def _forget(self) -> None:
        self.wire, self._sent_for, self._cause = "absent", None, None

    def _changed(self) -> None:
        self._touched(self)

    def _wait(self) -> None:
        self._stop_waiting()
        self._timer = asyncio.get_running_loop().call_later(self._backoff.wait(self._failures), self._waited)
        self._failures += 1

    def _waited(self) -> None:
        self._timer = None
        self._touched(self)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _nothing() -> None:
    pass
