"""The server's consumer cursor, advanced as a receipt: it tells others how far the bot has read, and is never asked where to go on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from bubble.protocol.errors import BubbleError

__all__ = ["Receipts"]

_logger = logging.getLogger("bubble.amphibian")


class Receipts:
    """`run()` it in a task that somebody owns. One is on its way at a time; of what comes meanwhile each thread's last counts."""

    def __init__(self, advance: Callable[[str, int], Awaitable[object]], *, pause: float = 0.25) -> None:
        self._advance = advance
        self._pause = pause
        self._due: dict[str, int] = {}
        self._news = asyncio.Event()

    def note(self, thread_id: str, seq: int) -> None:
        """An event arrived."""
        self._due[thread_id] = seq
        self._news.set()

    async def run(self) -> None:
        """Advances cursors until cancelled, with a pause of `pause` seconds between rounds."""
        while True:
            await self._news.wait()
            await self.flush()
            await asyncio.sleep(self._pause)

    async def flush(self) -> None:
        """Advances what is due now. A cursor that cannot be advanced is passed over: it is a courtesy."""
        self._news.clear()
        while self._due:
            thread_id, seq = self._due.popitem()
            try:
                await self._advance(thread_id, seq)
            except BubbleError as error:
                _logger.debug("The cursor of thread %s was not advanced: %s", thread_id, error)
