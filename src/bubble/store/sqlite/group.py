"""One transaction of the writer: what a group of commands writes, tells and answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import apsw

from bubble.protocol.timestamps import format_ms
from bubble.store.admission import Admission
from bubble.store.commands import AppendCommand
from bubble.store.notices import Committed, Notice
from bubble.store.sqlite.activity import Activity, Newest
from bubble.store.sqlite.connection import Value
from bubble.store.sqlite.log_rows import (
    DECISIONS,
    EVENTS,
    FINISHED_RUNS,
    KEYS,
    STARTED_RUNS,
    decision_row,
    finished_row,
    started_row,
)
from bubble.store.sqlite.thread_state import ThreadState

__all__ = ["Done", "Group", "Outcome"]

Done: TypeAlias = Callable[[Any], None]
Outcome: TypeAlias = tuple[Done, object]


class Group:
    """Gathers in memory, writes in few statements. Nothing of it counts before `commit` has returned."""

    __slots__ = (
        "_created_at",
        "_decided",
        "_finished",
        "_keys",
        "_open_states",
        "_started",
        "afterwards",
        "db",
        "event_id",
        "has_begun",
        "keys",
        "notices",
        "now_ms",
        "number",
        "outcomes",
        "rows",
        "touched_runs",
        "touched_threads",
    )

    def __init__(self, db: apsw.Connection, *, number: int, now_ms: int, last_event_id: int) -> None:
        self.db = db
        self.number = number
        self.now_ms = now_ms
        self._created_at = format_ms(now_ms)
        self.event_id = last_event_id
        self.has_begun = False
        #: New events, four values each: event_id, thread_key, seq, text.
        self.rows: list[Value] = []
        self.notices: list[Notice] = []
        self.outcomes: list[Outcome] = []
        #: What to do in the writer's thread once it is durable.
        self.afterwards: list[Callable[[], None]] = []
        #: What idempotency keys of this group stand for: digest, first and last seq.
        self.keys: dict[tuple[int, str, str], tuple[bytes, int, int]] = {}
        self.touched_threads: dict[int, Newest] = {}
        self.touched_runs: dict[tuple[int, str], Newest] = {}
        self._open_states: list[ThreadState] = []
        self._started: list[Value] = []
        self._finished: list[Value] = []
        self._decided: list[Value] = []
        self._keys: list[Value] = []

    def begin(self) -> None:
        """Opens the transaction, if it is not open."""
        if not self.has_begun:
            self.db.execute("BEGIN IMMEDIATE")
            self.has_begun = True

    def open(self, state: ThreadState) -> list[bytes]:
        """Where the new events of a thread are gathered until they are told."""
        texts = state.texts
        if texts is None:
            texts = state.begin(now_ms=self.now_ms, created_at=self._created_at, group=self.number)
            self._open_states.append(state)
        return texts

    def write(self, state: ThreadState, command: AppendCommand, admission: Admission) -> None:
        """Writes what was admitted."""
        key = state.key
        texts = self.open(state)
        for event in admission.events:
            self.event_id += 1
            self.rows += (self.event_id, key, event.seq, event.text)
            texts.append(event.text)
        state.follow(admission)
        for started in admission.started.values():
            self._started += started_row(key, started)
        for finished in admission.finished.values():
            self._finished += finished_row(key, finished)
        for decision in admission.decisions.values():
            self._decided += decision_row(key, decision)
        asked = command.idempotency
        if asked is not None:
            first, last = admission.events[0].seq, admission.events[-1].seq
            self.keys[key, asked.caller, asked.key] = (asked.digest, first, last)
            self._keys += (key, asked.caller, asked.key, asked.digest, first, last, self.now_ms)

    def tell(self, state: ThreadState, *, always: bool = False) -> None:
        """Closes a thread's new events into a notice. With `always` there is one without events too: a new grant version."""
        texts = state.texts
        if texts is None and not always:
            return
        if texts:
            self.touched_threads[state.key] = (state.head, state.last_ms)
            for run_id, seq in state.touched_runs():
                self.touched_runs[state.key, run_id] = (seq, state.last_ms)
        state.texts = None
        self.notices.append(Committed(state.thread_id, state.head, state.grant_version, texts or ()))

    def flush(self) -> None:
        """Brings everything gathered into the transaction, so that statements see it."""
        if self._has_rows:
            self.begin()
            self._execute()

    def discard(self) -> None:
        """Forgets what was gathered since the last flush."""
        for rows in (self.rows, self._started, self._finished, self._decided, self._keys):
            rows.clear()

    def commit(self, activity: Activity) -> bool:
        """Makes it durable; whether there was anything. Raises one of `STORE_ERRORS`, and then nothing has happened."""
        for state in self._open_states:
            self.tell(state)
        if not self.has_begun and not self._has_rows:
            return False
        if self._is_one_statement:
            # Durable in one step: a statement outside of a transaction is one of its own.
            EVENTS.run(self.db, self.rows)
        else:
            self.flush()
            self.db.execute("COMMIT")
        activity.threads.update(self.touched_threads)
        activity.runs.update(self.touched_runs)
        activity.last_event_id = self.event_id
        for then in self.afterwards:
            then()
        return True

    def answer(self, done: Done | None, result: object) -> None:
        """Keeps an outcome until it is true."""
        if done is not None:
            self.outcomes.append((done, result))

    @property
    def _has_rows(self) -> bool:
        return bool(self.rows or self._started or self._finished or self._decided or self._keys)

    @property
    def _is_one_statement(self) -> bool:
        beside = self.has_begun or self._started or self._finished or self._decided or self._keys
        return not beside and bool(self.rows) and EVENTS.fits_one(self.rows)

    def _execute(self) -> None:
        for statement, rows in (
            (EVENTS, self.rows),
            (STARTED_RUNS, self._started),
            (FINISHED_RUNS, self._finished),
            (DECISIONS, self._decided),
            (KEYS, self._keys),
        ):
            statement.run(self.db, rows)
            rows.clear()
