"""Two conversations about one task: when the answer to a tool's call goes to a task that is still at work, servers bring what the task says
on both streams. The older conversation says it; the younger one says what is left.

*Theory of operation.* The streams are read as they come, so neither is ever ahead of the other by much. What the younger one reads is held
until the older one has ended. Then everything in it that the older one had heard, in the same order, is left out, but for what becomes of
the task: that it has ended, or, at the end of the stream, that it waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Final

from bubble.reef.events import WAITING, AgentEvent, TaskState
from bubble.reef.failures import AgentFailure

__all__ = ["Hearing"]

# Their words are the error, which each of the runs tells.
_WITH_WORDS: Final = frozenset[TaskState]({"failed", "rejected"})


class Hearing:
    """What one conversation hears: for itself, should its stream begin again, and for younger ones about the same task."""

    def __init__(self) -> None:
        self._heard: list[int] = []
        self._again_from: int | None = None
        self._logs: list[list[str]] = []
        self._over = asyncio.Event()

    def __len__(self) -> int:
        return len(self._heard)

    def note(self, event: AgentEvent) -> None:
        """The conversation has heard an event."""
        self._heard.append(hash(repr(event)))
        for log in self._logs:
            log.append(repr(event))

    def begin_again(self) -> None:
        """What comes now is of another stream, which may begin where the first one began."""
        self._again_from = 0

    def is_again(self, event: AgentEvent) -> bool:
        """Whether the event was heard before the stream began again: as long as everything comes in the same order as before."""
        at = self._again_from
        if at is None or at >= len(self._heard) or self._heard[at] != hash(repr(event)):
            self._again_from = None
            return False
        self._again_from = at + 1
        return True

    def end(self) -> None:
        """It hears nothing more."""
        self._over.set()

    async def left_of(self, events: AsyncGenerator[AgentEvent, None]) -> AsyncGenerator[AgentEvent, None]:
        """Of a younger conversation's events those that this one does not hear itself, in order."""
        matching = _Matching()
        self._logs.append(matching.log)
        over = asyncio.create_task(_ended(self._over))
        try:
            async for batch in _batches(events, until=over):
                for event in matching.unheard(batch):
                    yield event
            if matching.waiting is not None:
                yield matching.waiting
        finally:
            over.cancel()
            self._logs.remove(matching.log)


async def _batches(
    events: AsyncGenerator[AgentEvent, None], *, until: asyncio.Task[AgentEvent | None]
) -> AsyncGenerator[list[AgentEvent], None]:
    """What comes up to then as one batch, and one event at a time from then on."""
    held: list[AgentEvent] = []
    upcoming: asyncio.Task[AgentEvent | None] | None = None
    try:
        while True:
            upcoming = upcoming or asyncio.create_task(_next(events))
            await asyncio.wait({upcoming} if until.done() else {upcoming, until}, return_when=asyncio.FIRST_COMPLETED)
            if upcoming.done():
                if upcoming.exception() is not None or (event := upcoming.result()) is None:
                    break
                held.append(event)
                upcoming = None
            if until.done():
                yield held
                held = []
        yield held
        await upcoming
    finally:
        if upcoming is not None:
            upcoming.cancel()
            with suppress(asyncio.CancelledError, AgentFailure):
                await upcoming
        await events.aclose()


async def _next(events: AsyncGenerator[AgentEvent, None]) -> AgentEvent | None:
    return await anext(events, None)


async def _ended(over: asyncio.Event) -> None:
    await over.wait()


class _Matching:
    """`waiting`: the last event, without its contents, if it was heard and told that the task waits."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.waiting: AgentEvent | None = None
        self._at = 0

    def unheard(self, events: list[AgentEvent]) -> Iterator[AgentEvent]:
        for event in events:
            is_heard = self._is_heard(event)
            self.waiting = replace(event, contents=()) if is_heard and event.state in WAITING else None
            if not is_heard:
                yield event
            elif event.ends_the_task:
                yield event if event.state in _WITH_WORDS else replace(event, contents=())

    def _is_heard(self, event: AgentEvent) -> bool:
        try:
            self._at = self.log.index(repr(event), self._at) + 1
        except ValueError:
            return False
        return True
