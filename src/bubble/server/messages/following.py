"""One assembler per thread and grouping, shared by all who watch.

*Theory of operation.* The first viewer makes a `Following`, the last one to leave ends it. It reads along with the thread, folds whatever
came in together, shows the outcome on its board and rings at its viewers; what each of them is sent, and when, is their own business
(`stream`). Then it rests: the more bytes it had to show, the longer, for a growing message is sent whole each time. So a message costs
each viewer half a megabyte a second at most however fast it grows, a long one comes once a second, and an ordinary one is never late by
more than a blink. It also rests as long as it worked, up to a second: a flood of reactions to what is long gone by, which has to be looked
up, leaves half of the time to others. Meanwhile events gather in the log, where they are anyway.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from bubble.assembler import Assembler, Grouping, MessageChanges
from bubble.hub import Along, Hub
from bubble.hub.tasks import TaskOwner
from bubble.protocol.errors import BubbleError, InternalError
from bubble.server.messages.board import Board
from bubble.server.messages.forms import Format
from bubble.server.messages.growing import Growing
from bubble.server.messages.portion import View
from bubble.server.messages.reading import ThreadLog, Turns

__all__ = ["Following", "Followings", "MessageStatistics"]

#: With how many messages a following begins: what a viewer is shown who does not ask for more.
FIRST_MESSAGES: Final = 50
#: How long it rests between two looks: a second for so many bytes that it showed, within these bounds (seconds).
BYTES_PER_SECOND: Final = 512 * 1024
SHORTEST_REST: Final = 0.01
LONGEST_REST: Final = 1.0

Bell: TypeAlias = Callable[[], None]
Key: TypeAlias = tuple[str, Grouping]


class Following:
    """A thread in one grouping, as it grows. `board` is None until it is there. Made by `Followings.join`."""

    def __init__(self, view: View, hub: Hub) -> None:
        self.view = view
        self.board: Board | None = None
        self.error: BubbleError | None = None
        self.bells: dict[Bell, Format] = {}
        self._hub = hub

    async def run(self) -> None:
        """Follows until it is cancelled, or cannot go on: then `error` says why."""
        along: Along | None = None
        try:
            along = await self._hub.read_along(self.view.log.thread_id)
            await self._follow(along)
        except BubbleError as error:
            self.error = error
        finally:
            if along is not None:
                along.close()
            self.error = self.error or InternalError("The messages cannot be shown.")
            self._ring()

    async def _follow(self, along: Along) -> None:
        growing = await Growing.with_messages(self.view, FIRST_MESSAGES, head=along.head)
        board = self.board = Board(growing)
        self._ring()
        while True:
            await along.beyond(growing.head)
            began = asyncio.get_running_loop().time()
            before, head = growing.head, along.head
            changes = MessageChanges((), ())
            while growing.head < head:  # viewers look whenever they like: what is on its way is not shown to them
                changes = _together(changes, await growing.grow(await along.read(growing.head + 1)))
            board.show(growing, changes)
            self._ring()
            size = max(_size_after(board, before, format) for format in self._formats())
            if await growing.shorten():
                board.forget(growing)
            await asyncio.sleep(rest_after(size, worked=asyncio.get_running_loop().time() - began))

    def _formats(self) -> set[Format]:
        return set(self.bells.values()) or {"json"}

    def _ring(self) -> None:
        for bell in self.bells:
            bell()


def rest_after(size: int, *, worked: float) -> float:
    """How many seconds it rests that has shown so many bytes, and has worked so many seconds for that."""
    return min(max(size / BYTES_PER_SECOND, worked, SHORTEST_REST), LONGEST_REST)


def _together(first: MessageChanges, then: MessageChanges) -> MessageChanges:
    """Both as one."""
    upserts = {message["id"]: message for message in (*first.upserts, *then.upserts)}
    gone = {*first.removals, *then.removals} - {message["id"] for message in then.upserts}
    return MessageChanges(tuple(one for id, one in upserts.items() if id not in gone), tuple(sorted(gone)))


def _size_after(board: Board, position: int, format: Format) -> int:
    """How many bytes those are sent who had everything before. They are made now, for all."""
    size = 0
    while (missing := board.after(position, format)) is not None:
        size += len(missing.data)
        position = missing.position
    return size


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageStatistics:
    """How many threads are watched (once per grouping), by how many viewers; how many events were folded since the start."""

    followings: int
    viewers: int
    folded: int


class Followings:
    """All followings of a node."""

    def __init__(self, hub: Hub, assembler: Assembler, turns: Turns) -> None:
        self._hub = hub
        self._assembler = assembler
        self._turns = turns
        self.tasks = TaskOwner()
        self._followings: dict[Key, Following] = {}
        self._running: dict[Following, asyncio.Task[None]] = {}

    def view(self, thread_id: str, grouping: Grouping) -> View:
        """A thread as it is shown in a grouping."""
        return View(ThreadLog(self._hub.store, thread_id, self._turns), self._assembler, grouping)

    def join(self, thread_id: str, grouping: Grouping, bell: Bell, *, format: Format = "json") -> Following:
        """The thread's following, for one more viewer, whose bell is rung whenever there may be something new. `leave` it."""
        following = self._followings.get((thread_id, grouping))
        if following is None or following.error is not None:
            following = Following(self.view(thread_id, grouping), self._hub)
            self._followings[thread_id, grouping] = following
            self._running[following] = self.tasks.spawn(following.run())
        following.bells[bell] = format
        return following

    def leave(self, following: Following, bell: Bell) -> None:
        """The viewer goes. Idempotent."""
        following.bells.pop(bell, None)
        running = self._running.pop(following, None) if not following.bells else None
        if running is not None:
            running.cancel()
            key = (following.view.log.thread_id, following.view.grouping)
            if self._followings.get(key) is following:
                del self._followings[key]

    def statistics(self) -> MessageStatistics:
        """How much there is, and how much there was."""
        return MessageStatistics(
            followings=len(self._followings),
            viewers=sum(len(following.bells) for following in self._followings.values()),
            folded=self._turns.folded,
        )

    async def close(self) -> None:
        """Ends everything."""
        await self.tasks.close()
