"""What the lists sort by, settled later.

*Theory of operation.* The log itself tells each thread's head, so nothing else has to be written with an event. But the list of
threads goes by latest activity, and a run has to know its newest event, and neither may be searched for in the log. Writing both
with each event costs several pages per thread and commit (with writes spread over many threads, six times the price of the events
themselves). So the writer keeps them in memory and **settles** them: when it is idle, when they are many or old, and whenever somebody
is about to read them. The mark `settled` says up to which event the file tells it all. Event ids are never used twice, so what a
crash left behind is worked out from the events beyond the mark when the file is opened.
"""

from __future__ import annotations

from itertools import islice
from typing import Final, TypeAlias

import apsw

from bubble.store.sqlite.connection import number, query, transaction
from bubble.store.sqlite.multirow import MultiRow

__all__ = ["NEWEST_OF_RUNS", "Activity", "settle_after_crash"]

Newest: TypeAlias = tuple[int, int]  # seq, ms

_SLICE: Final = 2_048

_THREADS: Final = MultiRow(
    "UPDATE activity SET head = fresh.column2, last_ms = fresh.column3 FROM (",
    width=3,
    after=") AS fresh WHERE activity.thread_key = fresh.column1",
)
#: Rows of thread_key, run_id, seq, ms.
NEWEST_OF_RUNS: Final = MultiRow(
    "UPDATE runs SET last_seq = fresh.column3, last_ms = fresh.column4 FROM (",
    width=4,
    after=") AS fresh WHERE runs.thread_key = fresh.column1 AND runs.run_id = fresh.column2",
)
_SET_MARK: Final = "UPDATE marks SET value = ? WHERE name = 'settled'"


class Activity:
    """The unsettled rest: where each thread and each run stands that had an event. Used by the writer's thread alone."""

    def __init__(self, *, last_event_id: int) -> None:
        self.threads: dict[int, Newest] = {}
        self.runs: dict[tuple[int, str], Newest] = {}
        #: The id of the last event that was committed.
        self.last_event_id = last_event_id
        # One generation is written in slices while the next one gathers.
        self._old_threads: dict[int, Newest] = {}
        self._old_runs: dict[tuple[int, str], Newest] = {}
        self._old_mark = last_event_id

    def __len__(self) -> int:
        return len(self.threads) + len(self.runs) + len(self._old_threads) + len(self._old_runs)

    @property
    def is_settling(self) -> bool:
        """Whether `settle_slice` left something of what it began with."""
        return bool(self._old_threads or self._old_runs)

    def newest_of_run(self, run: tuple[int, str]) -> Newest | None:
        """The newest event of a run (thread_key, run_id), if it is not settled yet."""
        return self.runs.get(run) or self._old_runs.get(run)

    def settle(self, db: apsw.Connection) -> None:
        """Writes everything. What a failure left unwritten stays to be settled."""
        while self:
            self.settle_slice(db)

    def settle_slice(self, db: apsw.Connection) -> None:
        """Writes a bounded part in one transaction, the mark with the last part of a generation."""
        if not self.is_settling:
            self._next_generation()
        threads = list(islice(self._old_threads.items(), _SLICE))
        runs = list(islice(self._old_runs.items(), _SLICE))
        with transaction(db):
            _THREADS.run(db, [value for key, newest in threads for value in (key, *newest)])
            NEWEST_OF_RUNS.run(db, [value for key, newest in runs for value in (*key, *newest)])
            if len(threads) == len(self._old_threads) and len(runs) == len(self._old_runs):
                db.execute(_SET_MARK, (self._old_mark,))
        for thread_key, _ in threads:
            del self._old_threads[thread_key]
        for run, _ in runs:
            del self._old_runs[run]

    def _next_generation(self) -> None:
        # In the order of their keys: neighbours share pages, so a slice touches few.
        self._old_threads = dict(sorted(self.threads.items()))
        self._old_runs = dict(sorted(self.runs.items()))
        self._old_mark = self.last_event_id
        self.threads, self.runs = {}, {}


def settle_after_crash(db: apsw.Connection) -> int:
    """Brings the activity up to date with events beyond the mark, in one transaction; the highest event id ever used."""
    mark = number(db, "SELECT value FROM marks WHERE name = 'settled'")
    newest = number(db, "SELECT max(event_id) FROM events")
    if newest > mark:
        with transaction(db):
            db.execute(query("settle_threads"), (mark,))
            db.execute(query("settle_runs"), (mark,))
            db.execute(_SET_MARK, (newest,))
    return max(mark, newest)
