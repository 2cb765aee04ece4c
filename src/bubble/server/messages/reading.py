"""A thread's log, read in slices, by work that takes turns.

*Theory of operation.* To fold a long stretch of a log takes long. Such work goes in slices, and `Turns` lets one slice of all such work of
the node run in each turn of the event loop. So however many people ask for long pages at once, everybody else waits for one slice at most.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from bubble.protocol.errors import thread_not_found
from bubble.protocol.resources import Run
from bubble.server.messages.glances import NATIVE, Survey, glance
from bubble.store.base import BubbleStore

__all__ = ["ThreadLog", "Turns"]

#: What one read brings at most.
READ_EVENTS: Final = 512
READ_BYTES: Final = 256 * 1024
#: How many events one read looks through for few that are among them. Another thread does that, without the interpreter's lock.
SEARCHED_EVENTS: Final = 16_384


class Turns:
    """Long work, one slice of it per turn of the event loop. Whoever waits longest is next. `folded` counts events."""

    def __init__(self) -> None:
        self.folded = 0
        self._lock = asyncio.Lock()

    async def next(self) -> None:
        """Returns when the next slice may be worked on."""
        async with self._lock:
            await asyncio.sleep(0)


@dataclass(frozen=True, slots=True)
class ThreadLog:
    """The log of one thread. Everything raises what the store raises."""

    store: BubbleStore
    thread_id: str
    turns: Turns = field(default_factory=Turns)

    async def slices(self, first: int, last: int) -> AsyncIterator[Sequence[bytes]]:
        """The texts from `first` to `last`, ascending; a slice at a time, each when it may be worked on."""
        while first <= last:
            texts = await self.store.read(
                self.thread_id, from_seq=first, to_seq=last, limit=READ_EVENTS, max_bytes=READ_BYTES
            )
            if not texts:  # deleted meanwhile
                raise thread_not_found(self.thread_id)
            await self.turns.next()
            yield texts
            first += len(texts)

    async def texts(self, first: int, last: int) -> list[bytes]:
        """All of them at once."""
        return [text async for texts in self.slices(first, last) for text in texts]

    async def survey(self, texts: Sequence[bytes]) -> Survey:
        """What can be seen of the texts, looked at in slices."""
        survey = Survey()
        for start in range(0, len(texts), READ_EVENTS):
            if start:
                await self.turns.next()
            for text in texts[start : start + READ_EVENTS]:
                survey.add(glance(text))
        return survey

    async def of_runs(self, run_ids: Collection[str], first: int, last: int) -> AsyncIterator[list[bytes]]:
        """Like `slices`, but only what belongs to one of the runs."""
        async for texts in self.slices(first, last):
            yield [text for text in texts if glance(text).run_id in run_ids]

    def natives(self, first: int, last: int) -> AsyncIterator[Sequence[bytes]]:
        """Like `slices`, but only events with a native part, found without bringing the others here."""
        return self.containing(NATIVE, first, last)

    async def containing(self, what: bytes, first: int, last: int) -> AsyncIterator[Sequence[bytes]]:
        """Like `slices`, but only events with `what` in their texts."""
        while first <= last:
            until = min(last, first + SEARCHED_EVENTS - 1)
            texts = await self.store.find_events(
                self.thread_id,
                containing=what,
                from_seq=first,
                to_seq=until,
                limit=READ_EVENTS,
                max_bytes=READ_BYTES,
            )
            await self.turns.next()
            yield texts
            # Less than the limit may still be not all: bytes end a read, too. An empty one ends the range.
            first = glance(texts[-1]).seq + 1 if texts else until + 1

    async def runs(self, run_ids: Collection[str]) -> Mapping[str, Run]:
        """Those of the runs that the store knows."""
        return await self.store.get_runs(self.thread_id, run_ids) if run_ids else {}

    async def beginning(self, run_ids: Collection[str], *, at_most: int) -> int:
        """The first seq of the run that began first, or `at_most` if that is lower.

        A run that never started (there are such without the lifecycle, `run_integrity`) may have begun anywhere.
        """
        if at_most == 1:
            return 1
        known = await self.runs(run_ids)
        begun = [known[run_id].started_seq if run_id in known else 1 for run_id in run_ids]
        return min([at_most, *begun])
