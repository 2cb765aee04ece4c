"""Which events a connector is done with (spec 5, "Resuming on restart"). Pure.

*Theory of operation.* Events are settled in any order: a reply settles a question at its end, while what came in between was passed over at
once. `through` is the highest seq with nothing unsettled below it, the checkpoint; `beyond` are the ranges above, kept beside it, so that
one run that stays open for long does not bring back, after a restart, all that was answered meanwhile.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

__all__ = ["SeqRange", "SettlementTracker"]

SeqRange = tuple[int, int]
"""First and last seq, both included."""


class SettlementTracker:
    """Begins where everything up to `checkpoint` is settled, and the ranges `beyond`."""

    def __init__(self, checkpoint: int = 0, *, beyond: Iterable[SeqRange] = ()) -> None:
        self.settled = 0
        self.skipped = 0
        self._through = checkpoint
        self._ranges: list[SeqRange] = []
        for first, last in beyond:
            self._mark(first, last)

    @property
    def through(self) -> int:
        """The highest seq up to which every event is settled or skipped."""
        return self._through

    @property
    def beyond(self) -> Sequence[SeqRange]:
        """What is settled or skipped above `through`: ascending, apart from each other."""
        return tuple(self._ranges)

    def has(self, seq: int) -> bool:
        """Whether the event is settled or skipped."""
        at = bisect_right(self._ranges, (seq, seq)) - 1
        return seq <= self._through or self._within(seq, at) or self._within(seq, at + 1)

    def settle(self, first: int, last: int | None = None) -> None:
        """The events from `first` to `last` (that one alone, without it) were worked off. What was marked before stays as it is."""
        self.settled += self._mark(first, first if last is None else last)

    def skip(self, first: int, last: int | None = None) -> None:
        """The events are passed over on purpose."""
        self.skipped += self._mark(first, first if last is None else last)

    def _within(self, seq: int, at: int) -> bool:
        return 0 <= at < len(self._ranges) and self._ranges[at][0] <= seq <= self._ranges[at][1]

    def _mark(self, first: int, last: int) -> int:
        """Marks a range; how many events of it were not marked yet."""
        first = max(first, self._through + 1)
        if last < first:
            return 0
        if first == self._through + 1 and not self._ranges:  # nearly always
            self._through = last
            return last - first + 1
        count = self._merge(first, last)
        if self._ranges[0][0] == self._through + 1:
            self._through = self._ranges.pop(0)[1]
        return count

    def _merge(self, first: int, last: int) -> int:
        low = bisect_right(self._ranges, (first, 0))
        if low and self._ranges[low - 1][1] >= first - 1:
            low -= 1
        high = bisect_right(self._ranges, (last + 1, last + 1))
        while high < len(self._ranges) and self._ranges[high][0] <= last + 1:
            high += 1
        taken = self._ranges[low:high]
        known = sum(max(0, min(b, last) - max(a, first) + 1) for a, b in taken)
        self._ranges[low:high] = [(min([first, *(a for a, _ in taken)]), max([last, *(b for _, b in taken)]))]
        return last - first + 1 - known
