"""Which part of a thread's past a connector goes through when it comes to the thread (spec 5, "Resuming on restart").

*Theory of operation.* Three numbers say it. The **floor** is the last event that is not considered: the checkpoint, the own join, or 0. The
**head** is fixed. The **edge** is the first event of the window: `max_replay` events below the head at first, then lower, until two rules
hold. No run is cut in half: one that has an event in the window, and had not finished before the window, is in it from its beginning. And
an own run in the window that was left open, lost or failed has the question it was answering in the window, too: the edge is not above what
follows the `snapshotSeq` of the own run before it. The edge never goes below the floor.

A run that began below the edge and goes on at the head, without an event in the window, does not move it: somebody may have left it open
for ever, and then each restart would go through all that was said since. Should it end, its beginning is fetched then
(`bubble.amphibian.past.find_beginning`), as for a run that the floor cuts in half.

All that matters of a run is where it begins and ends, so that is all that is kept, and the log is read from its head backwards only as far
as the edge depends on it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from msgspec import UNSET

from bubble.amphibian.known import known_event
from bubble.protocol.events import (
    BubbleEvent,
    MessagePart,
    Outcome,
    ParticipantJoined,
    ParticipantLeft,
    RunFinished,
    RunStarted,
    SequencedEvent,
    ThreadTitleUpdated,
)

__all__ = ["BacklogPolicy", "BacklogReader", "OnFirstJoin", "OnResume", "ReplayWindow", "replay_window"]

OnFirstJoin = Literal["since_joined", "catch_up", "skip_to_head"]
OnResume = Literal["catch_up", "skip_to_head"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BacklogPolicy:
    """What is considered without a checkpoint, what with one, and how many raw events of it are the window at least."""

    on_first_join: OnFirstJoin = "since_joined"
    on_resume: OnResume = "catch_up"
    max_replay: int = 50

    def skips(self, checkpoint: int | None) -> bool:
        """Whether nothing of the past is considered."""
        return (self.on_first_join if checkpoint is None else self.on_resume) == "skip_to_head"

    def stops_at_join(self, checkpoint: int | None) -> bool:
        """Whether what lies before the latest own join is not considered."""
        return checkpoint is not None or self.on_first_join != "catch_up"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayWindow:
    """The events to go through: from `from_seq` to `head`, none where `from_seq` is above.

    `floor` is the last one that is not considered, as far as that was looked for: an own join below the window makes no difference to it.
    """

    floor: int
    from_seq: int
    head: int

    @property
    def skipped(self) -> int:
        """How many events between floor and window are left out."""
        return self.from_seq - 1 - self.floor


@dataclass(slots=True)
class _Span:
    """A run, as far as it has been read: the lowest and the highest seq of its events; whether any is its own, not only about it."""

    lowest: int
    highest: int
    has_own: bool = False
    starts: bool = False
    is_own: bool = False
    snapshot: int | None = None
    finished: int | None = None
    outcome: Outcome | None = None

    @property
    def reach(self) -> int:
        """Its last event. What others say to a run after its end does not count."""
        return self.highest if self.finished is None else self.finished

    @property
    def left_something(self) -> bool:
        """Whether it is an own run whose question may still want an answer."""
        return self.is_own and (self.finished is None or self.outcome in ("lost", "failed"))


class BacklogReader:
    """Takes the log from its head backwards, and knows how far it has to be read.

    `while (wanted := reader.wants()) is not None: reader.take(the events of that range, ascending)`, then `window()`.
    """

    def __init__(self, policy: BacklogPolicy, *, checkpoint: int | None, head: int, own_principal_id: str) -> None:
        self._policy = policy
        self._head = head
        self._own = own_principal_id
        self._floor = min(checkpoint or 0, head)
        self._stops_at_join = policy.stops_at_join(checkpoint)
        self._lowest = head + 1
        self._spans: dict[str, _Span] = {}
        self._edge = head + 1
        self._step = max(200, 2 * policy.max_replay)
        self._is_done = policy.skips(checkpoint)
        self._settle_edge()

    def wants(self) -> range | None:
        """The seqs to read next; None when the window is known."""
        if self._is_done:
            return None
        return range(max(self._floor + 1, self._lowest - self._step), self._lowest)

    def take(self, events: Iterable[SequencedEvent]) -> None:
        """The events of the range that was wanted last, in order."""
        wanted = self.wants()
        if wanted is None:
            raise RuntimeError("Nothing more was wanted.")
        self._lowest = wanted.start
        self._step *= 2  # so that the work stays proportional to what is read
        for stored in reversed(list(events)):
            if stored.seq <= self._floor:
                break
            event = known_event(stored)
            if event is not None:
                self._note(stored.seq, event)
        self._settle_edge()

    def window(self) -> ReplayWindow:
        """The window, once nothing more is wanted."""
        if not self._is_done:
            raise RuntimeError("More of the log has to be read first.")
        return ReplayWindow(floor=self._floor, from_seq=self._edge, head=self._head)

    # --- what was read ----------------------------------------------------------------------------------------------------------

    def _note(self, seq: int, event: BubbleEvent) -> None:
        if isinstance(event, ParticipantJoined):
            if self._stops_at_join and event.principal_id == self._own:
                self._floor = seq
        elif not isinstance(event, ParticipantLeft | ThreadTitleUpdated):
            span = self._spans.setdefault(event.run_id, _Span(lowest=seq, highest=seq))
            span.lowest = seq
            span.has_own |= isinstance(event, RunStarted | MessagePart | RunFinished)
            if isinstance(event, RunStarted):
                span.starts = True
                span.is_own = event.principal_id == self._own
                span.snapshot = None if event.snapshot_seq is UNSET else event.snapshot_seq
            elif isinstance(event, RunFinished) and span.finished is None:
                span.finished = seq
                span.outcome = None if event.outcome is UNSET else event.outcome

    # --- the edge ---------------------------------------------------------------------------------------------------------------

    def _settle_edge(self) -> None:
        if self._is_done:
            return
        has_all = self._lowest <= self._floor + 1
        edge = max(self._floor + 1, self._head + 1 - self._policy.max_replay)
        answered = self._answered()
        depends_on_more = False
        # A lower edge only ever brings in runs that end further down, so one pass from the top finds them all.
        for span in sorted(self._spans.values(), key=lambda each: each.reach, reverse=True):
            if span.reach < edge:
                break
            depends_on_more |= not span.starts
            if span.has_own:
                edge = min(edge, span.lowest)
            if span.left_something:
                before = bisect_left(answered, (span.lowest, 0))
                depends_on_more |= before == 0
                if before:
                    edge = min(edge, answered[before - 1][1] + 1)
                elif has_all:
                    edge = self._floor + 1
        self._edge = max(edge, self._floor + 1)
        self._is_done = has_all or (self._edge >= self._lowest and not depends_on_more)

    def _answered(self) -> list[tuple[int, int]]:
        """Where each own run that says what it answered begins, and its `snapshotSeq`; ascending."""
        return sorted(
            (span.lowest, span.snapshot)
            for span in self._spans.values()
            if span.is_own and span.starts and span.snapshot is not None
        )


def replay_window(
    policy: BacklogPolicy,
    *,
    checkpoint: int | None,
    events: Iterable[SequencedEvent],
    head: int,
    own_principal_id: str,
) -> ReplayWindow:
    """The window of a thread whose events up to the fixed `head` are all here."""
    reader = BacklogReader(policy, checkpoint=checkpoint, head=head, own_principal_id=own_principal_id)
    by_seq = {stored.seq: stored for stored in events}
    while (wanted := reader.wants()) is not None:
        reader.take(_those_of(by_seq, wanted))
    return reader.window()


def _those_of(by_seq: dict[int, SequencedEvent], wanted: range) -> Iterator[SequencedEvent]:
    return (by_seq[seq] for seq in wanted if seq in by_seq)
