"""A part of a thread, folded so that its messages are exactly those that folding the whole thread would give.

*Theory of operation.* What a message is depends on its own run, from the run's beginning, and on who else showed something while that run
went on: a continuation opens where another message came in between. So a portion begins early enough for every run that has something to
say in it (`talkers`) to have begun there. But in the stretch that this adds, runs may go on that began earlier still. They are **cut**.
Whether an event of a cut run shows anything depends on that run's own past alone (an orphan delta shows nothing), so that past is folded,
too, but nothing of the time around it. Then everybody's turns are as they were, and only the messages of the cut runs themselves, of which
nothing is wanted, may have wrong ids or be missing. So however busy a thread is, a portion reaches no further back than its own runs, and
what overlaps them.

Reactions are the one thing that reaches from one run to another: one to a message before the portion is not for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from bubble.assembler import Assembler, BubbleMessage, Grouping, ThreadSnapshot
from bubble.protocol.events import SequencedEvent
from bubble.server.messages.reading import ThreadLog

__all__ = ["Portion", "View", "first_seq", "last_seq", "run_of"]

#: How many events, and bytes of them, are folded in one turn of the event loop.
SLICE_EVENTS: Final = 256
SLICE_BYTES: Final = 128 * 1024


def first_seq(message: BubbleMessage) -> int:
    """The seq of the event that opened the message."""
    return message["metadata"]["bubble"]["firstSeq"]


def last_seq(message: BubbleMessage) -> int:
    """The seq of the last event that changed the message."""
    return message["metadata"]["bubble"]["lastSeq"]


def run_of(message: BubbleMessage) -> str | None:
    """The run that the message belongs to; None if it belongs to none."""
    return message["metadata"]["bubble"].get("runId")


@dataclass(frozen=True, slots=True)
class View:
    """A thread's log, and how it is shown."""

    log: ThreadLog
    assembler: Assembler
    grouping: Grouping


class Portion:
    """A part of a thread, folded: all events from `begin` on. From `first` on no message is missing. Made by `fold`.

    `size` is how many events it took, and `bytes` how many bytes.
    """

    def __init__(self, view: View, *, begin: int, first: int, cut: Collection[str], held: Collection[str]) -> None:
        self.begin = begin
        self.first = first
        self.size = 0
        self.bytes = 0
        self._cut = cut
        self._held = set(held)
        self._log = view.log
        self._thread = view.assembler.open(grouping=view.grouping)

    @classmethod
    async def fold(cls, view: View, *, first: int, last: int, runs: Collection[str] = ()) -> Portion:
        """The portion from `first` (or earlier) to `last`, with all of `runs` and all of whatever talks from `first` on."""
        log = view.log
        texts = await log.texts(first, last)
        seen = await log.survey(texts)
        wanted = {*runs, *seen.talkers}
        begin = await log.beginning(wanted, at_most=first)
        before = await log.texts(begin, first - 1)
        seen_before = await log.survey(before)
        cut = seen_before.talkers - seen_before.starters if begin > 1 else set()
        whole = max((seen_before.last_of[run_id] for run_id in cut), default=begin - 1) + 1
        held = wanted | seen_before.starters | seen.starters
        portion = cls(view, begin=begin, first=whole, cut=cut, held=held)
        async for past in log.of_runs(cut, await log.beginning(cut, at_most=begin), begin - 1):
            await portion._fold(past)
        await portion._fold([*before, *texts])
        return portion

    def holds(self, run_id: str) -> bool:
        """Whether the run is in here from its beginning."""
        return run_id in self._held

    async def add(self, texts: Sequence[bytes]) -> None:
        """Folds what comes after, in slices."""
        self._held |= (await self._log.survey(texts)).starters
        await self._fold(texts)

    async def _fold(self, texts: Sequence[bytes]) -> None:
        self.size += len(texts)
        self.bytes += sum(map(len, texts))
        self._log.turns.folded += len(texts)
        events: list[SequencedEvent] = []
        size = 0
        for text in texts:
            if len(events) == SLICE_EVENTS or (events and size + len(text) > SLICE_BYTES):
                await self._thread.apply(events)
                await self._log.turns.next()
                events, size = [], 0
            events.append(SequencedEvent.from_stored(text))
            size += len(text)
        if events:
            await self._thread.apply(events)

    async def snapshot(self) -> ThreadSnapshot:
        """Everything that was folded into a message, whether it can be trusted or not."""
        return await self._thread.snapshot()

    def trusted(self, messages: Iterable[BubbleMessage]) -> list[BubbleMessage]:
        """Those of its messages that are exactly as in the whole thread. Before `first` some may be missing."""
        return [message for message in messages if run_of(message) not in self._cut]
