"""Events are settled in any order; what counts is how far there is no gap."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubble.amphibian.settlement import SettlementTracker

ranges = st.tuples(st.integers(1, 40), st.integers(0, 8)).map(lambda each: (each[0], each[0] + each[1]))


@pytest.mark.requirement("AM-15")
@given(checkpoint=st.integers(0, 10), marks=st.lists(ranges), seqs=st.integers(1, 60))
def test_the_highest_contiguous_event_is_known_whatever_the_order(
    checkpoint: int, marks: list[tuple[int, int]], seqs: int
) -> None:
    tracker, model = SettlementTracker(checkpoint), set(range(1, checkpoint + 1))
    for first, last in marks:
        tracker.settle(first, last)
        model |= set(range(first, last + 1))
        through = next(seq for seq in range(1, 100) if seq not in model) - 1
        assert tracker.through == through
        assert {seq for a, b in tracker.beyond for seq in range(a, b + 1)} == {seq for seq in model if seq > through}
        assert tracker.has(seqs) == (seqs in model)


@pytest.mark.requirement("AM-15")
@given(marks=st.lists(st.tuples(ranges, st.booleans())))
def test_an_event_counts_once_as_settled_or_skipped(marks: list[tuple[tuple[int, int], bool]]) -> None:
    tracker, model = SettlementTracker(), dict[int, bool]()
    for (first, last), is_skipped in marks:
        (tracker.skip if is_skipped else tracker.settle)(first, last)
        for seq in range(first, last + 1):
            model.setdefault(seq, is_skipped)
    assert (tracker.skipped, tracker.settled) == (sum(model.values()), len(model) - sum(model.values()))


@given(marks=st.lists(ranges))
def test_ranges_beyond_are_ascending_and_apart(marks: list[tuple[int, int]]) -> None:
    tracker = SettlementTracker()
    for first, last in marks:
        tracker.skip(first, last)
    ends = [tracker.through, *(seq for pair in tracker.beyond for seq in pair)]
    assert ends == sorted(ends)
    assert all(later[0] - earlier > 1 for earlier, later in zip(ends[::2], tracker.beyond, strict=False))


@given(checkpoint=st.integers(0, 10), marks=st.lists(ranges))
def test_a_tracker_goes_on_from_what_another_one_left(checkpoint: int, marks: list[tuple[int, int]]) -> None:
    first = SettlementTracker(checkpoint)
    for each in marks:
        first.settle(*each)
    second = SettlementTracker(first.through, beyond=first.beyond)
    assert (second.through, second.beyond) == (first.through, first.beyond)


def test_one_event_after_the_other_leaves_nothing_beyond() -> None:
    tracker = SettlementTracker()
    for seq in range(1, 1_001):
        tracker.skip(seq)
    assert (tracker.through, tracker.beyond) == (1_000, ())
