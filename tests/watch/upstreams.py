"""Sources that a test holds in its hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence

from bubble.watch import Frame, WatchCursor

__all__ = ["Held", "Taking"]


class Held:
    """Each stream gives what is put into it; None ends it cleanly, an exception is raised."""

    def __init__(self) -> None:
        self.given: asyncio.Queue[Frame | Exception | None] = asyncio.Queue()
        self.opened: list[WatchCursor | None] = []
        self.closed = 0
        self.pulled = 0
        self.waiting = asyncio.Event()
        self.let_go = asyncio.Event()

    def put(self, *frames: Frame | Exception | None) -> None:
        for frame in frames:
            self.given.put_nowait(frame)

    async def frames(self, *, bot_id: str, session_id: str, cursor: WatchCursor | None) -> AsyncGenerator[Frame, None]:
        del bot_id, session_id
        self.opened.append(cursor)
        try:
            while True:
                self.waiting.set()
                frame = await self.given.get()
                self.waiting.clear()
                self.pulled += 1
                if frame is None:
                    return
                if isinstance(frame, Exception):
                    raise frame
                yield frame
        finally:
            self.closed += 1
            self.let_go.set()


class Taking:
    """Streams one after the other: the first one gives the first list, and so on. A list that ends with an exception raises it."""

    def __init__(self, *streams: Sequence[Frame | Exception]) -> None:
        self.opened: list[WatchCursor | None] = []
        self._streams = list(streams)

    async def frames(self, *, bot_id: str, session_id: str, cursor: WatchCursor | None) -> AsyncGenerator[Frame, None]:
        del bot_id, session_id
        self.opened.append(cursor)
        for frame in self._streams.pop(0):
            if isinstance(frame, Exception):
                raise frame
            yield frame
