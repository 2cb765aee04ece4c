"""Lives of a connector that end by `kill -9`, spread over all that a life consists of.

A kill at a random time after the start mostly meets a connector that starts. So each life is killed in one stretch of it, which is told by
what the bot says on the thread: while it starts, when a reply begins, in the middle of one, about its end. Of ten lives each stretch has
its share, in random order, and the moment within the stretch is random, too. In each life something is said, before or after it begins; as
some of every ten lives come to the end of a reply, what waits for an answer never grows long.
"""

from __future__ import annotations

import asyncio
import random
import signal
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from tests.amphibian.logs import ME
from tests.amphibian.nursery import Nursery
from tests.amphibian.processes import PATIENCE, Scene
from tests.amphibian.world import chunk_types, text_of

__all__ = ["Lives", "Told"]

Stretch: TypeAlias = Literal["start", "beginning", "middle", "end"]
Event: TypeAlias = Mapping[str, object]

_TEN: Final[tuple[Stretch, ...]] = (
    *("start", "start", "beginning", "beginning"),
    *("middle", "middle", "middle", "middle", "end", "end"),
)
_AND_SO_ON: Final = "and so on, and on, and on"
# Of a reply; and about as long as a connector takes from one thing to the next, in seconds.
_MOST_EVENTS: Final = 6
_A_MOMENT: Final = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a thread tells of the lives: the replies that were completed, and of how many others something or nothing was said."""

    replies: Sequence[str]
    cut_in_the_middle: int
    cut_before: int


class Lives:
    """The lives of a connector that `nursery` starts, on the scene's thread. `asked` is what was said, each a word of its own."""

    def __init__(self, here: Scene, nursery: Nursery, *, chance: random.Random) -> None:
        self.asked: list[str] = []
        self._here = here
        self._nursery = nursery
        self._chance = chance
        self._start_seconds = 0.0
        self._head = 0

    async def live(self, count: int) -> None:
        """So many lives that are killed. One before them shows how long a start takes; in one after them everything is answered."""
        await self._in_peace()
        stretches: list[Stretch] = []
        while len(stretches) < count:
            stretches += self._chance.sample(_TEN, len(_TEN))
        for stretch in stretches[:count]:
            await self._until(stretch)
        await self._in_peace()

    async def told(self) -> Told:
        """What came of it."""
        runs: defaultdict[object, list[Event]] = defaultdict(list)
        for event in await self._here.thread.log():
            if event.get("principalId") == ME:
                runs[event.get("runId")].append(event)
        complete = [events for events in runs.values() if any(map(_is_success, events))]
        cut = [chunk_types(events) for events in runs.values() if events not in complete]
        begun = sum("text-delta" in types for types in cut)
        return Told(replies=[*map(text_of, complete)], cut_in_the_middle=begun, cut_before=len(cut) - begun)

    async def _in_peace(self) -> None:
        began = asyncio.get_running_loop().time()
        connector = await self._begin(asks_before=True)
        run = [await self._come_to("run_started")]
        self._start_seconds = asyncio.get_running_loop().time() - began
        while not (_is_success(run[-1]) and self.asked[-1] in text_of(run).split()):
            event = await self._next()
            run = [event] if event["type"] == "run_started" else [*run, event]
        await self._nursery.end(connector, signal.SIGTERM)

    async def _until(self, stretch: Stretch) -> None:
        connector = await self._begin(asks_before=self._chance.random() < 0.5)
        longest = _A_MOMENT
        if stretch == "start":
            longest = self._start_seconds
        else:
            event = await self._come_to("run_started")
            left = {"beginning": 0, "middle": self._chance.randint(1, _MOST_EVENTS)}.get(stretch, sys.maxsize)
            while left and not _is_success(event):
                event = await self._next()
                left -= 1
        await asyncio.sleep(self._chance.uniform(0, longest))  # the moment of the kill is what is random
        await self._nursery.end(connector)

    async def _begin(self, *, asks_before: bool) -> int:
        """A connector, and something that is said to it."""
        self._head = (await self._here.admin.get_thread(self._here.thread.thread_id)).head_seq
        if asks_before:
            await self._ask()
        connector = await self._nursery.start()
        if not asks_before:
            await self._ask()
        return connector

    async def _ask(self) -> None:
        self.asked.append(f"<{len(self.asked)}>")
        await self._here.thread.say(f"{self.asked[-1]} {_AND_SO_ON}")

    async def _come_to(self, type_: str) -> Event:
        while (event := await self._next())["type"] != type_:
            pass
        return event

    async def _next(self) -> Event:
        """What the bot says next in this life."""
        async with asyncio.timeout(PATIENCE):
            async for stored in self._here.thread.events:
                event = stored.to_dict()
                if stored.seq > self._head and event.get("principalId") == ME:
                    return event
        raise AssertionError("the subscription ended")


def _is_success(event: Event) -> bool:
    return event["type"] == "run_finished" and event.get("outcome") == "success"
