"""What a reader has seen of the bot so far, and a way to wait for it."""

from __future__ import annotations

import asyncio

from bubble.protocol.events import MessagePart, RunFinished, SequencedEvent

__all__ = ["Cues"]


class Cues:
    """Counts `chunks` and finished `replies` of the bot as a reader sees them."""

    def __init__(self, bot: str) -> None:
        self.chunks = 0
        self.replies = 0
        self._bot = bot
        self._change = asyncio.Event()

    def note(self, stored: SequencedEvent) -> None:
        """The next event that the reader got."""
        event = stored.event
        if isinstance(event, MessagePart) and event.principal_id == self._bot:
            self.chunks += 1
        elif isinstance(event, RunFinished) and event.principal_id == self._bot:
            self.replies += 1
        self._change.set()

    async def chunks_are(self, count: int) -> None:
        """Returns once the reader has seen so many chunks."""
        while self.chunks < count:
            await self._wait()

    async def replies_are(self, count: int) -> None:
        """Returns once the reader has seen so many finished replies."""
        while self.replies < count:
            await self._wait()

    async def _wait(self) -> None:
        self._change.clear()
        await self._change.wait()
