"""A thread as it was elsewhere: what an import brings with it, runs and participants rebuilt from the events alone. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bubble.protocol.errors import Conflict, InvalidRequest
from bubble.protocol.events import (
    BubbleEvent,
    ParticipantJoined,
    ParticipantLeft,
    SequencedEvent,
    ThreadTitleUpdated,
    sequence_prefix,
)
from bubble.protocol.identifiers import SERVER_PRINCIPAL, check_name
from bubble.protocol.resources import JoinPolicy
from bubble.protocol.timestamps import parse_ms
from bubble.store.admission import Admission, Decision, RunIntegrity, RunState, note
from bubble.store.grants import OWNER
from bubble.store.records import NewThread, Participant

__all__ = ["ImportPlan", "ImportedGrant", "plan_import"]


@dataclass(frozen=True, slots=True)
class ImportedGrant:
    """A grant that the events (or the import itself) tell of."""

    participant: Participant
    granted_by: str
    ms: int


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """What to write: the events with their runs and decisions, when each happened (`ms`, in step with the events), and the grants.

    A grant of a principal that does not exist here is left out by the backend, the creator's excepted, who must exist: a name
    that somebody may register later must not come with rights.
    """

    admission: Admission
    ms: Sequence[int]
    title: str | None
    grants: Mapping[str, ImportedGrant]

    def happened(self, seq: int) -> int:
        """When the event with that seq was committed, in milliseconds."""
        return self.ms[seq - 1]


@dataclass(frozen=True, slots=True)
class _NewLedger:
    """A thread on which nothing happened yet."""

    thread_id: str
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


@dataclass(slots=True)
class _Rebuilding:
    ledger: _NewLedger
    integrity: RunIntegrity
    admission: Admission = field(default_factory=Admission)
    ms: list[int] = field(default_factory=list)
    title: str | None = None
    joined: dict[str, ImportedGrant] = field(default_factory=dict)

    def take(self, stored: SequencedEvent) -> None:
        seq = len(self.ms) + 1
        if stored.seq != seq:
            raise InvalidRequest(f"its seq is {stored.seq}, not {seq}")
        ms = _time_of(stored)
        if self.ms and ms < self.ms[-1]:
            raise InvalidRequest("its createdAt is before that of the event before it")
        if not stored.text.startswith(sequence_prefix(seq=seq, created_at=stored.created_at)):
            raise InvalidRequest("its text does not begin with its seq and createdAt")
        event = stored.event
        note(event, seq=seq, ms=ms, ledger=self.ledger, admission=self.admission, integrity=self.integrity)
        self._see(event, ms)
        self.ms.append(ms)
        self.admission.events.append(stored)

    def _see(self, event: BubbleEvent, ms: int) -> None:
        if isinstance(event, ParticipantJoined):
            seat = Participant(principal_id=event.principal_id, role="participant", appends=True)
            self.joined[event.principal_id] = ImportedGrant(seat, event.by_principal_id, ms)
        elif isinstance(event, ParticipantLeft):
            self.joined.pop(event.principal_id, None)
        elif isinstance(event, ThreadTitleUpdated):
            self.title = event.title or None


def plan_import(
    new: NewThread, events: Sequence[SequencedEvent], *, now_ms: int, integrity: RunIntegrity = "strict"
) -> ImportPlan:
    """What importing `events` writes; `InvalidRequest` naming the first event that does not fit.

    The title is `new`'s or else the last one that the events tell; `new.participants` have their role whatever the events say.
    """
    check_name(new.thread_id, path="threadId")
    rebuilding = _Rebuilding(_NewLedger(new.thread_id), integrity)
    for index, stored in enumerate(events):
        try:
            rebuilding.take(stored)
        except (InvalidRequest, Conflict) as error:
            raise InvalidRequest(f"`$.events[{index}]` does not fit: {error.message.rstrip('.')}.") from None
    rebuilding.admission.ms = rebuilding.ms[-1] if rebuilding.ms else now_ms
    return ImportPlan(
        admission=rebuilding.admission,
        ms=rebuilding.ms,
        title=new.title if new.title is not None else rebuilding.title,
        grants=_grants(new, rebuilding.joined, now_ms),
    )


def _grants(new: NewThread, joined: Mapping[str, ImportedGrant], now_ms: int) -> Mapping[str, ImportedGrant]:
    grants = dict(joined) if new.keeps_participants else {}
    by = new.creator or SERVER_PRINCIPAL
    for participant in new.participants:
        grants[participant.principal_id] = ImportedGrant(participant, by, now_ms)
    if new.creator is not None:
        owner = Participant(principal_id=new.creator, role=OWNER, appends=True)
        grants[new.creator] = ImportedGrant(owner, new.creator, now_ms)
    return grants


def _time_of(stored: SequencedEvent) -> int:
    try:
        return parse_ms(stored.created_at)
    except ValueError as error:
        raise InvalidRequest(f"its createdAt {error}") from None
