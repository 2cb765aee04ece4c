"""The rules of the log, without any store: the table of run states, one row after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubble.protocol.errors import BubbleError, Conflict
from bubble.protocol.events import encoded
from bubble.protocol.resources import JoinPolicy
from bubble.store.admission import Admission, Decision, RunIntegrity, RunState, admit, authorize
from bubble.store.commands import AppendCommand
from bubble.testing.store_suite.base import FIRST_MS, Event, a_call, a_finish, a_part, a_start, an_approval, typed

EVENTS: Mapping[str, Event] = {
    typed(event): event
    for event in (
        a_start(),
        a_part(),
        a_finish(),
        an_approval(),
        a_call("tool_call_result"),
        a_call("run_interrupt_requested"),
    )
}
OPEN, FINISHED = RunState("ann", "open"), RunState("ann", "finished")

#: What each event needs its run to be.
ALLOWED: Mapping[str, tuple[RunState | None, ...]] = {
    "run_started": (None,),
    "message_part": (OPEN,),
    "run_finished": (OPEN,),
    "tool_call_approval": (OPEN, FINISHED),
    "tool_call_result": (OPEN, FINISHED),
    "run_interrupt_requested": (OPEN, FINISHED),
}


@dataclass(frozen=True)
class ALedger:
    """A thread as a transaction sees it, made up by a test."""

    thread_id: str = "t"
    head: int = 0
    last_ms: int = 0
    join_policy: JoinPolicy = "invite"
    roles: Mapping[str, str] = field(default_factory=dict)
    runs: Mapping[str, RunState] = field(default_factory=dict)
    decisions: Mapping[tuple[str, str], Decision] = field(default_factory=dict)

    def role_of(self, principal_id: str) -> str | None:
        return self.roles.get(principal_id)

    def run(self, run_id: str) -> RunState | None:
        return self.runs.get(run_id)

    def decision(self, run_id: str, tool_call_id: str) -> Decision | None:
        return self.decisions.get((run_id, tool_call_id))


def admitted(
    ledger: ALedger, *events: Event, expected_head: int | None = None, integrity: RunIntegrity = "strict"
) -> Admission:
    command = AppendCommand(thread_id="t", events=[encoded(event) for event in events], expected_head=expected_head)
    authorize(command, ledger)
    return admit(command, ledger, now_ms=FIRST_MS, integrity=integrity)


@pytest.mark.requirement("PR-1-32", "PR-1-33", "PR-1-34", "PR-1-35", "PR-1-39", "PR-1-40")
@pytest.mark.parametrize("state", [None, OPEN, FINISHED], ids=["unknown", "open", "finished"])
@pytest.mark.parametrize("kind", ALLOWED)
def test_an_event_is_admitted_exactly_where_its_run_is_as_the_table_says(kind: str, state: RunState | None) -> None:
    ledger = ALedger(runs={} if state is None else {"run-1": state})
    if state in ALLOWED[kind]:
        assert [event.type for event in admitted(ledger, EVENTS[kind]).events] == [kind]
        return
    with pytest.raises(Conflict) as caught:
        admitted(ledger, EVENTS[kind])
    assert caught.value.details == {"runId": "run-1", "state": "unknown" if state is None else state.state}


@pytest.mark.requirement("PR-1-30")
@pytest.mark.parametrize("state", [None, OPEN, FINISHED], ids=["unknown", "open", "finished"])
@pytest.mark.parametrize("kind", ALLOWED)
def test_without_the_lifecycle_everything_is_admitted(kind: str, state: RunState | None) -> None:
    ledger = ALedger(runs={} if state is None else {"run-1": state})
    assert len(admitted(ledger, EVENTS[kind], integrity="off").events) == 1


@given(kinds=st.lists(st.sampled_from(sorted(EVENTS)), max_size=12), integrity=st.sampled_from(["strict", "off"]))
def test_a_batch_is_admitted_as_its_events_would_be_one_by_one(kinds: list[str], integrity: RunIntegrity) -> None:
    runs: dict[str, RunState] = {}
    decisions: dict[tuple[str, str], Decision] = {}
    fits = True
    for seq, kind in enumerate(kinds, start=1):
        ledger = ALedger(head=seq - 1, runs=runs, decisions=decisions)
        try:
            one = admitted(ledger, EVENTS[kind], integrity=integrity)
        except BubbleError:
            fits = False
            break
        runs |= {run_id: RunState(run.principal_id, "open") for run_id, run in one.started.items()}
        runs |= {run_id: RunState(runs[run_id].principal_id, "finished") for run_id in one.finished}
        decisions |= one.decisions
    try:
        whole = admitted(ALedger(), *(EVENTS[kind] for kind in kinds), integrity=integrity)
    except BubbleError:
        assert not fits
        return
    assert fits
    assert [event.seq for event in whole.events] == list(range(1, len(kinds) + 1))
    assert whole.decisions == decisions
    assert {run_id for run_id, run in runs.items() if run.state == "finished"} == set(whole.finished)


@pytest.mark.requirement("EV-04", "PR-1-25")
def test_seqs_follow_the_head_and_time_follows_the_last_event() -> None:
    later = FIRST_MS + 5_000
    admission = admitted(ALedger(head=7, last_ms=later, runs={"run-1": OPEN}), a_part(), a_finish(outcome="failed"))
    assert [event.seq for event in admission.events] == [8, 9]
    assert admission.ms == later
    assert admission.touched == {"run-1": 9}
    assert (admission.finished["run-1"].seq, admission.finished["run-1"].outcome) == (9, "failed")


@pytest.mark.requirement("PR-6-54", "PR-3-16")
def test_the_expected_head_is_looked_at_before_the_lifecycle() -> None:
    with pytest.raises(Conflict) as caught:
        admitted(ALedger(head=7), a_part(), expected_head=6)
    assert caught.value.details == {"headSeq": 7}


def test_what_a_start_says_is_recorded() -> None:
    started = admitted(ALedger(), a_start(kind="agent_work", snapshotSeq=0)).started["run-1"]
    assert (started.principal_id, started.seq, started.ms, started.kind, started.snapshot_seq) == (
        *("ann", 1, FIRST_MS, "agent_work"),
        0,
    )


def test_the_first_decision_counts_also_without_the_lifecycle() -> None:
    admission = admitted(ALedger(), an_approval(approved=False), an_approval(approved=True), integrity="off")
    assert admission.decisions["run-1", "call-1"].approved is False
    earlier = {("run-1", "call-1"): Decision("run-1", "call-1", approved=False, principal_id="bob", seq=3)}
    assert admitted(ALedger(decisions=earlier), an_approval(), integrity="off").decisions == {}
