"""What a memory store holds: dictionaries of records. Whatever belongs to a thread hangs on it, so that deleting it is one step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from msgspec import UNSET

from bubble.protocol.errors import thread_not_found
from bubble.protocol.events import Outcome, RunKind, SequencedEvent
from bubble.protocol.resources import Grant, JoinPolicy, Principal, Run, RunStateName, Thread
from bubble.protocol.timestamps import format_ms
from bubble.store.admission import Admission, Decision, FinishedRun, RunState, StartedRun
from bubble.store.grants import OWNER, HeldRole
from bubble.store.metadata import metadata_from_text
from bubble.store.notices import Position
from bubble.store.principals import principal_not_found
from bubble.store.records import Credential

__all__ = ["GrantRecord", "KeptResult", "MemoryState", "RunRecord", "ThreadState"]


@dataclass(frozen=True, slots=True)
class GrantRecord:
    """A grant on the thread that holds it."""

    held: HeldRole
    granted_by: str
    created_ms: int


@dataclass(frozen=True, slots=True)
class KeptResult:
    """What an idempotency key stands for."""

    digest: bytes
    events: Sequence[SequencedEvent]
    ms: int


@dataclass(slots=True)
class RunRecord:
    """A run and its newest event."""

    started: StartedRun
    last_seq: int
    last_ms: int
    finished: FinishedRun | None = None

    @property
    def state(self) -> RunStateName:
        return "open" if self.finished is None else "finished"

    @property
    def principal_id(self) -> str:
        return self.started.principal_id

    @property
    def kind(self) -> RunKind | None:
        return self.started.kind

    @property
    def outcome(self) -> Outcome | None:
        return None if self.finished is None else self.finished.outcome

    def resource(self, thread_id: str) -> Run:
        """The run as the wire has it."""
        snapshot = self.started.snapshot_seq
        return Run(
            thread_id=thread_id,
            run_id=self.started.run_id,
            principal_id=self.principal_id,
            state=self.state,
            started_seq=self.started.seq,
            started_at=format_ms(self.started.ms),
            last_seq=self.last_seq,
            last_event_at=format_ms(self.last_ms),
            kind=UNSET if self.kind is None else self.kind,
            snapshot_seq=UNSET if snapshot is None else snapshot,
            finished_seq=UNSET if self.finished is None else self.finished.seq,
            finished_at=UNSET if self.finished is None else format_ms(self.finished.ms),
            outcome=UNSET if self.outcome is None else self.outcome,
        )


@dataclass(slots=True)
class ThreadState:
    """One thread, which is also the `Ledger` that admission asks."""

    thread_id: str
    created_ms: int
    join_policy: JoinPolicy = "invite"
    title: str | None = None
    metadata: bytes | None = None
    texts: list[bytes] = field(default_factory=list)
    last_ms: int = 0
    grant_version: int = 1
    grants: dict[str, GrantRecord] = field(default_factory=dict)
    runs: dict[str, RunRecord] = field(default_factory=dict)
    decisions: dict[tuple[str, str], Decision] = field(default_factory=dict)
    keys: dict[tuple[str, str], KeptResult] = field(default_factory=dict)
    cursors: dict[str, int] = field(default_factory=dict)

    @property
    def head(self) -> int:
        return len(self.texts)

    @property
    def position(self) -> Position:
        return Position(self.head, self.grant_version)

    @property
    def last_activity_ms(self) -> int:
        return self.last_ms if self.texts else self.created_ms

    @property
    def owners(self) -> int:
        return sum(record.held.role == OWNER for record in self.grants.values())

    def held(self, principal_id: str) -> HeldRole | None:
        record = self.grants.get(principal_id)
        return None if record is None else record.held

    def role_of(self, principal_id: str) -> str | None:
        record = self.grants.get(principal_id)
        return None if record is None else record.held.role

    def run(self, run_id: str) -> RunState | None:
        record = self.runs.get(run_id)
        return None if record is None else RunState(record.principal_id, record.state)

    def open_runs_of(self, principal_id: str) -> Iterator[str]:
        """The ids of the principal's open runs, oldest first."""
        return (key for key, run in self.runs.items() if run.state == "open" and run.principal_id == principal_id)

    def decision(self, run_id: str, tool_call_id: str) -> Decision | None:
        return self.decisions.get((run_id, tool_call_id))

    def apply(self, admission: Admission) -> Sequence[bytes]:
        """Writes what was admitted; the texts that are new."""
        texts = [event.text for event in admission.events]
        self.texts.extend(texts)
        self.last_ms = admission.ms
        self.decisions.update(admission.decisions)
        for run_id, started in admission.started.items():
            self.runs[run_id] = RunRecord(started, started.seq, started.ms)
        for run_id, seq in admission.touched.items():
            if run_id in self.runs:  # without the lifecycle an event may name a run that never started
                self.runs[run_id].last_seq, self.runs[run_id].last_ms = seq, admission.ms
        for run_id, finished in admission.finished.items():
            self.runs[run_id].finished = finished
        return texts

    def resource(self, principal_id: str | None = None) -> Thread:
        """The thread as the wire has it, with the role of `principal_id` where it has one."""
        role = None if principal_id is None else self.role_of(principal_id)
        return Thread(
            thread_id=self.thread_id,
            join_policy=self.join_policy,
            created_at=format_ms(self.created_ms),
            last_activity_at=format_ms(self.last_activity_ms),
            head_seq=self.head,
            title=UNSET if self.title is None else self.title,
            metadata=metadata_from_text(self.metadata),
            role=UNSET if role is None else role,
        )


@dataclass(slots=True)
class MemoryState:
    """Everything."""

    threads: dict[str, ThreadState] = field(default_factory=dict)
    retired: set[str] = field(default_factory=set)
    principals: dict[str, Principal] = field(default_factory=dict)
    identities: dict[tuple[str, str], str] = field(default_factory=dict)
    credentials: dict[str, Credential] = field(default_factory=dict)
    presence: dict[str, tuple[frozenset[str], int]] = field(default_factory=dict)

    def thread(self, thread_id: str) -> ThreadState:
        """The thread, or `NotFound`."""
        thread = self.threads.get(thread_id)
        if thread is None:
            raise thread_not_found(thread_id)
        return thread

    def is_taken(self, thread_id: str) -> bool:
        """Whether a thread has, or had, that id."""
        return thread_id in self.threads or thread_id in self.retired

    def principal(self, principal_id: str) -> Principal:
        """The principal, or `NotFound`."""
        principal = self.principals.get(principal_id)
        if principal is None:
            raise principal_not_found(principal_id)
        return principal

    def grant(self, thread: ThreadState, principal_id: str, record: GrantRecord) -> Grant:
        """A grant as the wire has it."""
        principal = self.principals.get(principal_id)
        return Grant(
            thread_id=thread.thread_id,
            principal_id=principal_id,
            role=record.held.role,
            granted_by=record.granted_by,
            created_at=format_ms(record.created_ms),
            principal=UNSET if principal is None else principal.summary(),
        )

    def chain(self, credential: Credential) -> Iterator[tuple[Credential, bool]]:
        """The credential and what it was made from, each beside whether its principal is disabled."""
        link: Credential | None = credential
        while link is not None:
            yield link, self.principal(link.principal_id).disabled_at is not UNSET
            link = None if link.parent_id is None else self.credentials[link.parent_id]

    def present(self, *, now_ms: int) -> set[str]:
        """Who holds a connection to some node."""
        return {one for names, until_ms in self.presence.values() if until_ms > now_ms for one in names}
