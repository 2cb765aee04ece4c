"""A thread's subscription as server-sent events: `GET /v1/threads/:threadId/events/stream`.

The stream is a hub connection like a WebSocket's: a cursor, woken when there is more, never a queue. `subscription_opened` comes first
and has no id, so that a client's `Last-Event-ID` is always a seq.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from bubble.auth.identity import Identity
from bubble.hub import SERVER_SENT_EVENTS, Chunk, Connection, Encoding, Hub
from bubble.protocol.errors import BubbleError
from bubble.protocol.jsontext import JSONValue, dump_json
from bubble.protocol.resources import Grant
from bubble.store.notices import GrantChange

__all__ = ["STREAM_HEADERS", "ThreadStream"]

HIGH_WATER = 64 * 1024

STREAM_HEADERS = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",
}


class ThreadStream:
    """One reader's stream. `open` it, then iterate `records` until they end; `close` it in any case."""

    encoding: Encoding = SERVER_SENT_EVENTS

    def __init__(self, hub: Hub, identity: Identity, *, keep_alive: float) -> None:
        self._keep_alive = keep_alive
        self._pending: list[bytes] = []
        self._size = 0
        self._is_over = False
        self._bell = asyncio.Event()
        self._connection: Connection = hub.connect(self, identity)

    async def open(self, thread_id: str, *, from_seq: int) -> None:
        """Subscribes; raises `NotFound` without `events.subscribe`."""
        await self._connection.subscribe(thread_id, from_seq=from_seq)

    def close(self) -> None:
        """Ends the subscription. Idempotent."""
        self._connection.close()

    async def records(self) -> AsyncIterator[bytes]:
        """The bytes of the stream, as they come; ends after `subscription_closed`, or when the server drains."""
        while True:
            pending, self._pending, self._size = b"".join(self._pending), [], 0
            if pending:
                yield pending
            if not self._pending and self._is_over:
                return
            self._bell.clear()
            await self._fetch()
            if not self._pending and not self._is_over:
                is_quiet = not await self._rings()
                if is_quiet:
                    yield self._idle()

    def _idle(self) -> bytes:
        """What is sent when nothing was for a while."""
        return b": keep-alive\n\n"

    async def _fetch(self) -> None:
        """Puts what there is to be sent, a bounded amount at a time."""
        self._connection.pump()

    async def _rings(self) -> bool:
        try:
            async with asyncio.timeout(self._keep_alive):
                await self._bell.wait()
        except TimeoutError:
            return False
        return True

    def _put(self, piece: bytes) -> None:
        self._pending.append(piece)
        self._size += len(piece)
        self._bell.set()

    def _record(self, name: str, data: dict[str, JSONValue]) -> None:
        self._put(b"event: %b\ndata: %b\n\n" % (name.encode("ascii"), dump_json(data)))

    # --- from the hub -----------------------------------------------------------------------------------------------------------

    def write(self, chunk: Chunk) -> None:
        """Events."""
        self._put(chunk.joined)

    def is_writable(self) -> bool:
        """Whether the reader has taken most of what was pending."""
        return self._size < HIGH_WATER and not self._is_over

    def subscription_opened(self, thread_id: str, through_seq: int) -> None:
        """The first record."""
        self._record("subscription_opened", {"threadId": thread_id, "throughSeq": through_seq})

    def subscription_closed(self, thread_id: str, error: BubbleError) -> None:
        """The last record."""
        self._record("subscription_closed", {"threadId": thread_id, "reason": error.code})
        self._is_over = True

    def grants_snapshot(self, grants: Sequence[Grant]) -> None:
        """A thread's stream has no grants."""

    def grants_changed(self, change: GrantChange, grant: Grant) -> None:
        """A thread's stream has no grants."""

    def end(self, error: BubbleError) -> None:
        """The identity is no longer valid, or the server drains: the reason, then nothing."""
        if not self._is_over:
            self._record("subscription_closed", {"reason": error.code})
            self._is_over = True
