"""Carries out what a WebSocket session asks, frame after frame in the order they came, and says what the hub has to say.

*Theory of operation.* A frame that needs no waiting, which is every append, is carried out at once. One that has to wait (subscribe,
grants, auth.refresh) is carried out by one task, and every later frame waits in line behind it, so order is kept. While the line is long,
while the peer leaves our answers unread, or while it sends faster than its rate, nothing more is read from it: the pressure goes back to
the sender and nothing is lost.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from msgspec import UNSET

from bubble.auth.identity import Identity
from bubble.hub import Chunk, Connection, Encoding
from bubble.protocol.errors import (
    BubbleError,
    InternalError,
    InvalidRequest,
    PayloadTooLarge,
    Unauthenticated,
)
from bubble.protocol.frames import (
    AuthRefresh,
    ErrorFrame,
    GrantsChanged,
    GrantsSnapshot,
    GrantsSubscribe,
    GrantsUnsubscribe,
    ServerFrame,
    SubscriptionClosed,
    SubscriptionOpened,
    ThreadSubscribe,
    ThreadUnsubscribe,
    encode_frame,
)
from bubble.protocol.resources import Grant
from bubble.server.buckets import TokenBucket
from bubble.server.services import Services
from bubble.server.websocket.session import Append, Intent, Refusal, read_intent
from bubble.server.websocket.socket import Socket
from bubble.store.commands import AppendCommand, AppendResult, IdempotencyKey
from bubble.store.notices import GrantChange

__all__ = ["CLOSE_DRAINING", "CLOSE_TOO_MANY", "CLOSE_UNAUTHENTICATED", "Driver"]

CLOSE_DRAINING = 1012
CLOSE_UNAUTHENTICATED = 4401
CLOSE_TOO_MANY = 4429

LINE_LENGTH = 256
ANSWER_BYTES = 256 * 1024
WINDOW_FRAMES = 8_192
WINDOW_BYTES = 8 * 1024 * 1024
MARK_FRAMES = 512
MARK_BYTES = 512 * 1024
OTHER_FRAMES_PER_SECOND = 1_000.0
OTHER_FRAMES_BURST = 10_000.0


class _Window:
    """How much of one socket's appends waits for the store.

    Every so often one append is marked, and its commit acknowledges all before it.
    """

    __slots__ = ("bytes", "frames", "unmarked_bytes", "unmarked_frames")

    def __init__(self) -> None:
        self.frames = self.bytes = self.unmarked_frames = self.unmarked_bytes = 0

    def add(self, size: int) -> tuple[int, int] | None:
        """Counts one append; what its mark will acknowledge, if it is to be marked."""
        self.unmarked_frames += 1
        self.unmarked_bytes += size
        if self.unmarked_frames < MARK_FRAMES and self.unmarked_bytes < MARK_BYTES:
            return None
        marked = (self.unmarked_frames, self.unmarked_bytes)
        self.frames += marked[0]
        self.bytes += marked[1]
        self.unmarked_frames = self.unmarked_bytes = 0
        return marked

    def acknowledge(self, marked: tuple[int, int]) -> None:
        """Everything up to a mark has been decided."""
        self.frames -= marked[0]
        self.bytes -= marked[1]

    @property
    def is_full(self) -> bool:
        """Whether the store is far behind."""
        return self.frames >= WINDOW_FRAMES or self.bytes >= WINDOW_BYTES


def _ignored(result: AppendResult) -> None:
    """Before the first append."""


class Driver:
    """One WebSocket of one principal: `Receiver` for its socket, `Sink` for the hub."""

    def __init__(
        self, services: Services, socket: Socket, identity: Identity, *, forget: Callable[[], None] | None = None
    ) -> None:
        self.encoding: Encoding = socket.encoding
        self.max_message = services.limits.frame_bytes
        self._services = services
        self._socket = socket
        self._forget = forget
        self._clock = services.hub.time
        self._line: deque[Intent] = deque()
        self._is_waiting = False
        self._answered = 0
        self._window = _Window()
        self._plain_thread_id = ""
        self._plain_done: Callable[[AppendResult], None] = _ignored
        self._pauses: set[str] = set()
        rates = services.settings.rates
        now = self._clock()
        self._appends = TokenBucket(rate=rates.frames_per_second, burst=rates.frames_burst, now=now)
        self._others = TokenBucket(rate=OTHER_FRAMES_PER_SECOND, burst=OTHER_FRAMES_BURST, now=now)
        self.connection: Connection = services.hub.connect(self, identity)

    def gone(self) -> None:
        """The peer is gone."""
        self.connection.close()
        if self._forget is not None:
            self._forget()

    # --- from the socket --------------------------------------------------------------------------------------------------------

    def message(self, text: bytes) -> None:
        """One frame of the client."""
        if self.connection.is_closed:
            return
        intent = read_intent(text, self._services.limits)
        if isinstance(intent, Append) and not self._is_waiting:
            self._append(intent, len(text))
        else:
            self._other(intent)

    def binary(self, data: bytes) -> None:
        """Binary frames are no part of the protocol."""
        self._other(
            Refusal(InvalidRequest(f"Binary frames are not part of the protocol; {len(data)} bytes were discarded."))
        )

    def oversized(self, size: int) -> None:
        """A frame over the limit was read and discarded."""
        limit = self._services.limits.frame_bytes
        self._other(
            Refusal(PayloadTooLarge(f"A frame has at most {limit} bytes; one of {size} or more was discarded."))
        )

    def drained(self) -> None:
        """The peer has taken what was waiting."""
        self._answered = 0
        self._resume("answers")
        self.connection.pump()

    def _pause(self, reason: str) -> None:
        if not self._pauses:
            self._socket.pause_reading()
        self._pauses.add(reason)

    def _resume(self, reason: str) -> None:
        if reason in self._pauses:
            self._pauses.discard(reason)
            if not self._pauses:
                self._socket.resume_reading()

    # --- appends ----------------------------------------------------------------------------------------------------------------

    def _append(self, intent: Append, size: int) -> None:
        key = None
        if intent.key is not None:
            digest = hashlib.sha256(intent.digest_source).digest()
            key = IdempotencyKey(self.connection.guard.principal_id, intent.key, digest)
        marked = self._window.add(size)
        done = self._done(intent, marked)
        command = AppendCommand(
            thread_id=intent.thread_id,
            events=(intent.event,),
            done=done,
            guard=self.connection.guard,
            idempotency=key,
            failures_only=marked is None,
        )
        try:
            self._services.store.submit(command)
        except BubbleError as error:
            done(error)
        if self._window.is_full:
            self._pause("store")
        if not self._appends.has_one() and self._appends.owe(self._clock()) and "rate" not in self._pauses:
            self._pause("rate")
            self._resume_at_rate()

    def _done(self, intent: Append, marked: tuple[int, int] | None) -> Callable[[AppendResult], None]:
        if marked is not None or intent.ref is not None:
            return partial(self._appended, intent.thread_id, intent.ref, marked)
        # Of a stream to one thread nothing tells the outcomes apart: one callback serves all.
        if self._plain_thread_id != intent.thread_id:
            self._plain_thread_id = intent.thread_id
            self._plain_done = partial(self._appended, intent.thread_id, None, None)
        return self._plain_done

    def _resume_at_rate(self) -> None:
        """Reads on as soon as what was taken beyond the rate is paid for. One read may have held many frames."""
        wait = self._appends.wait(self._clock())
        if wait:
            self._services.hub.call_later(wait, self._resume_at_rate)
        else:
            self._resume("rate")

    def _appended(self, thread_id: str, ref: str | None, marked: tuple[int, int] | None, result: AppendResult) -> None:
        if marked is not None:
            self._window.acknowledge(marked)
            if not self._window.is_full:
                self._resume("store")
        if isinstance(result, BubbleError):
            self._answer(result, thread_id, ref)

    # --- everything else --------------------------------------------------------------------------------------------------------

    def _other(self, intent: Intent) -> None:
        if self.connection.is_closed:
            return
        if self._is_waiting:
            self._line.append(intent)
            if len(self._line) >= LINE_LENGTH:
                self._pause("line")
            return
        if not self._others.take(self._clock()):
            self._socket.close(CLOSE_TOO_MANY, "1")
            return
        if isinstance(intent, Refusal):
            self._answer(intent.error, intent.thread_id, intent.ref)
        elif isinstance(intent, ThreadUnsubscribe):
            self.connection.unsubscribe(intent.thread_id)
        elif isinstance(intent, GrantsUnsubscribe):
            self.connection.unsubscribe_grants()
        else:
            self._is_waiting = True
            self._services.hub.tasks.spawn(self._carry_out(intent))

    async def _carry_out(self, intent: Intent) -> None:
        try:
            await self._wait_for(intent)
        finally:
            self._is_waiting = False
        while self._line and not self._is_waiting and not self.connection.is_closed:
            following = self._line.popleft()
            if isinstance(following, Append):
                self._append(following, len(following.event.text))
            else:
                self._other(following)
        if len(self._line) < LINE_LENGTH:
            self._resume("line")

    async def _wait_for(self, intent: Intent) -> None:
        thread_id = intent.thread_id if isinstance(intent, ThreadSubscribe) else None
        try:
            if isinstance(intent, ThreadSubscribe):
                await self.connection.subscribe(intent.thread_id, from_seq=intent.from_seq)
            elif isinstance(intent, GrantsSubscribe):
                await self.connection.subscribe_grants()
            elif isinstance(intent, AuthRefresh):
                await self._refresh(intent.token)
        except BubbleError as error:
            self._answer(error, thread_id, None)
        except Exception as error:
            self._answer(InternalError("The server failed at this frame."), thread_id, None)
            raise error from None

    async def _refresh(self, token: str) -> None:
        identity = await self._services.authenticator.refresh(self.connection.identity, token)
        self.connection.refresh(identity, self._services.policy.guard(identity))

    # --- to the peer ------------------------------------------------------------------------------------------------------------

    def _answer(self, error: BubbleError, thread_id: str | None, ref: str | None) -> None:
        frame = ErrorFrame(
            code=error.code,
            message=error.message,
            thread_id=UNSET if thread_id is None else thread_id,
            ref=UNSET if ref is None else ref,
            details=UNSET if error.details is None else error.details,
        )
        self._send(frame)

    def _send(self, frame: ServerFrame) -> None:
        payload = encode_frame(frame)
        self._socket.send_text(payload)
        self._answered += len(payload)
        if self._answered > ANSWER_BYTES and not self._socket.is_writable():
            self._pause("answers")

    def write(self, chunk: Chunk) -> None:
        """Events of a subscription."""
        self._socket.write_chunk(chunk)

    def is_writable(self) -> bool:
        """Whether the peer keeps up."""
        return self._socket.is_writable()

    def subscription_opened(self, thread_id: str, through_seq: int) -> None:
        """Before the subscription's first event."""
        self._send(SubscriptionOpened(thread_id=thread_id, through_seq=through_seq))

    def subscription_closed(self, thread_id: str, error: BubbleError) -> None:
        """The error explains, the closed frame ends (spec 2, "Closing a Subscription")."""
        self._answer(error, thread_id, None)
        self._send(SubscriptionClosed(thread_id=thread_id, reason=error.code))

    def grants_snapshot(self, grants: Sequence[Grant]) -> None:
        """All grants of the principal."""
        self._send(GrantsSnapshot(grants=list(grants)))

    def grants_changed(self, change: GrantChange, grant: Grant) -> None:
        """One grant changed."""
        self._send(GrantsChanged(change=change, grant=grant))

    def end(self, error: BubbleError) -> None:
        """The connection is over: with an error frame and 4401 for an identity, with 1012 otherwise."""
        if isinstance(error, Unauthenticated):
            self._answer(error, None, None)
            self._socket.close(CLOSE_UNAUTHENTICATED, error.code)
        else:
            self._socket.close(CLOSE_DRAINING, "")
