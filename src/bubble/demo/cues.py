"""What a reader has seen of the bot so far, and a way to wait for it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

from bubble.protocol.events import MessagePart, RunFinished, SequencedEvent
from bubble.protocol.jsontext import load_json

__all__ = ["Cues"]


class Cues:
    """Of each run of the bot, as a reader sees it: how many `chunks`, for which call it `asks` consent, whether it is `over`."""

    def __init__(self, bot: str) -> None:
        self.chunks: Counter[str] = Counter()
        self.asks: dict[str, str] = {}
        self.over: set[str] = set()
        self._bot = bot
        self._change = asyncio.Event()

    def note(self, stored: SequencedEvent) -> None:
        """The next event that the reader got."""
        event = stored.event
        if isinstance(event, MessagePart) and event.principal_id == self._bot:
            self.chunks[event.run_id] += 1
            chunk = load_json(bytes(event.part))
            if isinstance(chunk, dict) and chunk.get("type") == "tool-approval-request":
                self.asks.setdefault(event.run_id, str(chunk["toolCallId"]))
        elif isinstance(event, RunFinished) and event.principal_id == self._bot:
            self.over.add(event.run_id)
        self._change.set()

    async def until(self, holds: Callable[[Cues], bool]) -> None:
        """Returns once it holds."""
        while not holds(self):
            self._change.clear()
            await self._change.wait()
