"""A log, told as `bubble tail` tells it."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterable, Sequence

from rich.console import Console, Group, RenderableType

from bubble.assembler import Grouping, ThreadSnapshot, create_assembler, message_changes
from bubble.cli.conversation import Conversation
from bubble.extensions.artifacts import ArtifactHandler
from bubble.protocol.events import SequencedEvent
from tests.assembler.logs import Event, numbered

__all__ = ["Told", "printed", "tell", "told"]


def printed(items: Sequence[RenderableType], *, width: int | None = None) -> str:
    """What stands in a pipe, or on a terminal of so many characters without colours."""
    written = io.StringIO()
    console = Console(
        file=written,
        width=width or 10_000,
        force_terminal=width is not None,
        color_system=None,
        markup=False,
        emoji=False,
        highlight=False,
    )
    console.print(Group(*items), soft_wrap=width is None)
    return written.getvalue() if items else ""


class Told:
    """A thread that is followed: `so_far` is what was printed, `growing` what stands below it."""

    def __init__(self, *, grouping: Grouping = "speaker", width: int | None = None) -> None:
        self.conversation = Conversation(grouping=grouping)
        self.so_far = ""
        self.growing = ""
        self._thread = create_assembler(part_handlers=[ArtifactHandler()]).open(grouping=grouping)
        self._width = width
        self._before: ThreadSnapshot | None = None

    async def hear(self, events: Iterable[SequencedEvent]) -> None:
        """The next events, in one update."""
        await self._thread.apply(list(events))
        snapshot = await self._thread.snapshot()
        changes = message_changes(self._before, snapshot)
        self._before = snapshot
        self.so_far += printed(self.conversation.take(changes.upserts), width=self._width)
        self.growing = printed(self.conversation.growing(room=1_000), width=self._width)

    async def pass_over(self, events: Iterable[SequencedEvent]) -> None:
        """Events that nobody wants to be told of."""
        await self._thread.apply(list(events))
        self._before = await self._thread.snapshot()
        self.conversation.pass_over(self._before.messages)

    def end(self) -> str:
        """Everything, at the end."""
        self.so_far += printed(self.conversation.rest(), width=self._width)
        return self.so_far


def tell(
    log: Sequence[SequencedEvent], *, at_once: int = 1, grouping: Grouping = "speaker", width: int | None = None
) -> str:
    """What is printed of a log by the end, where so many events come `at_once`."""

    async def follow() -> str:
        told = Told(grouping=grouping, width=width)
        for start in range(0, len(log), at_once):
            await told.hear(log[start : start + at_once])
        return told.end()

    return asyncio.run(follow())


def told(
    *events: Event | list[Event], grouping: Grouping = "speaker", at_once: int = 1, width: int | None = None
) -> list[str]:
    """The lines that are printed of these events, without the day and without spaces behind."""
    flat = [each for event in events for each in (event if isinstance(event, list) else [event])]
    lines = tell(numbered(flat), grouping=grouping, at_once=at_once, width=width).splitlines()
    return [line.rstrip() for line in lines[1:]]
