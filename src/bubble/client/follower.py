"""One reader of a thread: a cursor, a bounded buffer, and somebody who takes from it. No I/O.

*Theory of operation.* `next_seq` is the first event that is not yet in the buffer; it moves only when an event goes in, so whatever happens
to sockets, following again from `next_seq` loses nothing, and an event below it is a repeat. A full buffer makes the follower lag: it then
wants nothing from the server, which drops nothing of its own, and wants again once most of the buffer has been taken.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from bubble.client.wire import is_known
from bubble.protocol.events import SequencedEvent

__all__ = ["Follower", "Gap", "SubscriptionStatistics"]

# What taking brings the buffer down to before more is wanted, as a part of what it holds.
_REFILL_AT = 4


class Gap(Exception):
    """The server left out an event: the connection is not to be trusted any longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionStatistics:
    """Counts: `received` events; `buffered` ones that nobody took yet, with `buffered_bytes`; how often it was `opened`, how often it
    `lagged` (had to stop following until its reader caught up).
    """

    received: int
    buffered: int
    buffered_bytes: int
    opened: int
    lagged: int


class Follower:
    """Use `accept` and its like from the socket's side, `take` and `wait` from the reader's."""

    def __init__(
        self, thread_id: str, *, from_seq: int, max_events: int, max_bytes: int, keep_unknown: bool = False
    ) -> None:
        self.thread_id = thread_id
        self.next_seq = from_seq
        self.through_seq: int | None = None
        self.error: BaseException | None = None
        self.on_change: Callable[[], None] = _nothing
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._keep_unknown = keep_unknown
        self._buffer: deque[SequencedEvent] = deque()
        self._bytes = 0
        self._is_lagging = False
        self._news = asyncio.Event()
        self._received = self._opened = self._lagged = 0

    @property
    def wants(self) -> bool:
        """Whether it wants to follow on the wire right now."""
        return self.error is None and not self._is_lagging

    def statistics(self) -> SubscriptionStatistics:
        """Counts since the beginning."""
        return SubscriptionStatistics(
            received=self._received,
            buffered=len(self._buffer),
            buffered_bytes=self._bytes,
            opened=self._opened,
            lagged=self._lagged,
        )

    # --- the socket's side ------------------------------------------------------------------------------------------------------

    def opened(self, through_seq: int) -> None:
        """Registered. What comes is `next_seq`, or what is live if that lies beyond the head (protocol, section 7)."""
        self.next_seq = min(self.next_seq, through_seq + 1)
        if self.through_seq is None:
            self.through_seq = through_seq
        self._opened += 1
        self._news.set()

    def accept(self, event: SequencedEvent) -> bool:
        """Takes an event in, or passes over a repeat; False if there is no room, and then following has to begin anew.

        Raises `Gap` if an event before it is missing.
        """
        if event.seq < self.next_seq:
            return True
        if not self.wants:
            return False
        if event.seq > self.next_seq:
            raise Gap(f'Thread "{self.thread_id}": event {event.seq} came where {self.next_seq} was due.')
        if len(self._buffer) >= self._max_events or (self._buffer and self._bytes + len(event.text) > self._max_bytes):
            self._is_lagging = True
            self._lagged += 1
            self.on_change()
            return False
        self.next_seq += 1
        self._received += 1
        if self._keep_unknown or is_known(event):
            self._buffer.append(event)
            self._bytes += len(event.text)
            self._news.set()
        return True

    def fail(self, error: BaseException) -> None:
        """Ends it: `take` raises `error` once the buffer is empty."""
        if self.error is None:
            self.error = error
            self._news.set()
            self.on_change()

    # --- the reader's side ------------------------------------------------------------------------------------------------------

    def take(self) -> SequencedEvent | None:
        """The next event, None if there is none yet. Raises what ended the follower, after its last event."""
        if not self._buffer:
            if self.error is not None:
                raise self.error
            return None
        event = self._buffer.popleft()
        self._bytes -= len(event.text)
        if (
            self._is_lagging
            and len(self._buffer) * _REFILL_AT <= self._max_events
            and self._bytes * _REFILL_AT <= self._max_bytes
        ):
            self._is_lagging = False
            self.on_change()
        return event

    def take_all(self) -> list[SequencedEvent]:
        """All that is in the buffer, maybe nothing. Raises like `take`."""
        events: list[SequencedEvent] = []
        while (self._buffer or not events) and (event := self.take()) is not None:
            events.append(event)
        return events

    async def wait(self) -> None:
        """Returns when there is something new: an event, the opening, the end; or when `wake` is called."""
        self._news.clear()
        await self._news.wait()

    def wake(self) -> None:
        """Lets `wait` return though there is nothing new."""
        self._news.set()


def _nothing() -> None:
    pass
