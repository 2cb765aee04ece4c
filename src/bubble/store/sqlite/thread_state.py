"""A thread as the writer knows it: what the file says, with what the open group already admitted.

Only the writer changes the file, so what it has read once stays true as long as it follows its own changes. A state whose changes
did not get through is dropped, and read again when it is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import apsw

from bubble.protocol.events import SequencedEvent
from bubble.protocol.resources import JoinPolicy
from bubble.protocol.timestamps import format_ms, parse_ms
from bubble.store.admission import Admission, Decision, RunState
from bubble.store.commands import Guard
from bubble.store.sqlite.connection import find_one, query

__all__ = ["Pen", "States", "ThreadState"]

_MOST_THREADS: Final = 32_768
_MOST_REMEMBERED: Final = 512


class Pen:
    """Who was found free to write parts into an open run.

    Another plain `message_part` by the same guard, principal and run is admitted for the same reasons and need not ask again. The
    end of the run takes its pen away, a change of grants or of the join policy takes all of them.
    """

    __slots__ = ("guard", "principal_id", "seq")

    def __init__(self, guard: Guard | None, principal_id: str) -> None:
        self.guard = guard
        self.principal_id = principal_id
        #: The last part in the open group that it wrote, 0 for none.
        self.seq = 0


class ThreadState:
    """One thread, as `bubble.store.admission.Ledger`. `texts` are its new events in the open group (None: it has none there)."""

    __slots__ = (
        "_db",
        "_decisions",
        "_roles",
        "_runs",
        "_touched",
        "created_at",
        "grant_version",
        "head",
        "join_policy",
        "key",
        "last_ms",
        "pens",
        "texts",
        "thread_id",
        "used",
    )

    def __init__(
        self,
        db: apsw.Connection,
        thread_id: str,
        *,
        key: int,
        join_policy: JoinPolicy = "invite",
        grant_version: int = 1,
        head: int = 0,
        last_ms: int = 0,
    ) -> None:
        self.thread_id = thread_id
        self.key = key
        self.join_policy: JoinPolicy = join_policy
        self.grant_version = grant_version
        self.head = head
        self.last_ms = last_ms
        self.created_at = ""
        self.texts: list[bytes] | None = None
        self.pens: dict[str, Pen] = {}
        self.used = 0
        self._db = db
        self._roles: dict[str, str | None] = {}
        self._runs: dict[str, RunState | None] = {}
        self._decisions: dict[tuple[str, str], Decision] = {}
        self._touched: dict[str, int] = {}

    @classmethod
    def load(cls, db: apsw.Connection, thread_id: str) -> ThreadState | None:
        """The thread that the file has under that id."""
        row = find_one(db, query("load_thread"), (thread_id,))
        if row is None:
            return None
        key, join_policy, grant_version, recorded_head, head, text = row
        return cls(
            db,
            thread_id,
            key=key,
            join_policy=join_policy,
            grant_version=grant_version,
            # Equal or the log is ahead. Should a damaged file have lost its last events, their seqs are still not given again.
            head=max(recorded_head, head or 0),
            last_ms=0 if text is None else parse_ms(SequencedEvent.from_stored(text).created_at),
        )

    def role_of(self, principal_id: str) -> str | None:
        """The principal's role here, if any."""
        if principal_id not in self._roles:
            row = find_one(
                self._db, "SELECT role FROM grants WHERE thread_key = ? AND principal_id = ?", (self.key, principal_id)
            )
            self._roles[principal_id] = None if row is None else row[0]
        return self._roles[principal_id]

    def run(self, run_id: str) -> RunState | None:
        """The run, if it ever started."""
        if run_id not in self._runs:
            row = find_one(
                self._db,
                "SELECT principal_id, finished_seq FROM runs WHERE thread_key = ? AND run_id = ?",
                (self.key, run_id),
            )
            self._runs[run_id] = None if row is None else RunState(row[0], "open" if row[1] is None else "finished")
        return self._runs[run_id]

    def decision(self, run_id: str, tool_call_id: str) -> Decision | None:
        """The decision on a tool call, if there is one."""
        call = (run_id, tool_call_id)
        known = self._decisions.get(call)
        if known is not None:
            return known
        row = find_one(
            self._db,
            "SELECT approved, principal_id, seq FROM decisions WHERE thread_key = ? AND run_id = ? AND tool_call_id = ?",
            (self.key, *call),
        )
        return None if row is None else Decision(*call, approved=bool(row[0]), principal_id=row[1], seq=row[2])

    def follow(self, admission: Admission) -> None:
        """Takes over what an admission that is being written does to head, runs and decisions."""
        self.head = admission.events[-1].seq
        self._touched.update(admission.touched)
        for run_id, started in admission.started.items():
            self._runs[run_id] = RunState(started.principal_id, "open")
        for run_id in admission.finished:
            run = self.run(run_id)
            if run is not None:
                self._runs[run_id] = RunState(run.principal_id, "finished")
                self.pens.pop(run_id, None)
        self._decisions.update(admission.decisions)

    def touched_runs(self) -> Iterator[tuple[str, int]]:
        """Gives, once, the newest seq of each run that had events in the open group."""
        for run_id, pen in self.pens.items():
            if pen.seq > self._touched.get(run_id, 0):
                self._touched[run_id] = pen.seq
            pen.seq = 0
        yield from self._touched.items()
        self._touched.clear()

    def forget_grants(self) -> None:
        """Reads roles again: they changed, or the join policy did, so nobody's pen is good any more either."""
        self._roles.clear()
        self.pens.clear()

    def begin(self, *, now_ms: int, created_at: str, group: int) -> list[bytes]:
        """Opens the thread in a group of commands that happens at `now_ms`; where the clock ran backwards, not before the last one."""
        if now_ms >= self.last_ms:
            self.last_ms, self.created_at = now_ms, created_at
        else:
            self.created_at = format_ms(self.last_ms)
        texts = self.texts = []
        if self.used != group:
            self.used = group
            # Only here: within a group these know what is not in the file yet.
            for memory in (self._roles, self._runs, self._decisions, self.pens):
                if len(memory) > _MOST_REMEMBERED:
                    memory.clear()
        return texts


class States:
    """The threads that had something written lately. When there are too many, the quarter goes that was used longest ago."""

    def __init__(self, db: apsw.Connection) -> None:
        self.by_id: dict[str, ThreadState] = {}
        self._db = db

    def find(self, thread_id: str) -> ThreadState | None:
        """The thread, or None if there is no such thread."""
        state = self.by_id.get(thread_id)
        if state is None:
            state = ThreadState.load(self._db, thread_id)
            if state is not None:
                self.by_id[thread_id] = state
        return state

    def make_room(self) -> None:
        """Between two groups, when nothing is open."""
        if len(self.by_id) > _MOST_THREADS:
            oldest = sorted(self.by_id.values(), key=lambda state: state.used)[: _MOST_THREADS // 4]
            for state in oldest:
                del self.by_id[state.thread_id]
