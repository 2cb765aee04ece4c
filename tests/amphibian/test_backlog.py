"""Which part of a thread's past is gone through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bubble.amphibian.backlog import BacklogPolicy, BacklogReader, OnFirstJoin, OnResume, ReplayWindow, replay_window
from bubble.protocol.events import SequencedEvent
from tests.amphibian.logs import ME, finish, interrupt, joined, log, part, said, start


def window(events: Sequence[SequencedEvent], *, checkpoint: int | None = None, **policy: object) -> ReplayWindow:
    return replay_window(
        BacklogPolicy(**policy),  # type: ignore[arg-type]
        checkpoint=checkpoint,
        events=events,
        head=len(events),
        own_principal_id=ME,
    )


def edge(events: Sequence[SequencedEvent], *, checkpoint: int | None = None, **policy: object) -> int:
    return window(events, checkpoint=checkpoint, **policy).from_seq


# --- what is considered ---------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("AM-01")
def test_without_a_checkpoint_what_came_since_the_latest_own_join_is_considered() -> None:
    events = log(said("r1"), joined(), said("r2"), joined(), said("r3"))
    assert window(events) == ReplayWindow(floor=12, from_seq=13, head=17)


@pytest.mark.requirement("AM-01")
def test_where_the_own_join_is_not_in_the_log_all_of_it_is_considered() -> None:
    events = log(joined("alice"), said("r1"))
    assert edge(events) == 1


@pytest.mark.requirement("AM-02")
def test_catching_up_at_first_considers_what_came_before_the_join_as_well() -> None:
    events = log(said("r1"), joined(), said("r2"))
    assert edge(events, on_first_join="catch_up") == 1


@pytest.mark.requirement("AM-03", "AM-05")
@pytest.mark.parametrize("checkpoint", [None, 4])
def test_skipping_to_the_head_considers_nothing(checkpoint: int | None) -> None:
    events = log(joined(), said("r1"))
    found = window(events, checkpoint=checkpoint, on_first_join="skip_to_head", on_resume="skip_to_head")
    assert found == ReplayWindow(floor=checkpoint or 0, from_seq=7, head=6)


@pytest.mark.requirement("AM-04")
@pytest.mark.parametrize("on_first_join", ["since_joined", "catch_up", "skip_to_head"])
def test_with_a_checkpoint_what_came_after_it_is_considered(on_first_join: str) -> None:
    events = log(joined(), said("r1"), said("r2"))
    assert edge(events, checkpoint=6, on_first_join=on_first_join) == 7


@pytest.mark.requirement("AM-04", "AM-08")
def test_what_was_said_while_the_bot_was_away_is_not_considered_when_it_is_back() -> None:
    events = log(joined(), said("r1"), said("r2"), joined(), said("r3"))
    assert edge(events, checkpoint=6) == 13


def test_a_checkpoint_beyond_the_head_considers_nothing() -> None:
    assert window(log(joined(), said("r1")), checkpoint=90) == ReplayWindow(floor=6, from_seq=7, head=6)


@pytest.mark.parametrize("checkpoint", [None, 0])
def test_an_empty_thread_has_an_empty_window(checkpoint: int | None) -> None:
    assert window([], checkpoint=checkpoint) == ReplayWindow(floor=0, from_seq=1, head=0)


# --- how much of it -------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("AM-06")
def test_the_window_is_the_newest_fifty_events() -> None:
    events = log(joined(), *(interrupt("r") for _ in range(60)))
    found = window(events)
    assert (found.from_seq, found.skipped) == (12, 10)


@pytest.mark.requirement("AM-07")
def test_a_run_that_would_be_cut_in_half_is_in_the_window_as_a_whole() -> None:
    events = log(joined(), said("r1"), said("r2"))
    assert edge(events, max_replay=2) == 7


@pytest.mark.requirement("AM-07")
def test_runs_that_overlap_bring_each_other_in() -> None:
    events = log(joined(), start("a"), start("b"), finish("a"), start("c"), finish("b"), finish("c"))
    assert edge(events, max_replay=1) == 2


@pytest.mark.requirement("AM-07")
def test_what_is_said_to_a_run_after_its_end_does_not_bring_it_in() -> None:
    events = log(joined(), said("r1"), said("r2"), interrupt("r1"))
    assert edge(events, max_replay=1) == 12


@pytest.mark.requirement("AM-07")
def test_an_open_run_that_is_spoken_to_is_in_the_window_as_a_whole() -> None:
    events = log(joined(), start("r1"), said("r2"), interrupt("r1"))
    assert edge(events, max_replay=1) == 2


@pytest.mark.requirement("AM-08")
@pytest.mark.parametrize("checkpoint", [2, 3])
def test_a_run_that_began_before_the_checkpoint_does_not_bring_back_what_is_settled(checkpoint: int) -> None:
    events = log(joined(), start("r1"), part("r1"), part("r1"), finish("r1"))
    assert edge(events, checkpoint=checkpoint, max_replay=1) == checkpoint + 1


@pytest.mark.requirement("AM-08")
def test_a_run_that_began_before_the_join_is_in_the_window_from_the_join_on() -> None:
    events = log(start("r1"), part("r1"), joined(), part("r1"), said("r2"), finish("r1"))
    assert edge(events, max_replay=1) == 4


# --- own runs that were left ----------------------------------------------------------------------------------------------------


def answered(run: str, snapshot: int, *parts: Mapping[str, object], outcome: str | None) -> list[Mapping[str, object]]:
    ending = [] if outcome is None else [finish(run, ME, outcome=outcome)]
    return [start(run, ME, kind="agent_work", snapshot=snapshot), *parts, *ending]


@pytest.mark.requirement("AM-12")
@pytest.mark.parametrize("outcome", [None, "lost", "failed"])
def test_a_question_is_not_dropped_behind_its_own_half_written_answer(outcome: str | None) -> None:
    half = [part("a2", who=ME) for _ in range(60)]
    events = log(
        joined(),
        said("q1"),
        answered("a1", 6, outcome="success"),
        said("q2"),
        answered("a2", 13, *half, outcome=outcome),
    )
    assert edge(events) == 7


@pytest.mark.requirement("AM-12")
@pytest.mark.parametrize("outcome", ["success", "interrupted"])
def test_a_question_that_was_answered_is_not_brought_back(outcome: str) -> None:
    answer = [part("a1", who=ME) for _ in range(60)]
    events = log(joined(), said("q1"), answered("a1", 6, *answer, outcome=outcome))
    assert edge(events) == 7


@pytest.mark.requirement("AM-12")
def test_an_own_run_that_was_left_with_none_before_it_brings_back_all_that_is_considered() -> None:
    half = [part("a1", who=ME) for _ in range(60)]
    events = log(joined(), said("q1"), answered("a1", 6, *half, outcome=None))
    assert edge(events) == 2


@pytest.mark.requirement("AM-12")
def test_one_failed_answer_after_the_other_brings_back_the_first_question_too() -> None:
    half = [part("a2", who=ME) for _ in range(60)]
    events = log(
        joined(), said("q1"), answered("a1", 6, outcome="failed"), said("q2"), answered("a2", 13, *half, outcome=None)
    )
    assert edge(events) == 2


@pytest.mark.requirement("AM-12", "AM-08")
def test_a_question_before_the_checkpoint_stays_settled() -> None:
    half = [part("a1", who=ME) for _ in range(60)]
    events = log(joined(), said("q1"), answered("a1", 6, *half, outcome=None))
    assert edge(events, checkpoint=5) == 6


# --- against a model, and read backwards ----------------------------------------------------------------------------------------

RUNS = ("a", "b", "c", "d")
PEOPLE = ("alice", ME)


@st.composite
def logs(draw: st.DrawFn) -> list[SequencedEvent]:
    """Logs that a strict server could hold: runs begin once, end once at most, and speak in between."""
    events: list[Mapping[str, object]] = []
    open_runs: dict[str, str] = {}
    known: dict[str, str] = {}
    for number in range(draw(st.integers(0, 40))):
        step = draw(st.sampled_from(["start", "start", "part", "part", "finish", "finish", "interrupt", "join"]))
        if step == "start":
            run, who = f"r{number}", draw(st.sampled_from(PEOPLE))
            open_runs[run] = known[run] = who
            events.append(start(run, who, snapshot=draw(st.none() | st.integers(0, len(events)))))
        elif step == "join":
            events.append(joined(draw(st.sampled_from(PEOPLE))))
        elif step == "interrupt" and known:
            events.append(interrupt(draw(st.sampled_from(sorted(known)))))
        elif open_runs:
            run = draw(st.sampled_from(sorted(open_runs)))
            if step == "part":
                events.append(part(run, who=open_runs[run]))
            else:
                outcome = draw(st.sampled_from([None, "success", "failed", "lost", "interrupted"]))
                events.append(finish(run, open_runs.pop(run), outcome=outcome))
    return log(*events)


@dataclass(frozen=True)
class Model:
    """The rules, as slowly as they are said."""

    events: Sequence[SequencedEvent]
    policy: BacklogPolicy
    checkpoint: int | None

    def floor(self) -> int:
        joins = [
            int(str(e["seq"])) for e in self._wire() if e["type"] == "participant_joined" and e["principalId"] == ME
        ]
        latest = max(joins, default=0) if self._looks_at_join() else 0
        return max(min(self.checkpoint or 0, len(self.events)), latest)

    def edge(self) -> int:
        floor, head = self.floor(), len(self.events)
        found = max(floor + 1, head + 1 - self.policy.max_replay)
        while True:
            lower = max(floor + 1, min([found, *self._demands(found, floor)]))
            if lower == found:
                return found
            found = lower

    def _looks_at_join(self) -> bool:
        return self.checkpoint is not None or self.policy.on_first_join == "since_joined"

    def _wire(self) -> list[dict[str, object]]:
        return [dict(each.to_dict()) for each in self.events]

    def _demands(self, found: int, floor: int) -> list[int]:
        demands = []
        considered = [e for e in self._wire() if int(str(e["seq"])) > floor and "runId" in e]
        for run in {e["runId"] for e in considered}:
            of_it = [e for e in considered if e["runId"] == run]
            first, last = of_it[0], of_it[-1]
            ends = [e for e in of_it if e["type"] == "run_finished"]
            if not {"run_started", "message_part", "run_finished"} & {e["type"] for e in of_it}:
                continue
            reach = int(str((ends[0] if ends else last)["seq"]))
            if reach < found:
                continue
            demands.append(int(str(first["seq"])))
            is_own = first["type"] == "run_started" and first["principalId"] == ME
            if is_own and (not ends or ends[0].get("outcome") in ("failed", "lost")):
                before = [
                    int(str(e["snapshotSeq"]))
                    for e in considered
                    if e["type"] == "run_started"
                    and e["principalId"] == ME
                    and "snapshotSeq" in e
                    and int(str(e["seq"])) < int(str(first["seq"]))
                ]
                demands.append(before[-1] + 1 if before else floor + 1)
        return demands


policies = st.builds(
    BacklogPolicy,
    on_first_join=st.sampled_from(["since_joined", "catch_up"]),
    on_resume=st.just("catch_up"),
    max_replay=st.integers(0, 12),
)


@pytest.mark.requirement("AM-06", "AM-07", "AM-08", "AM-12")
@settings(max_examples=500)
@given(events=logs(), policy=policies, checkpoint=st.none() | st.integers(0, 45))
def test_the_window_is_what_the_rules_say(
    events: list[SequencedEvent], policy: BacklogPolicy, checkpoint: int | None
) -> None:
    model = Model(events, policy, checkpoint)
    found = replay_window(policy, checkpoint=checkpoint, events=events, head=len(events), own_principal_id=ME)
    assert found.from_seq == model.edge()
    assert found.floor <= model.floor()


@given(events=logs(), policy=policies, checkpoint=st.none() | st.integers(0, 45), steps=st.data())
def test_read_backwards_in_small_steps_the_window_is_the_same(
    events: list[SequencedEvent], policy: BacklogPolicy, checkpoint: int | None, steps: st.DataObject
) -> None:
    whole = replay_window(policy, checkpoint=checkpoint, events=events, head=len(events), own_principal_id=ME)
    reader = BacklogReader(policy, checkpoint=checkpoint, head=len(events), own_principal_id=ME)
    while (wanted := reader.wants()) is not None:
        reader._step = steps.draw(st.integers(1, 5))
        wanted = reader.wants() or wanted
        reader.take(events[wanted.start - 1 : wanted.stop - 1])
    assert reader.window().from_seq == whole.from_seq


def test_of_a_long_thread_only_the_end_is_read() -> None:
    reader = BacklogReader(BacklogPolicy(), checkpoint=None, head=1_000_000, own_principal_id=ME)
    wanted = reader.wants()
    assert wanted == range(999_801, 1_000_001)
    reader.take(log(*(said(f"r{n}") for n in range(40)), first=999_801))
    assert reader.window() == ReplayWindow(floor=0, from_seq=999_951, head=1_000_000)


def test_the_names_of_the_policies_are_those_of_the_configuration() -> None:
    assert (set(OnFirstJoin.__args__), set(OnResume.__args__)) == (  # type: ignore[attr-defined]
        {"since_joined", "catch_up", "skip_to_head"},
        {"catch_up", "skip_to_head"},
    )
