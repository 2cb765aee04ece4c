"""The log gone through from some place on, for those who are too far behind for the board: a long history, or a long absence.

A stretch is shared, too: whoever begins at the beginning comes by the same places.

Whoever left in the midst of the rows of one event gets the others of that event first, and as they are now. As they were at some earlier
time there may be more of them, so that those which are missing had lower numbers, and would be taken for what is there already.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import takewhile
from typing import Final, NamedTuple

from bubble.assembler import BubbleMessage
from bubble.server.messages.growing import Growing
from bubble.server.messages.paging import left_of
from bubble.server.messages.portion import View
from bubble.server.watching.clearing import BeforeClear
from bubble.server.watching.history import past_asides
from bubble.server.watching.posting import placed
from bubble.server.watching.session import Aside, BotSession
from bubble.server.watching.slices import (
    Numbered,
    Place,
    Posted,
    Slice,
    Whose,
    counter_of,
    cut,
    is_amid,
    numbered_back,
    seq_behind,
)

__all__ = ["STRETCH_EVENTS", "From", "Stretch", "Stretches"]

#: How much of the log a stretch goes through; more events where a run is longer than that.
STRETCH_EVENTS: Final = 4_096
STRETCH_BYTES: Final = 4 * 1024 * 1024
_KEPT: Final = 2


class From(NamedTuple):
    """Where a stretch begins, which seq it may not go beyond, and how many events it should have.

    `told`: with asides. `replay`: it was there before whoever is to get it. `now`: the head, for who begins in the midst of an event.
    """

    counter: int
    last: int
    events: int
    told: bool
    replay: bool
    now: int


class Stretch:
    """What a piece of the log changed, as it was at its end; cut into slices as they are asked for, once for everybody.

    `size` is how many events were folded for it, `end` the counter of who has got all of it.
    """

    def __init__(
        self, rows: list[Posted], asides: list[Aside], *, whose: Whose, begin: From, head: int, size: int
    ) -> None:
        self.size = size
        self.end = counter_of(head)
        self._rows = rows
        self._asides = [Numbered(number, aside) for number, aside in enumerate(asides, start=1)]
        self._whose = whose
        self._replay = begin.replay
        self._place = Place(begin.counter, 0)
        self._end = Place(self.end, len(asides), head)
        self._slices: list[Slice] = []

    def slice(self, number: int) -> Slice | None:
        """The slices from 0 on, each when the one before was asked for; None after the last."""
        if number == len(self._slices) and self._place != self._end:
            rows = [each for each in self._rows if each.counter > self._place.counter]
            asides = self._asides[self._place.heard :]
            made = cut(rows, asides, whose=self._whose, before=self._place, end=self._end, replay=self._replay)
            self._slices.append(made)
            self._place = made.place
        return self._slices[number] if number < len(self._slices) else None


class Stretches:
    """All stretches of one thread as one bot's session."""

    def __init__(self, view: View, before: BeforeClear) -> None:
        self._view = view
        self._before = before
        self._lock = asyncio.Lock()
        self._kept: dict[tuple[From, int], Stretch] = {}

    async def find(self, begin: From, session: BotSession) -> Stretch | None:
        """The stretch from there on, of the session's present generation; None if there is nothing yet. Raises what the store raises."""
        key = (begin, session.generation)
        async with self._lock:
            stretch = self._kept.pop(key, None) or await self._read(begin, session)
            if stretch is not None:
                self._kept[key] = stretch
            while len(self._kept) > _KEPT:
                del self._kept[next(iter(self._kept))]
            return stretch

    async def _read(self, begin: From, session: BotSession) -> Stretch | None:
        whose = Whose(session.bot_id, session.thread_id, session.generation)
        first = seq_behind(begin.counter)
        length = 1 if is_amid(begin.counter) else begin.events
        texts = await self._texts(first + 1, min(begin.last, first + length))
        if not texts:
            return None
        head = first + len(texts)
        if is_amid(begin.counter):
            changed: Sequence[BubbleMessage] = await left_of(self._view, texts[0], head=begin.now)
            size = begin.events
        else:
            growing = await Growing.after(self._view, first)
            changed = (await growing.grow(texts)).upserts
            size = growing.size
        before = await self._before.find(changed, cleared_seq=session.cleared_seq, head=head)
        deleted = {entry_id: seq for entry_id, seq in session.deleted.items() if first < seq <= head}
        told = list(placed(changed, session, deleted=deleted, before=before))
        rows = [*takewhile(lambda row: row.counter > begin.counter, numbered_back(reversed(told)))][::-1]
        asides = await past_asides(self._view.log, session.bot, texts) if begin.told else []
        return Stretch(rows, asides, whose=whose, begin=begin, head=head, size=size)

    async def _texts(self, first: int, last: int) -> list[bytes]:
        texts: list[bytes] = []
        size = 0
        async for some in self._view.log.slices(first, last):
            texts += some
            size += sum(map(len, some))
            if size >= STRETCH_BYTES:
                break
        return texts
