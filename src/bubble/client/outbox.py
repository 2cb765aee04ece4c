"""Events on their way into a thread: in order, in batches, each exactly once.

*Theory of operation.* One batch is on the way at a time; what is put meanwhile goes into the next one. So a batch is as large as the
round trip is slow, order needs no further care, and each batch carries one idempotency key, under which it is sent again until an
answer comes: a broken connection neither loses nor doubles an event. HTTP carries the batches, because an answer says for certain
what is durable; a `thread.append` frame is never answered.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from bubble.protocol.errors import PayloadTooLarge
from bubble.protocol.events import EncodedEvent, SequencedEvent

__all__ = ["Outbox", "SendBatch"]

MIB = 1024 * 1024

SendBatch: TypeAlias = Callable[[Sequence[EncodedEvent]], Awaitable[Sequence[SequencedEvent]]]


class Outbox:
    """`run()` it in a task that somebody owns. `send` raises a `BubbleError` only when trying again makes no sense."""

    def __init__(
        self, send: SendBatch, *, batch_events: int = 1_000, batch_bytes: int = 4 * MIB, most_waiting: int = 4_096
    ) -> None:
        self.last_seq = 0
        self.error: BaseException | None = None
        self._send = send
        self._batch_events = batch_events
        self._batch_bytes = batch_bytes
        self._most_waiting = most_waiting
        self._waiting: deque[EncodedEvent] = deque()
        self._waiting_bytes = 0
        self._put = self._delivered = 0
        self._moved = asyncio.Condition()

    async def put(self, event: EncodedEvent) -> None:
        """Takes an event in, waiting while too many or too large ones wait. Raises what the outbox failed with."""
        async with self._moved:
            await self._moved.wait_for(lambda: self.error is not None or self._has_room())
            self._raise_failure()
            self._waiting.append(event)
            self._waiting_bytes += len(event.text)
            self._put += 1
            self._moved.notify_all()

    async def drain(self) -> None:
        """Returns once everything that was put so far is durable. Raises what the outbox failed with."""
        async with self._moved:
            put = self._put
            await self._moved.wait_for(lambda: self.error is not None or self._delivered >= put)
            self._raise_failure()

    async def run(self) -> None:
        """Sends, until cancelled or failed."""
        while self.error is None:
            async with self._moved:
                await self._moved.wait_for(lambda: bool(self._waiting))
                batch = self._next_batch()
            try:
                await self._deliver(batch)
            except Exception as error:  # noqa: BLE001 - raised by `put` and `drain`
                await self.fail(error)

    async def fail(self, error: BaseException) -> None:
        """Gives up: nothing more is sent, and `put` and `drain` raise `error`."""
        async with self._moved:
            self.error = error
            self._moved.notify_all()

    def _has_room(self) -> bool:
        return len(self._waiting) < self._most_waiting and self._waiting_bytes < self._batch_bytes

    def _raise_failure(self) -> None:
        if self.error is not None:
            raise self.error

    def _next_batch(self) -> list[EncodedEvent]:
        batch: list[EncodedEvent] = []
        size = 0
        while self._waiting and len(batch) < self._batch_events:
            size += len(self._waiting[0].text)
            if batch and size > self._batch_bytes:
                break
            batch.append(self._waiting.popleft())
            self._waiting_bytes -= len(batch[-1].text)
        self._moved.notify_all()
        return batch

    async def _deliver(self, batch: list[EncodedEvent]) -> None:
        try:
            stored = await self._send(batch)
        except PayloadTooLarge:
            # Nothing of it was appended. The server's limits are smaller than ours, unless a single event is too large.
            if len(batch) == 1:
                raise
            middle = len(batch) // 2
            await self._deliver(batch[:middle])
            await self._deliver(batch[middle:])
            return
        async with self._moved:
            self.last_seq = stored[-1].seq
            self._delivered += len(batch)
            self._moved.notify_all()
