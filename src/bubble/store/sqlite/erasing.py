"""Deleted threads, whose bytes go slice by slice so that nobody waits for long.

A deleted thread is invisible at once: without its row in `threads` nothing finds the others. What is left to be erased stands in
`doomed_threads`, so that a restart goes on with it. SQLite overwrites what it deletes (`secure_delete`), and once all of a thread is gone
the log is emptied too, which held pages from before.
"""

from __future__ import annotations

from collections import deque
from typing import Final

import apsw

from bubble.protocol.errors import Unavailable
from bubble.store.sqlite.connection import find_one, query, transaction
from bubble.store.sqlite.group import Done

__all__ = ["Erasing"]

_SLICE_ROWS: Final = 512
_SLICE_BYTES: Final = 4 * 1024 * 1024

_REST: Final = (
    ("runs", "run_id"),
    ("decisions", "run_id, tool_call_id"),
    ("idempotency_keys", "caller, key"),
    ("grants", "principal_id"),
    ("cursors", "principal_id"),
)


class Erasing:
    """Used by the writer's thread alone."""

    def __init__(self) -> None:
        self._doomed: deque[int] = deque()
        self._waiting: dict[int, list[Done]] = {}
        #: Threads that are erased from the file, but perhaps not from the log yet.
        self._erased: list[int] = []

    def resume(self, db: apsw.Connection) -> None:
        """Goes on with what was left over when the file was last open."""
        self._doomed.extend(key for (key,) in db.execute("SELECT thread_key FROM doomed_threads"))

    def add(self, thread_key: int) -> None:
        """Begins to erase a thread that was deleted."""
        self._doomed.append(thread_key)

    def when_erased(self, thread_key: int, done: Done) -> None:
        """Calls `done` with None once nothing is left of it, or with `Unavailable` if that cannot be now."""
        if thread_key in self._doomed or thread_key in self._erased:
            self._waiting.setdefault(thread_key, []).append(done)
        else:
            done(None)

    @property
    def has_more(self) -> bool:
        """Whether a slice is left to be erased."""
        return bool(self._doomed)

    @property
    def wants_empty_log(self) -> bool:
        """Whether something was erased that the log may still hold."""
        return bool(self._erased) and not self._doomed

    def erase_slice(self, db: apsw.Connection) -> None:
        """Erases a bounded part, in a transaction of its own."""
        key = self._doomed[0]
        with transaction(db):
            is_done = _erase_some(db, key)
            if is_done:
                db.execute("DELETE FROM doomed_threads WHERE thread_key = ?", (key,))
        if is_done:
            self._erased.append(self._doomed.popleft())

    def log_is_empty(self) -> None:
        """Tells those who wait that it is done."""
        for key in self._erased:
            for done in self._waiting.pop(key, ()):
                done(None)
        self._erased.clear()

    def postpone(self) -> None:
        """Tells those who wait that it will take longer: the disk fails, or the store is being closed."""
        waiting, self._waiting = self._waiting, {}
        for done in (one for some in waiting.values() for one in some):
            done(
                Unavailable("The thread is deleted, but not all of its bytes are erased yet. That goes on when it can.")
            )


def _erase_some(db: apsw.Connection, key: int) -> bool:
    """Erases up to a slice; whether that was the end of it."""
    db.execute(query("erase_events"), (key, _SLICE_ROWS, _SLICE_BYTES))
    room = _SLICE_ROWS - db.changes()
    if find_one(db, "SELECT 1 FROM events WHERE thread_key = ?", (key,)):
        return False
    for table, columns in _REST:
        if room > 0:
            db.execute(
                f"DELETE FROM {table} WHERE thread_key = ?1 AND ({columns}) IN"  # noqa: S608 - names from the table above
                f" (SELECT {columns} FROM {table} WHERE thread_key = ?1 LIMIT ?2)",
                (key, room),
            )
            room -= db.changes()
    return room > 0
