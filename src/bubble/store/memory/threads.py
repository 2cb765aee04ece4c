"""What happens to threads: appends, creation, changes, grants, runs. Each decides, then writes, then tells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import UNSET

from bubble.protocol.errors import InvalidRequest, thread_not_found
from bubble.protocol.events import EncodedEvent, SequencedEvent
from bubble.protocol.identifiers import check_seq
from bubble.protocol.resources import Grant, Thread
from bubble.protocol.timestamps import Clock
from bubble.store.admission import RunIntegrity, admit, authorize, key_reused
from bubble.store.commands import AppendCommand, Appended, Guard
from bubble.store.grants import HeldRole, authorize_grant, authorize_removal, lost_run, plan_grant, plan_removal
from bubble.store.importing import ImportPlan, plan_import
from bubble.store.memory.outbox import Outbox
from bubble.store.memory.state import GrantRecord, KeptResult, MemoryState, ThreadState
from bubble.store.metadata import metadata_text
from bubble.store.notices import GrantChange, GrantChanged, ThreadDeleted
from bubble.store.records import NewThread, ThreadChanges
from bubble.store.threads import plan_seats, plan_update, thread_id_taken

__all__ = ["Threads"]


@dataclass(frozen=True, slots=True)
class Threads:
    """The changes that concern threads."""

    state: MemoryState
    outbox: Outbox
    clock: Clock
    integrity: RunIntegrity

    def append(self, command: AppendCommand) -> Appended:
        """Stores a command's events, or answers with those that its key already stored."""
        thread = self.state.threads.get(command.thread_id) or self._new_for(command)
        authorize(command, thread)
        kept = self._kept(command, thread)
        if kept is not None:
            return Appended(kept.events, replayed=True)
        now_ms = self.clock()
        admission = admit(command, thread, now_ms=now_ms, integrity=self.integrity)
        self.state.threads[thread.thread_id] = thread
        if command.idempotency is not None:
            key = (command.idempotency.caller, command.idempotency.key)
            thread.keys[key] = KeptResult(command.idempotency.digest, admission.events, now_ms)
        self.outbox.committed(thread, thread.apply(admission))
        return Appended(admission.events)

    def _new_for(self, command: AppendCommand) -> ThreadState:
        if not command.create:
            raise thread_not_found(command.thread_id)
        if command.thread_id in self.state.retired:
            raise thread_id_taken(command.thread_id)
        return ThreadState(command.thread_id, self.clock())

    def _kept(self, command: AppendCommand, thread: ThreadState) -> KeptResult | None:
        asked = command.idempotency
        kept = None if asked is None else thread.keys.get((asked.caller, asked.key))
        if asked is not None and kept is not None and kept.digest != asked.digest:
            raise key_reused(asked)
        return kept

    def create(self, new: NewThread) -> Thread:
        """As `BubbleStore.create_thread`."""
        seats = plan_seats(new)
        if self.state.is_taken(new.thread_id):
            raise thread_id_taken(new.thread_id)
        for seat in seats:
            self.state.principal(seat.participant.principal_id)
        thread = self._blank(new, self.clock())
        for seat in seats:
            held = HeldRole(seat.participant.role, seat.participant.appends)
            self._put(thread, seat.participant.principal_id, GrantRecord(held, seat.granted_by, thread.created_ms))
        self._write(thread, [seat.event for seat in seats if seat.event is not None])
        return thread.resource(new.creator)

    def _blank(self, new: NewThread, created_ms: int) -> ThreadState:
        thread = ThreadState(
            thread_id=new.thread_id,
            created_ms=created_ms,
            join_policy=new.join_policy,
            title=new.title,
            metadata=metadata_text(new.metadata),
        )
        self.state.threads[new.thread_id] = thread
        return thread

    def import_(self, new: NewThread, events: Sequence[SequencedEvent]) -> Thread:
        """As `BubbleStore.import_thread`."""
        now_ms = self.clock()
        plan = plan_import(new, events, now_ms=now_ms, integrity=self.integrity)
        if self.state.is_taken(new.thread_id):
            raise thread_id_taken(new.thread_id)
        for name in [one.principal_id for one in new.participants] + ([new.creator] if new.creator else []):
            self.state.principal(name)
        thread = self._blank(new, plan.ms[0] if plan.ms else now_ms)
        thread.title = plan.title
        self._rebuild(thread, plan)
        self.outbox.committed(thread)
        return thread.resource(new.creator)

    def _rebuild(self, thread: ThreadState, plan: ImportPlan) -> None:
        thread.apply(plan.admission)
        for run in thread.runs.values():
            run.last_ms = plan.happened(run.last_seq)
        for name, grant in plan.grants.items():
            if name in self.state.principals:
                held = HeldRole(grant.participant.role, grant.participant.appends)
                self._put(thread, name, GrantRecord(held, grant.granted_by, grant.ms))

    def update(self, thread_id: str, changes: ThreadChanges, *, by: str, guard: Guard | None) -> Thread:
        """As `BubbleStore.update_thread`."""
        thread = self.state.thread(thread_id)
        self._require(guard, "thread.update", thread)
        plan = plan_update(thread.title, thread.join_policy, changes, by=by)
        metadata = thread.metadata if changes.metadata is UNSET else metadata_text(changes.metadata)
        thread.metadata = metadata
        thread.title = thread.title if changes.title is UNSET else changes.title
        if plan.policy_changed and changes.join_policy is not UNSET:
            thread.join_policy = changes.join_policy
            thread.grant_version += 1
        if plan.policy_changed or plan.event is not None:
            self._write(thread, [plan.event] if plan.event is not None else [])
        return thread.resource(by)

    def delete(self, thread_id: str, *, guard: Guard | None) -> None:
        """As `BubbleStore.delete_thread`."""
        thread = self.state.thread(thread_id)
        self._require(guard, "thread.delete", thread)
        del self.state.threads[thread_id]
        self.state.retired.add(thread_id)
        for principal_id, record in thread.grants.items():
            self.outbox.tell(GrantChanged("revoked", self.state.grant(thread, principal_id, record)))
        self.outbox.tell(ThreadDeleted(thread_id))

    def put_grant(
        self, thread_id: str, principal_id: str, wanted: HeldRole, *, by: str, guard: Guard | None
    ) -> tuple[Grant, bool]:
        """As `BubbleStore.put_grant`."""
        thread = self.state.thread(thread_id)
        authorize_grant(
            guard,
            thread_id=thread_id,
            principal_id=principal_id,
            role=wanted.role,
            caller_role=None if guard is None else thread.role_of(guard.principal_id),
            join_policy=thread.join_policy,
        )
        self.state.principal(principal_id)
        plan = plan_grant(
            thread.held(principal_id),
            wanted,
            thread_id=thread_id,
            principal_id=principal_id,
            by=by,
            owners=thread.owners,
        )
        if plan.change is not None:
            before = thread.grants.get(principal_id)
            created_ms = self.clock() if before is None else before.created_ms
            thread.grant_version += 1
            self._put(thread, principal_id, GrantRecord(wanted, by, created_ms), change=plan.change)
            self._write(thread, plan.events(thread.open_runs_of(principal_id)))
        return self.state.grant(thread, principal_id, thread.grants[principal_id]), plan.change == "granted"

    def remove_grant(self, thread_id: str, principal_id: str, *, by: str, guard: Guard | None) -> None:
        """As `BubbleStore.remove_grant`."""
        thread = self.state.thread(thread_id)
        authorize_removal(
            guard,
            thread_id=thread_id,
            principal_id=principal_id,
            caller_role=None if guard is None else thread.role_of(guard.principal_id),
            join_policy=thread.join_policy,
        )
        plan = plan_removal(
            thread.held(principal_id), thread_id=thread_id, principal_id=principal_id, by=by, owners=thread.owners
        )
        record = thread.grants.pop(principal_id)
        thread.grant_version += 1
        self.outbox.tell(GrantChanged("revoked", self.state.grant(thread, principal_id, record)))
        self._write(thread, plan.events(thread.open_runs_of(principal_id)))

    def advance_cursor(self, thread_id: str, principal_id: str, seq: int, *, guard: Guard | None) -> int:
        """As `BubbleStore.advance_cursor`."""
        thread = self.state.thread(thread_id)
        self._require(guard, "cursor.write", thread)
        check_seq(seq, path="$.seq", lowest=0)
        if seq > thread.head:
            raise InvalidRequest(f"`$.seq` must not be beyond the head, which is {thread.head}.")
        reached = max(seq, thread.cursors.get(principal_id, 0))
        thread.cursors[principal_id] = reached
        return reached

    def finish_lost_runs(self, *, idle_since_ms: int) -> int:
        """As `BubbleStore.finish_lost_runs`."""
        present = self.state.present(now_ms=self.clock())
        count = 0
        for thread in self.state.threads.values():
            lost = [
                lost_run(run_id)
                for run_id, run in thread.runs.items()
                if run.state == "open" and run.last_ms < idle_since_ms and run.principal_id not in present
            ]
            if lost:
                self._write(thread, lost)
            count += len(lost)
        return count

    def _put(
        self, thread: ThreadState, principal_id: str, record: GrantRecord, *, change: GrantChange = "granted"
    ) -> None:
        thread.grants[principal_id] = record
        self.outbox.tell(GrantChanged(change, self.state.grant(thread, principal_id, record)))

    def _write(self, thread: ThreadState, events: Sequence[EncodedEvent]) -> None:
        """Writes the store's own events (perhaps none) and tells where the thread stands."""
        texts: Sequence[bytes] = ()
        if events:
            command = AppendCommand(thread.thread_id, events)
            texts = thread.apply(admit(command, thread, now_ms=self.clock(), integrity=self.integrity))
        self.outbox.committed(thread, texts)

    def _require(self, guard: Guard | None, capability: str, thread: ThreadState) -> None:
        if guard is not None:
            role = thread.role_of(guard.principal_id)
            guard.require(capability, thread_id=thread.thread_id, role=role, join_policy=thread.join_policy)
