"""Watchers of a bot as a page is one: they keep the newest state of each row, remember the last id, and come back with it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from bubble.assembler import create_assembler
from bubble.auth.policy import Policy
from bubble.hub import Hub
from bubble.protocol.sse import SseDecoder, SseEvent
from bubble.server.messages.following import Followings
from bubble.server.messages.reading import Turns
from bubble.server.watching import board, following, history, slices, stretches
from bubble.server.watching.following import BotFollowings
from bubble.server.watching.stream import WatchStream
from bubble.store.base import BubbleStore
from bubble.store.records import NewPrincipal
from bubble.watch import WatchCursor
from tests.hub.sinks import OWNER, identity, make_thread
from tests.server.messages.views import THREAD, in_small

__all__ = ["BOT", "PLACED", "Stage", "State", "Watcher", "a_stage", "all_in_small", "folded", "with_bot"]

BOT = "bot"
#: By row: the type of its last event, and what it showed.
State = dict[str, tuple[str, Any]]


def folded(events: list[SseEvent], state: State | None = None) -> State:
    """What a page shows after the events."""
    shown = dict(state or {})
    for event in events:
        data = json.loads(event.data)
        if event.event == "reset":
            shown.clear()
        elif event.event == "message.deleted":
            shown.pop(data["entryId"], None)
        elif event.event in ("message", "entry"):
            shown[data["entryId"]] = (event.event, data["text"] if event.event == "message" else data["entry"])
    return shown


class Watcher:
    """One watcher. `events` is all that came since it began anew, but for comments."""

    def __init__(self, stage: Stage, *, who: str = OWNER) -> None:
        self.events: list[SseEvent] = []
        self.bytes = 0
        self._stage = stage
        self._who = who
        self._news = asyncio.Condition()
        self._may_read = asyncio.Event()
        self._may_read.set()
        self._stream: WatchStream | None = None
        self._watching: asyncio.Task[None] | None = None

    @property
    def ids(self) -> list[str]:
        """The ids in the order in which they came."""
        return [event.id for event in self.events if event.event in PLACED]

    def of_type(self, kind: str) -> list[Any]:
        """The data of the events of a type."""
        return [json.loads(event.data) for event in self.events if event.event == kind]

    async def watch(self, *, after: str | None = None) -> None:
        """Opens the stream. Returns once it is open."""
        cursor = None if after is None else WatchCursor.decode(after)
        stream = WatchStream(self._stage.watches, identity(self._who), keep_alive=60)
        try:
            await stream.watch(BOT, THREAD, cursor=cursor)
        except BaseException:
            stream.close()
            raise
        self._stream = stream
        self._watching = asyncio.create_task(self._read(stream))

    async def leave(self) -> None:
        """Closes the stream, in the midst of whatever it is."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait([self._watching])
        if self._stream is not None:
            self._stream.close()

    def freeze(self) -> None:
        """Takes nothing from the stream from now on."""
        self._may_read.clear()

    def thaw(self) -> None:
        """Takes everything again."""
        self._may_read.set()

    async def shows(self, entry_id: str) -> None:
        """Returns once there is such a row."""
        await self.until(lambda: entry_id in folded(self.events))

    async def until(self, holds: Callable[[], bool]) -> None:
        """Returns once it holds."""
        async with asyncio.timeout(20), self._news:
            await self._news.wait_for(holds)

    async def ended(self) -> None:
        """Returns once the server has ended the stream."""
        assert self._watching is not None
        async with asyncio.timeout(20):
            await self._watching

    async def _read(self, stream: WatchStream) -> None:
        decoder = SseDecoder()
        try:
            async for piece in stream.records():
                async with self._news:
                    self.bytes += len(piece)
                    self.events += decoder.feed(piece)
                    self._news.notify_all()
                await self._may_read.wait()
        finally:
            stream.close()


PLACED = frozenset({"message", "entry", "entry.unavailable", "message.deleted", "reset"})


@dataclass
class Stage:
    """A hub, and the bots that are watched on its threads."""

    store: BubbleStore
    hub: Hub
    followings: Followings
    watches: BotFollowings
    watchers: list[Watcher] = field(default_factory=list)

    def watcher(self, *, who: str = OWNER) -> Watcher:
        watcher = Watcher(self, who=who)
        self.watchers.append(watcher)
        return watcher


@asynccontextmanager
async def a_stage(store: BubbleStore) -> AsyncIterator[Stage]:
    """Over this store; in the end all watchers have left, and nothing may be left of them."""
    hub = Hub(store, Policy())
    await hub.start()
    followings = Followings(hub, create_assembler(), Turns())
    stage = Stage(store, hub, followings, BotFollowings(hub, followings, lambda: 0))
    try:
        yield stage
        for watcher in stage.watchers:
            await watcher.leave()
        async with asyncio.timeout(5):
            await stage.watches.tasks.settled(0)
            await stage.followings.tasks.settled(0)
        assert hub.statistics().tails == 0
        assert hub.statistics().connections == 0
        assert stage.watches.statistics().sessions == 0
    finally:
        await stage.watches.close()
        await stage.followings.close()
        await hub.close()


async def with_bot(store: BubbleStore) -> None:
    """The thread `t` of `OWNER`, with a bot on it."""
    await make_thread(store, THREAD)
    await store.create_principal(
        NewPrincipal(principal_id=BOT, kind="bot", display_name="The bot", owner_principal_id=OWNER)
    )
    await store.put_grant(THREAD, BOT, "participant", by=OWNER, appends=True)


@contextmanager
def all_in_small() -> Iterator[None]:
    """Everything that is bounded is bounded to so little that a short thread is long."""
    with (
        in_small(),
        patch.multiple(slices, SLICE_BYTES=400),
        patch.multiple(stretches, STRETCH_EVENTS=6, STRETCH_BYTES=4_000),
        patch.multiple(board, KEPT_ASIDES=3),
        patch.multiple(following, TOLD_EVENTS=5),
        patch.multiple(history, _LOOK_BACK=2),
    ):
        yield
