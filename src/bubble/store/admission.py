"""The rules of a log, in one place for every backend: who may append what, and what the state of the runs allows.

*Theory of operation.* A backend holds its transaction and asks twice. `authorize` settles visibility and capability by the roles committed
at that moment. Then the backend looks for the idempotency key, because a repeat must answer as the first time did. Then `admit`
settles expected head and run lifecycle and gives the stored events, with everything that has to be written beside them. Neither changes
anything: the backend applies an `Admission` when its transaction does.

| event                               | the run must be | beside that                                       |
| ----------------------------------- | --------------- | ------------------------------------------------- |
| run_started                         | unknown         |                                                   |
| message_part                        | open            |                                                   |
| run_finished                        | open            | by its starter, or with `runs.finish_any`         |
| tool_call_approval                  | known           | the first decision on that call, not on one's own |
| tool_call_result, ..._interrupt_... | known           |                                                   |
"""

from __future__ import annotations

from typing import Final, Literal, Protocol, TypeAlias

import msgspec
from msgspec import UNSET

from bubble.protocol.errors import Conflict, Forbidden
from bubble.protocol.events import (
    BubbleEvent,
    MessagePart,
    Outcome,
    ParticipantJoined,
    ParticipantLeft,
    RunFinished,
    RunInterruptRequested,
    RunKind,
    RunStarted,
    SequencedEvent,
    ThreadTitleUpdated,
    ToolCallApproval,
    ToolCallResult,
    sequence,
)
from bubble.protocol.resources import JoinPolicy, RunStateName
from bubble.protocol.timestamps import format_ms
from bubble.store.commands import AppendCommand, Guard, IdempotencyKey

__all__ = [
    "Admission",
    "Decision",
    "FinishedRun",
    "Ledger",
    "RunIntegrity",
    "RunState",
    "StartedRun",
    "admit",
    "authorize",
    "key_reused",
    "note",
]

RunIntegrity: TypeAlias = Literal["strict", "off"]
_SERVER_EMITTED: Final = (ParticipantJoined, ParticipantLeft, ThreadTitleUpdated)
RunEvent: TypeAlias = RunStarted | RunFinished | MessagePart | ToolCallApproval | ToolCallResult | RunInterruptRequested


class RunState(msgspec.Struct, frozen=True, gc=False):
    """What the lifecycle has to know of a run."""

    principal_id: str
    state: RunStateName


class Decision(msgspec.Struct, frozen=True, gc=False):
    """The decision on a tool call that won."""

    run_id: str
    tool_call_id: str
    approved: bool
    principal_id: str
    seq: int


class StartedRun(msgspec.Struct, frozen=True, gc=False):
    """A run to be recorded as open."""

    run_id: str
    principal_id: str
    seq: int
    ms: int
    kind: RunKind | None
    snapshot_seq: int | None


class FinishedRun(msgspec.Struct, frozen=True, gc=False):
    """A run to be recorded as finished."""

    run_id: str
    seq: int
    ms: int
    outcome: Outcome | None


class Ledger(Protocol):
    """One thread as a transaction sees it, with what the same transaction already admitted."""

    @property
    def thread_id(self) -> str:
        """The thread."""

    @property
    def head(self) -> int:
        """The seq of the last event, 0 for none."""

    @property
    def last_ms(self) -> int:
        """The time of the last event, 0 for none."""

    @property
    def join_policy(self) -> JoinPolicy:
        """Who may join by itself."""

    def role_of(self, principal_id: str) -> str | None:
        """The principal's role here, if any."""

    def run(self, run_id: str) -> RunState | None:
        """The run, if it ever started."""

    def decision(self, run_id: str, tool_call_id: str) -> Decision | None:
        """The decision on a tool call, if there is one."""


class Admission(msgspec.Struct):
    """What one command adds: its stored events, and the records beside them.

    `touched` is the newest seq of each run that an event names; without the lifecycle it may name runs that never started.
    """

    events: list[SequencedEvent] = []
    ms: int = 0
    started: dict[str, StartedRun] = {}
    finished: dict[str, FinishedRun] = {}
    touched: dict[str, int] = {}
    decisions: dict[tuple[str, str], Decision] = {}


def authorize(command: AppendCommand, ledger: Ledger) -> None:
    """Raises `NotFound` or `Forbidden` unless the command's guard allows each of its events on this thread."""
    guard = command.guard
    if guard is None:
        return
    role = ledger.role_of(guard.principal_id)
    for item in command.events:
        event = item.event
        capability = f"events.{event.__struct_config__.tag}"
        guard.require(capability, thread_id=ledger.thread_id, role=role, join_policy=ledger.join_policy)
        if isinstance(event, ToolCallApproval):
            _authorize_decision(event, guard)
        elif _author(event) != guard.principal_id:
            _authorize_bridge(_author(event), guard, ledger, role)


def key_reused(asked: IdempotencyKey) -> Conflict:
    """The answer where a key stands for another request."""
    return Conflict(f'The idempotency key "{asked.key}" was used for another request.')


def _author(event: BubbleEvent) -> str:
    return event.by_principal_id if isinstance(event, ThreadTitleUpdated) else event.principal_id


def _authorize_bridge(author: str, guard: Guard, ledger: Ledger, role: str | None) -> None:
    # Nobody writes as the server itself: that it finished a run is not for others to say.
    if author.startswith("system:") or not guard.has("events.impersonate", thread_id=ledger.thread_id, role=role):
        raise Forbidden(f'Principal "{guard.principal_id}" cannot write as "{author}".')


def _authorize_decision(event: ToolCallApproval, guard: Guard) -> None:
    if guard.kind != "user":
        raise Forbidden(f'Principal "{guard.principal_id}" is no user, and only users decide on tool calls.')
    if event.principal_id != guard.principal_id:
        raise Forbidden("Nobody decides on a tool call in another's name.")


def admit(command: AppendCommand, ledger: Ledger, *, now_ms: int, integrity: RunIntegrity = "strict") -> Admission:
    """The stored events of a command, seqs following the head; raises `Conflict` (or `Forbidden`) and changes nothing."""
    if command.expected_head is not None and command.expected_head != ledger.head:
        raise Conflict(
            f"The head of the thread is {ledger.head}, not {command.expected_head}.", details={"headSeq": ledger.head}
        )
    admission = Admission(ms=max(now_ms, ledger.last_ms))
    created_at = format_ms(admission.ms)
    for seq, item in enumerate(command.events, ledger.head + 1):
        note(
            item.event,
            seq=seq,
            ms=admission.ms,
            ledger=ledger,
            admission=admission,
            guard=command.guard,
            integrity=integrity,
        )
        admission.events.append(SequencedEvent(seq, created_at, sequence(item.text, seq=seq, created_at=created_at)))
    return admission


def note(
    event: BubbleEvent,
    *,
    seq: int,
    ms: int,
    ledger: Ledger,
    admission: Admission,
    guard: Guard | None = None,
    integrity: RunIntegrity = "strict",
) -> None:
    """Checks one event against the state of its run and notes in `admission` what has to be written beside it.

    Raises `Conflict` or `Forbidden`, and then `admission` is as it was.
    """
    if isinstance(event, _SERVER_EMITTED):
        return
    if isinstance(event, ToolCallApproval):
        _forbid_own_decision(event, guard, ledger, admission)
    if integrity == "strict":
        _check_lifecycle(event, guard, ledger, admission)
    _record(event, seq, ms, ledger, admission)


def _check_lifecycle(event: RunEvent, guard: Guard | None, ledger: Ledger, admission: Admission) -> None:
    run = _run(event.run_id, ledger, admission)
    if isinstance(event, RunStarted):
        if run is not None:
            raise _lifecycle(event.run_id, run.state, "has already started")
        return
    if run is None:
        raise _lifecycle(event.run_id, "unknown", "never started on this thread")
    if isinstance(event, MessagePart):
        _require_open(event.run_id, run)
    elif isinstance(event, RunFinished):
        _require_open(event.run_id, run)
        _check_finisher(event, run, guard, ledger)
    elif isinstance(event, ToolCallApproval):
        _check_decision(event, ledger, admission)


def _run(run_id: str, ledger: Ledger, admission: Admission) -> RunState | None:
    if run_id in admission.finished:
        known = ledger.run(run_id)
        starter = known.principal_id if known else admission.started[run_id].principal_id
        return RunState(starter, "finished")
    if run_id in admission.started:
        return RunState(admission.started[run_id].principal_id, "open")
    return ledger.run(run_id)


def _lifecycle(run_id: str, state: str, what: str) -> Conflict:
    return Conflict(f'Run "{run_id}" {what}.', details={"runId": run_id, "state": state})


def _require_open(run_id: str, run: RunState) -> None:
    if run.state != "open":
        raise _lifecycle(run_id, run.state, "has already finished")


def _check_finisher(event: RunFinished, run: RunState, guard: Guard | None, ledger: Ledger) -> None:
    if guard is None or event.principal_id == run.principal_id:
        return
    role = ledger.role_of(guard.principal_id)
    guard.require("runs.finish_any", thread_id=ledger.thread_id, role=role, join_policy=ledger.join_policy)


def _forbid_own_decision(event: ToolCallApproval, guard: Guard | None, ledger: Ledger, admission: Admission) -> None:
    # A matter of rights, not of the lifecycle: it holds without that, too.
    run = None if guard is None else _run(event.run_id, ledger, admission)
    if run is not None and guard is not None and run.principal_id == guard.principal_id:
        raise Forbidden("Nobody decides on a tool call of a run they started.")


def _check_decision(event: ToolCallApproval, ledger: Ledger, admission: Admission) -> None:
    call = (event.run_id, event.tool_call_id)
    winner = admission.decisions.get(call) or ledger.decision(*call)
    if winner is not None:
        verdict = "approved" if winner.approved else "rejected"
        raise Conflict(
            f'Tool call "{event.tool_call_id}" was already {verdict} by "{winner.principal_id}".',
            details={"approved": winner.approved, "principalId": winner.principal_id, "seq": winner.seq},
        )


def _record(event: RunEvent, seq: int, ms: int, ledger: Ledger, admission: Admission) -> None:
    # Without the lifecycle (`off`) anything may come in any order: the first start and the first finish after it count.
    admission.touched[event.run_id] = seq
    if isinstance(event, MessagePart):
        return
    if isinstance(event, RunStarted):
        if _run(event.run_id, ledger, admission) is None:
            admission.started[event.run_id] = StartedRun(
                run_id=event.run_id,
                principal_id=event.principal_id,
                seq=seq,
                ms=ms,
                kind=None if event.kind is UNSET else event.kind,
                snapshot_seq=None if event.snapshot_seq is UNSET else event.snapshot_seq,
            )
    elif isinstance(event, RunFinished):
        run = _run(event.run_id, ledger, admission)
        if run is not None and run.state == "open":
            outcome = None if event.outcome is UNSET else event.outcome
            admission.finished[event.run_id] = FinishedRun(event.run_id, seq, ms, outcome)
    elif isinstance(event, ToolCallApproval):
        call = (event.run_id, event.tool_call_id)
        if ledger.decision(*call) is None:
            decision = Decision(*call, approved=event.approved, principal_id=event.principal_id, seq=seq)
            admission.decisions.setdefault(call, decision)
