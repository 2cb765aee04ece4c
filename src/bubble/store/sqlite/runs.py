"""Runs, the presence that decides which of them are lost, and consumer cursors."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from typing import Final

import apsw
import msgspec
from msgspec import UNSET

from bubble.protocol.errors import InvalidRequest, thread_not_found
from bubble.protocol.events import Outcome, RunKind
from bubble.protocol.identifiers import check_seq
from bubble.protocol.resources import Run, RunPage, RunStateName
from bubble.protocol.timestamps import format_ms
from bubble.store.commands import Guard
from bubble.store.cursors import decode_cursor, encode_cursor, page_size
from bubble.store.grants import lost_run
from bubble.store.sqlite.connection import find_all, find_one, number, query
from bubble.store.sqlite.thread_state import ThreadState
from bubble.store.sqlite.transaction import Transaction

__all__ = [
    "advance_cursor",
    "find_lost_runs",
    "find_runs",
    "finish_lost_runs",
    "forget_absent",
    "forget_keys",
    "list_runs",
    "read_cursor",
    "renew_presence",
]


class _RunRow(msgspec.Struct, frozen=True, array_like=True):
    run_id: str
    principal_id: str
    kind: RunKind | None
    snapshot_seq: int | None
    started_seq: int
    started_ms: int
    last_seq: int
    last_ms: int
    finished_seq: int | None
    finished_ms: int | None
    outcome: Outcome | None

    def resource(self, thread_id: str) -> Run:
        return Run(
            thread_id=thread_id,
            run_id=self.run_id,
            principal_id=self.principal_id,
            state="open" if self.finished_seq is None else "finished",
            started_seq=self.started_seq,
            started_at=format_ms(self.started_ms),
            last_seq=self.last_seq,
            last_event_at=format_ms(self.last_ms),
            kind=UNSET if self.kind is None else self.kind,
            snapshot_seq=UNSET if self.snapshot_seq is None else self.snapshot_seq,
            finished_seq=UNSET if self.finished_seq is None else self.finished_seq,
            finished_at=UNSET if self.finished_ms is None else format_ms(self.finished_ms),
            outcome=UNSET if self.outcome is None else self.outcome,
        )


_rows: Final = msgspec.json.Decoder(list[_RunRow])
_lost: Final = msgspec.json.Decoder(list[tuple[str, str]])


def list_runs(
    db: apsw.Connection,
    thread_id: str,
    *,
    state: RunStateName | None,
    principal_id: str | None,
    after: str | None,
    limit: int,
) -> RunPage:
    """As `BubbleStore.list_runs`. The activity has to be settled."""
    key = _key_of(db, thread_id)
    size, start = page_size(limit), decode_cursor(after, tuple[int])
    sql = query("open_runs" if state == "open" else "runs")
    bindings = (key, start[0] if start else 0, principal_id, size + 1)
    rows = find_all(db, sql, bindings if state == "open" else (*bindings, state), _rows)
    return RunPage(
        runs=[row.resource(thread_id) for row in rows[:size]],
        next_after=encode_cursor(rows[size - 1].started_seq) if len(rows) > size else None,
    )


def find_runs(db: apsw.Connection, thread_id: str, run_ids: Collection[str]) -> Mapping[str, Run]:
    """As `BubbleStore.get_runs`. The activity has to be settled."""
    asked = msgspec.json.encode(list(run_ids)).decode()
    rows = find_all(db, query("runs_by_id"), (_key_of(db, thread_id), asked), _rows)
    return {row.run_id: row.resource(thread_id) for row in rows}


def _key_of(db: apsw.Connection, thread_id: str) -> int:
    key = find_one(db, "SELECT thread_key FROM threads WHERE thread_id = ?", (thread_id,))
    if key is None:
        raise thread_not_found(thread_id)
    return int(key[0])


def find_lost_runs(db: apsw.Connection, *, idle_since_ms: int, now_ms: int, limit: int) -> Sequence[tuple[str, str]]:
    """Up to `limit` runs, each as thread and run id, that `finish_lost_runs` should look at. The activity has to be settled."""
    return find_all(db, query("lost_runs"), (idle_since_ms, now_ms, limit), _lost)


def finish_lost_runs(tx: Transaction, candidates: Sequence[tuple[str, str]], *, idle_since_ms: int) -> int:
    """Finishes those of `candidates` that are lost also in this transaction, as `BubbleStore.finish_lost_runs` says; the count."""
    count = 0
    for thread_id, runs in groupby(candidates, key=lambda run: run[0]):
        if tx.exists(thread_id):
            state = tx.thread(thread_id)
            lost = [run_id for _, run_id in runs if _is_lost(tx, state, run_id, idle_since_ms)]
            tx.write(state, [lost_run(run_id) for run_id in lost])
            count += len(lost)
    return count


def _is_lost(tx: Transaction, state: ThreadState, run_id: str, idle_since_ms: int) -> bool:
    row = find_one(tx.db, query("idle_run"), (state.key, run_id, tx.now_ms))
    return row is not None and max(row[0], tx.last_ms_of_run(state, run_id)) < idle_since_ms


def renew_presence(tx: Transaction, node: str, principal_ids: Sequence[str], *, valid_ms: int) -> None:
    """As `BubbleStore.renew_presence`."""
    tx.db.execute("DELETE FROM presence WHERE node = ?", (node,))
    tx.db.execute(
        "INSERT INTO presence SELECT DISTINCT value, ?, ? FROM json_each(?)",
        (node, tx.now_ms + valid_ms, msgspec.json.encode(principal_ids).decode()),
    )


def forget_absent(tx: Transaction) -> None:
    """Drops presence that is no longer valid."""
    tx.db.execute("DELETE FROM presence WHERE until_ms <= ?", (tx.now_ms,))


def forget_keys(tx: Transaction, *, idempotency_ms: int, limit: int) -> int:
    """Drops up to `limit` idempotency keys that are older; how many there were."""
    tx.db.execute(query("forget_keys"), (tx.now_ms - idempotency_ms, limit))
    return tx.db.changes()


def read_cursor(db: apsw.Connection, thread_id: str, principal_id: str) -> int:
    """As `BubbleStore.get_cursor`."""
    row = find_one(db, query("cursor"), (thread_id, principal_id))
    if row is None:
        raise thread_not_found(thread_id)
    return int(row[0])


def advance_cursor(tx: Transaction, thread_id: str, principal_id: str, seq: int, *, guard: Guard | None) -> int:
    """As `BubbleStore.advance_cursor`."""
    state = tx.thread(thread_id)
    tx.require(guard, "cursor.write", state)
    check_seq(seq, path="$.seq", lowest=0)
    if seq > state.head:
        raise InvalidRequest(f"`$.seq` must not be beyond the head, which is {state.head}.")
    return number(tx.db, query("advance_cursor"), (state.key, principal_id, seq))
