"""Importing a thread: everything at once, with the times it brings."""

from __future__ import annotations

from bubble.protocol.resources import Thread
from bubble.store.grants import HeldRole
from bubble.store.importing import ImportPlan
from bubble.store.records import NewThread
from bubble.store.sqlite.activity import NEWEST_OF_RUNS
from bubble.store.sqlite.connection import Value
from bubble.store.sqlite.grants import seat
from bubble.store.sqlite.log_rows import (
    DECISIONS,
    EVENTS,
    FINISHED_RUNS,
    STARTED_RUNS,
    decision_row,
    finished_row,
    started_row,
)
from bubble.store.sqlite.principals import find_principal, require_principal
from bubble.store.sqlite.thread_state import ThreadState
from bubble.store.sqlite.threads import as_told, new_thread, refuse_taken
from bubble.store.sqlite.transaction import Transaction

__all__ = ["import_thread"]


def import_thread(tx: Transaction, new: NewThread, plan: ImportPlan) -> Thread:
    """Writes what was planned, as `BubbleStore.import_thread`."""
    refuse_taken(tx, new.thread_id)
    for participant in new.participants:
        require_principal(tx.db, participant.principal_id)
    if new.creator is not None:
        require_principal(tx.db, new.creator)
    state = new_thread(tx, new, title=plan.title, created_ms=plan.ms[0] if plan.ms else tx.now_ms)
    _write_events(tx, state, plan)
    _write_runs(tx, state, plan)
    for principal_id, grant in plan.grants.items():
        if find_principal(tx.db, principal_id) is not None:
            role = HeldRole(grant.participant.role, grant.participant.appends)
            seat(tx, state, principal_id, role, granted_by=grant.granted_by, created_ms=grant.ms)
    return as_told(tx, state, new.creator)


def _write_events(tx: Transaction, state: ThreadState, plan: ImportPlan) -> None:
    if not plan.ms:
        return
    rows: list[Value] = []
    for event_id, event in enumerate(plan.admission.events, tx.new_event_ids(len(plan.ms))):
        rows += (event_id, state.key, event.seq, event.text)
    EVENTS.run(tx.db, rows)
    state.head, state.last_ms = len(plan.ms), plan.ms[-1]
    tx.db.execute(
        "UPDATE activity SET head = ?, last_ms = ? WHERE thread_key = ?", (state.head, state.last_ms, state.key)
    )


def _write_runs(tx: Transaction, state: ThreadState, plan: ImportPlan) -> None:
    admission, key = plan.admission, state.key
    STARTED_RUNS.run(tx.db, [value for run in admission.started.values() for value in started_row(key, run)])
    FINISHED_RUNS.run(tx.db, [value for run in admission.finished.values() for value in finished_row(key, run)])
    DECISIONS.run(tx.db, [value for one in admission.decisions.values() for value in decision_row(key, one)])
    NEWEST_OF_RUNS.run(
        tx.db,
        [value for run_id, seq in admission.touched.items() for value in (key, run_id, seq, plan.happened(seq))],
    )
