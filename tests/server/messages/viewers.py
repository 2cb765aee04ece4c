"""Somebody who looks at a thread's messages as a browser does: keeps the newest of each, remembers the last id, and comes back with it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from bubble.assembler import BubbleMessage, Grouping, create_assembler
from bubble.auth.policy import Policy
from bubble.hub import Hub
from bubble.protocol.sse import SseDecoder, SseEvent
from bubble.server.messages.following import Followings
from bubble.server.messages.portion import first_seq, last_seq
from bubble.server.messages.reading import Turns
from bubble.server.messages.stream import MessageStream
from bubble.store.base import BubbleStore
from tests.hub.sinks import OWNER, identity
from tests.server.messages.views import THREAD

__all__ = ["Gallery", "Viewer", "a_gallery"]


class Viewer:
    """One viewer. `shown` is what it sees, `floor` the seq from which on it sees everything."""

    def __init__(self, gallery: Gallery, *, grouping: Grouping = "speaker", limit: int = 50, who: str = OWNER) -> None:
        self.shown: dict[str, BubbleMessage] = {}
        self.floor: int | None = None
        self.last_id: int | None = None
        self.events: list[SseEvent] = []
        self._gallery = gallery
        self._grouping = grouping
        self._limit = limit
        self._who = who
        self._may_read = asyncio.Event()
        self._may_read.set()
        self._news = asyncio.Condition()
        self._stream: MessageStream | None = None
        self._looking: asyncio.Task[None] | None = None

    async def look(self, *, after: int | None = None) -> None:
        """Opens the stream: where it was, or `after` a seq, or anew. Returns once it is opened."""
        resumed = self.last_id if after is None else after
        if resumed is None:
            self.shown.clear()
            self.floor = None
        stream = MessageStream(self._gallery.hub, identity(self._who), self._gallery.followings, keep_alive=60)
        try:
            await stream.watch(THREAD, grouping=self._grouping, limit=self._limit, after=resumed)
        except BaseException:
            stream.close()
            raise
        self._stream = stream
        self._looking = asyncio.create_task(self._read(stream, resumed))

    async def leave(self) -> None:
        """Closes the stream, in the midst of whatever it is."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait([self._looking])
            self._looking = None
        if self._stream is not None:  # where it was not even begun to be read
            self._stream.close()

    def freeze(self) -> None:
        """Takes nothing from the stream from now on."""
        self._may_read.clear()

    def thaw(self) -> None:
        """Takes everything again."""
        self._may_read.set()

    async def sees(self, message_id: str) -> BubbleMessage:
        """Returns the message once it is shown."""
        await self.until(lambda: message_id in self.shown)
        return self.shown[message_id]

    async def has_got(self, last_id: int) -> None:
        """Returns once the id came."""
        await self.until(lambda: (self.last_id or 0) >= last_id)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Returns once it holds."""
        async with asyncio.timeout(20), self._news:
            await self._news.wait_for(holds)

    async def ended(self) -> None:
        """Returns once the server has ended the stream. Raises what went wrong in it."""
        assert self._looking is not None
        async with asyncio.timeout(20):
            await self._looking

    async def _read(self, stream: MessageStream, resumed: int | None) -> None:
        decoder = SseDecoder()
        held: dict[str, int] = {}
        try:
            async for piece in stream.records():
                async with self._news:
                    for event in decoder.feed(piece):
                        self._take(event, resumed, held)
                    self._news.notify_all()
                await self._may_read.wait()
        finally:
            stream.close()

    def _take(self, event: SseEvent, resumed: int | None, held: dict[str, int]) -> None:
        self.events.append(event)
        if event.event != "message":
            return
        message: BubbleMessage = json.loads(event.data)
        seq = last_seq(message)
        assert seq > (resumed or 0), "a message that did not change since"
        assert seq > held.get(message["id"], 0), "a message as it was before"
        held[message["id"]] = seq
        self.shown[message["id"]] = message
        if self.floor is None:
            self.floor = first_seq(message)
        if event.id:
            assert int(event.id) >= (self.last_id or 0)
            self.last_id = int(event.id)


@dataclass
class Gallery:
    """A hub and what is shown of its threads."""

    store: BubbleStore
    hub: Hub
    followings: Followings
    viewers: list[Viewer] = field(default_factory=list)

    def viewer(self, *, grouping: Grouping = "speaker", limit: int = 50, who: str = OWNER) -> Viewer:
        viewer = Viewer(self, grouping=grouping, limit=limit, who=who)
        self.viewers.append(viewer)
        return viewer


@asynccontextmanager
async def a_gallery(store: BubbleStore) -> AsyncIterator[Gallery]:
    """Over this store; in the end all viewers have left, and nothing may be left of them."""
    hub = Hub(store, Policy())
    await hub.start()
    gallery = Gallery(store, hub, Followings(hub, create_assembler(), Turns()))
    try:
        yield gallery
        for viewer in gallery.viewers:
            await viewer.leave()
        async with asyncio.timeout(5):
            await gallery.followings.tasks.settled(0)
        assert hub.statistics().tails == 0
        assert gallery.followings.statistics().followings == 0
        assert hub.statistics().connections == 0
    finally:
        await gallery.followings.close()
        await hub.close()
