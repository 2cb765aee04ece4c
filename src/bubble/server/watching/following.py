"""One bot's session, followed once for all who watch it.

*Theory of operation.* It looks at the same messages as everybody who watches the thread (`messages.following`) and is rung like any viewer.
Then it takes the messages that changed and the events that changed them, puts both on its board, and rings at the watchers. It rests as
often and as long as the other does. How the bot is listed is not in the log, so that is looked at now and then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeAlias

from bubble.hub import Along, Hub
from bubble.hub.tasks import TaskOwner
from bubble.protocol.errors import BubbleError, NotFound, Unavailable
from bubble.protocol.resources import Principal
from bubble.protocol.timestamps import Clock
from bubble.server.messages.board import Board
from bubble.server.messages.following import Following, Followings
from bubble.server.watching.board import BotBoard
from bubble.server.watching.clearing import BeforeClear
from bubble.server.watching.history import know_runs, past_asides, read_session
from bubble.server.watching.session import Aside, roster_change
from bubble.server.watching.stretches import Stretches

__all__ = ["BotFollowing", "BotFollowings", "WatchStatistics", "find_bot"]

#: How often it is looked how the bot is listed (seconds).
ROSTER_SECONDS: Final = 2.0
#: Of how many events before it begins it can tell those who come back.
TOLD_EVENTS: Final = 1_024

Bell: TypeAlias = Callable[[], None]
Key: TypeAlias = tuple[str, str]

_LISTED: Final = {"display_name": "displayName", "metadata": "metadata", "disabled_at": "disabledAt"}


class BotFollowing:
    """A bot's session as it grows. `board` is None until it is there. Made by `BotFollowings.join`."""

    def __init__(self, bot: Principal, thread_id: str, followings: Followings, hub: Hub, clock: Clock) -> None:
        self.bot = bot
        self.thread_id = thread_id
        self.board: BotBoard | None = None
        self.error: BubbleError | None = None
        self.bells: set[Bell] = set()
        self.view = followings.view(thread_id, "speaker")
        self.before = BeforeClear(self.view)
        self.stretches = Stretches(self.view, self.before)
        self._followings = followings
        self._hub = hub
        self._clock = clock
        self._bell = asyncio.Event()
        self._next_look = 0.0

    async def run(self) -> None:
        """Follows until it is cancelled, or cannot go on: then `error` says why."""
        along: Along | None = None
        following = self._followings.join(self.thread_id, "speaker", self._bell.set)
        try:
            along = await self._hub.read_along(self.thread_id)
            while True:
                await self._follow(following, along)
        except BubbleError as error:
            self.error = error
        finally:
            self._followings.leave(following, self._bell.set)
            if along is not None:
                along.close()
            if self.error is None:
                self.error = Unavailable("This server is shutting down.")
            self._ring()

    async def _follow(self, following: Following, along: Along) -> None:
        """Follows until the messages have gone further than can be caught up with."""
        messages = await self._next(following, beyond=-1)
        head, covers = messages.head, messages.covers
        shown = messages.messages_after(covers)
        session = await read_session(self.view.log, self.bot, head=head)
        tells_from = max(0, head - TOLD_EVENTS)
        board = self.board = BotBoard(
            session,
            shown,
            head=head,
            covers=covers,
            before=await self.before.find(shown, cleared_seq=session.cleared_seq, head=head),
            asides=await past_asides(self.view.log, self.bot, await self.view.log.texts(tells_from + 1, head)),
            tells_from=tells_from,
            after=self.board,
        )
        self._ring()
        while True:
            messages = await self._next(following, beyond=board.head)
            if messages.covers > board.head:
                return
            head, changed = messages.head, messages.messages_after(board.head)
            texts = await _read(along, board.head + 1, head)
            await know_runs(session, self.view.log, texts)
            before = await self.before.find(changed, cleared_seq=session.cleared_seq_after(texts), head=head)
            board.show(texts, changed, head=head, before=before)
            if messages.covers > board.covers:
                board.forget(messages.covers)
            self._ring()

    async def _next(self, following: Following, *, beyond: int) -> Board:
        loop = asyncio.get_running_loop()
        while True:
            self._bell.clear()
            if loop.time() >= self._next_look:
                self._next_look = loop.time() + ROSTER_SECONDS
                await self._look_at_bot()
            if following.error is not None:
                raise following.error
            if following.board is not None and following.board.head > beyond:
                return following.board
            with suppress(TimeoutError):
                async with asyncio.timeout_at(self._next_look):
                    await self._bell.wait()

    async def _look_at_bot(self) -> None:
        board = self.board
        if board is None:
            return
        before, now = self.bot, await self._hub.store.get_principal(self.bot.principal_id)
        changed = [name for field, name in _LISTED.items() if getattr(before, field) != getattr(now, field)]
        if changed:
            self.bot = board.session.bot = now
            if board.session.has_left:
                return
            frame = roster_change(now, kind="updated", at_ms=self._clock(), changed=changed)
            board.tell([Aside(board.head, frame)])
            self._ring()

    def _ring(self) -> None:
        for bell in self.bells:
            bell()


async def _read(along: Along, first: int, last: int) -> Sequence[bytes]:
    texts: list[bytes] = []
    while first + len(texts) <= last:
        texts += await along.read(first + len(texts))
    return texts[: last - first + 1]


async def find_bot(hub: Hub, bot_id: str) -> Principal:
    """The bot of that id. `NotFound` if there is none."""
    principal = await hub.store.get_principal(bot_id)
    if principal.kind != "bot":
        raise NotFound(f'There is no bot "{bot_id}".')
    return principal


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchStatistics:
    """How many sessions of bots are watched, by how many watchers."""

    sessions: int
    watchers: int


class BotFollowings:
    """All sessions of bots that are watched on a node."""

    def __init__(self, hub: Hub, followings: Followings, clock: Clock) -> None:
        self.hub = hub
        self.clock = clock
        self._followings = followings
        self.tasks = TaskOwner()
        self._sessions: dict[Key, BotFollowing] = {}
        self._running: dict[BotFollowing, asyncio.Task[None]] = {}

    def join(self, bot: Principal, thread_id: str, bell: Bell) -> BotFollowing:
        """The session's following, for one more watcher, whose bell is rung whenever there may be something new. `leave` it."""
        key = (bot.principal_id, thread_id)
        following = self._sessions.get(key)
        if following is None or following.error is not None:
            following = BotFollowing(bot, thread_id, self._followings, self.hub, self.clock)
            self._sessions[key] = following
            self._running[following] = self.tasks.spawn(following.run())
        following.bells.add(bell)
        return following

    def leave(self, following: BotFollowing, bell: Bell) -> None:
        """The watcher goes. Idempotent."""
        following.bells.discard(bell)
        running = self._running.pop(following, None) if not following.bells else None
        if running is not None:
            running.cancel()
            key = (following.bot.principal_id, following.thread_id)
            if self._sessions.get(key) is following:
                del self._sessions[key]

    def statistics(self) -> WatchStatistics:
        """How much there is."""
        return WatchStatistics(
            sessions=len(self._sessions),
            watchers=sum(len(following.bells) for following in self._sessions.values()),
        )

    async def close(self) -> None:
        """Ends everything: watchers are told to come back elsewhere."""
        await self.tasks.close()
