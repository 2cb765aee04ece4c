"""Streams of server-sent events, as a client reads them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bubble.protocol.sse import SseDecoder, SseEvent
from tests.server.world import Person

__all__ = ["Stream", "streaming"]


class Stream:
    """What one reader got."""

    def __init__(self, pieces: AsyncIterator[bytes]) -> None:
        self._pieces = pieces
        self._decoder = SseDecoder()
        self._events: list[SseEvent] = []
        self.bytes = b""

    async def next(self) -> SseEvent:
        """The next event. `StopAsyncIteration` at the end of the stream."""
        async with asyncio.timeout(5):
            while not self._events:
                piece = await anext(self._pieces)
                self.bytes += piece
                self._events += self._decoder.feed(piece)
        return self._events.pop(0)

    async def take(self, count: int) -> list[SseEvent]:
        return [await self.next() for _ in range(count)]

    async def comment(self) -> None:
        """Returns once a comment came."""
        async with asyncio.timeout(5):
            while b"\n\n: " not in self.bytes and not self.bytes.startswith(b":"):
                self.bytes += await anext(self._pieces)


@asynccontextmanager
async def streaming(person: Person, path: str, **headers: str) -> AsyncIterator[Stream]:
    """An open stream."""
    async with person.http.stream("GET", path, headers=headers) as answer:
        assert answer.status_code == 200
        yield Stream(answer.aiter_raw())
