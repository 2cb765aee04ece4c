"""The rows that events bring with them, each kind written many at a time."""

from __future__ import annotations

from typing import Final

from bubble.store.admission import Decision, FinishedRun, StartedRun
from bubble.store.sqlite.connection import Value
from bubble.store.sqlite.multirow import MultiRow

__all__ = [
    "DECISIONS",
    "EVENTS",
    "FINISHED_RUNS",
    "KEYS",
    "STARTED_RUNS",
    "decision_row",
    "finished_row",
    "started_row",
]

EVENTS: Final = MultiRow("INSERT INTO events (event_id, thread_key, seq, text)", width=4)
STARTED_RUNS: Final = MultiRow(
    "INSERT INTO runs (thread_key, run_id, principal_id, kind, snapshot_seq, started_seq, started_ms, last_seq, last_ms)",
    width=9,
)
FINISHED_RUNS: Final = MultiRow(
    "UPDATE runs SET finished_seq = ended.column3, finished_ms = ended.column4, outcome = ended.column5 FROM (",
    width=5,
    after=") AS ended WHERE runs.thread_key = ended.column1 AND runs.run_id = ended.column2",
)
DECISIONS: Final = MultiRow(
    "INSERT INTO decisions (thread_key, run_id, tool_call_id, approved, principal_id, seq)", width=6
)
KEYS: Final = MultiRow(
    "INSERT INTO idempotency_keys (thread_key, caller, key, digest, first_seq, last_seq, created_ms)", width=7
)


def started_row(thread_key: int, run: StartedRun) -> tuple[Value, ...]:
    """A row for `STARTED_RUNS`."""
    newest = (run.seq, run.ms)
    return (thread_key, run.run_id, run.principal_id, run.kind, run.snapshot_seq, *newest, *newest)


def finished_row(thread_key: int, run: FinishedRun) -> tuple[Value, ...]:
    """A row for `FINISHED_RUNS`."""
    return (thread_key, run.run_id, run.seq, run.ms, run.outcome)


def decision_row(thread_key: int, decision: Decision) -> tuple[Value, ...]:
    """A row for `DECISIONS`."""
    made = (int(decision.approved), decision.principal_id, decision.seq)
    return (thread_key, decision.run_id, decision.tool_call_id, *made)
