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
from bubble.server.messages.glances import glance, reaction_target, starters, talkers
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
            for text in texts:
                if await growing._concerned_outside(text) is not None:
                    growing.covers = glance(text).seq
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
        glances = [glance(text) for text in texts]
        talking = talkers(glances) - starters(glances)
        strangers = {run_id for run_id in talking if not self._portion.holds(run_id)}
        if strangers:
            await self._fold_anew(self._first, strangers)
        before, self.head = self.head, glances[-1].seq
        await self._portion.add(texts)
        snapshot = await self._portion.snapshot()
        changes = message_changes(self._snapshot, snapshot)
        self._snapshot = snapshot
        changed = [*self._portion.trusted(changes.upserts), *await self._changed_outside(texts, after=before)]
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

    async def _changed_outside(self, texts: Sequence[bytes], *, after: int) -> list[BubbleMessage]:
        concerned = {outside for text in texts if (outside := await self._concerned_outside(text)) is not None}
        changed: list[BubbleMessage] = []
        for outside in concerned:
            messages = await (self._read_run(outside) if isinstance(outside, str) else self._read_lone(outside))
            changed += [message for message in messages if last_seq(message) > after]
        return changed

    async def _concerned_outside(self, text: bytes) -> str | int | None:
        """The run, or the seq of the message without one, that the event changes though it is not in the portion."""
        seen = glance(text)
        if seen.finishes and seen.run_id is not None:
            return None if self._portion.holds(seen.run_id) else seen.run_id
        target = reaction_target(text)
        if target is None or target > self.head:
            return None
        holder = glance((await self._view.log.texts(target, target))[0])
        if holder.run_id is None:
            return target if target < self._portion.begin else None
        return None if self._portion.holds(holder.run_id) else holder.run_id

    async def _read_run(self, run_id: str) -> list[BubbleMessage]:
        return await read_run(self._view, run_id, head=self.head)

    async def _read_lone(self, seq: int) -> list[BubbleMessage]:
        return await read_lone(self._view, seq, head=self.head)
