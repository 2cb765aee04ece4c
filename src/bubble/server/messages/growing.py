"""The newest part of a thread as it grows: which messages each further piece of the log changes.

*Theory of operation.* A `Growing` begins with a portion of the log and folds in what follows. Every message that it tells of is exactly the
one that the whole thread has, also where an event is about something before the portion:

- a run that is not in the portion goes on talking: the portion is folded anew, from that run's beginning;
- a run that is not in the portion ends, or one of its messages gets a reaction: its messages are folded by themselves, told, and forgotten;
- the portion has become much longer than what people look at: it is folded anew, and begins later.

So what a thread costs does not grow with the thread, however long it is followed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from bubble.assembler import BubbleMessage, MessageChanges, ThreadSnapshot, message_changes
from bubble.server.messages.glances import Survey, glance
from bubble.server.messages.paging import Look, newest, read_lone, read_run
from bubble.server.messages.portion import Portion, View, first_seq, last_seq

__all__ = ["Growing"]

#: A portion of more events than this, and of twice as many as it began with, begins anew, with so many messages.
LONG_EVENTS: Final = 20_000
KEPT_MESSAGES: Final = 200


class Growing:
    """A thread from some message on, up to `head`. Made by `with_messages` or `after`.

    `covers` is the seq after which no change of a message is missing in `messages`, or was missing in what `grow` told. Everything raises
    what the store raises, and is of no more use then.
    """

    def __init__(self, view: View, portion: Portion, snapshot: ThreadSnapshot, *, first: int, head: int) -> None:
        self.head = head
        self.covers = first - 1
        self._view = view
        self._portion = portion
        self._snapshot = snapshot
        self._first = first
        self._long = max(LONG_EVENTS, 2 * portion.size)

    @classmethod
    async def with_messages(cls, view: View, limit: int, *, head: int) -> Growing:
        """Begins with the newest `limit` messages, or all, as they are at `head`."""
        look = Look(view, end=head + 1, head=head)
        portion, _ = await look.find(limit)
        growing = cls(view, portion, await portion.snapshot(), first=look.first, head=head)
        async for texts in view.log.slices(look.first, head):
            if await growing._concerned(await view.log.survey(texts)):
                growing.covers = await growing._last_outside(texts)
        return growing

    @classmethod
    async def after(cls, view: View, seq: int) -> Growing:
        """Begins with nothing after the event `seq`."""
        portion = await Portion.fold(view, first=seq + 1, last=seq)
        return cls(view, portion, await portion.snapshot(), first=seq + 1, head=seq)

    @property
    def first(self) -> int:
        """The seq from which on no message is missing."""
        return self._portion.first

    @property
    def size(self) -> int:
        """How many events are held."""
        return self._portion.size

    @property
    def messages(self) -> list[BubbleMessage]:
        """The messages that are known, in their order; some may be missing before `first`."""
        return self._portion.trusted(self._snapshot.messages)

    async def grow(self, texts: Sequence[bytes]) -> MessageChanges:
        """Folds in what follows `head`; the messages that it changed, in their order."""
        seen = await self._view.log.survey(texts)
        strangers = {run_id for run_id in seen.talkers - seen.starters if not self._portion.holds(run_id)}
        if strangers:
            await self._fold_anew(self._first, strangers)
        before, self.head = self.head, self.head + len(texts)
        await self._portion.add(texts)
        snapshot = await self._portion.snapshot()
        changes = message_changes(self._snapshot, snapshot)
        self._snapshot = snapshot
        changed = [*self._portion.trusted(changes.upserts), *await self._changed_outside(seen, after=before)]
        return MessageChanges(tuple(sorted(changed, key=first_seq)), changes.removals)

    async def shorten(self) -> bool:
        """Begins later, where it has become long; whether it did."""
        if self._portion.size <= self._long:
            return False
        kept = newest([one for one in self._snapshot.messages if first_seq(one) >= self.first], KEPT_MESSAGES)
        await self._fold_anew(first_seq(kept[0]) if kept else self.head + 1, ())
        return True

    async def _fold_anew(self, first: int, runs: Collection[str]) -> None:
        self._portion = await Portion.fold(self._view, first=first, last=self.head, runs=runs)
        self._snapshot = await self._portion.snapshot()
        self._first = first
        self._long = max(LONG_EVENTS, 2 * self._portion.size)

    # What is not in the portion

    async def _changed_outside(self, seen: Survey, *, after: int) -> list[BubbleMessage]:
        changed: list[BubbleMessage] = []
        for concerned in await self._concerned(seen):
            changed += [message for message in await self._read(concerned) if last_seq(message) > after]
        return changed

    async def _read(self, concerned: str | int) -> list[BubbleMessage]:
        if isinstance(concerned, str):
            return await read_run(self._view, concerned, head=self.head)
        return await read_lone(self._view, concerned, head=self.head)

    async def _last_outside(self, texts: Sequence[bytes]) -> int:
        """The seq of the last event that changes what is not in the portion; there is one."""
        log = self._view.log
        return max([glance(text).seq for text in texts if await self._concerned(await log.survey([text]))])

    async def _concerned(self, seen: Survey) -> set[str | int]:
        """The runs, and the seqs of messages without one, that the events change though they are not in the portion."""
        concerned: set[str | int] = {run_id for run_id in seen.finishers if not self._portion.holds(run_id)}
        for target in seen.targets:
            if target <= self.head and (holder := await self._outside(target)) is not None:
                concerned.add(holder)
        return concerned

    async def _outside(self, seq: int) -> str | int | None:
        """What the event belongs to, if that is not in the portion."""
        [text] = await self._view.log.texts(seq, seq)
        run_id = glance(text).run_id
        if run_id is None:
            return seq if seq < self._portion.begin else None
        return None if self._portion.holds(run_id) else run_id
