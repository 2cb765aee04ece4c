"""From the write-ahead log back into the database file, without making anybody wait.

SQLite's automatic checkpoints happen within a commit and make that one slow. Here a thread with a connection of its own copies while
the writer goes on. Only the log's last few pages, written meanwhile, are copied by the writer itself: then the log has no rest, and the
next commit begins it anew. So the log stays bounded, and so does the time that an append can lose to it.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

import apsw

__all__ = ["Checkpoints"]

#: Pages in the log that make a checkpoint worth while though the writer is busy (16 MiB).
_MANY_PAGES: Final = 4_096
#: What the writer copies itself.
_FEW_PAGES: Final = 256
_ROUNDS: Final = 4
_PATIENCE_MS: Final = 10
_USUAL_PATIENCE_MS: Final = 5_000


class Checkpoints:
    """Used by the writer's thread. `connect` opens the connection that copies."""

    def __init__(self, connect: Callable[[], apsw.Connection]) -> None:
        self._connect = connect
        self._thread = ThreadPoolExecutor(1, "bubble-checkpoint")
        self._connection: apsw.Connection | None = None
        self._job: Future[int] | None = None
        self._copied = 0

    @property
    def is_running(self) -> bool:
        """Whether the other thread is copying."""
        return self._job is not None and not self._job.done()

    def is_wanted(self, db: apsw.Connection) -> bool:
        """Whether there is anything to copy."""
        return self._job is not None or self._uncopied(db) > 0

    def run(self, db: apsw.Connection, *, is_idle: bool) -> None:
        """Takes the next step, if there is one to take. Raises what copying raised."""
        if self._job is not None:
            if not self._job.done():
                return
            job, self._job = self._job, None
            if job.result() <= _FEW_PAGES and self._uncopied(db) > 0:
                db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
                self._copied = _written(db)
        if self._uncopied(db) >= (1 if is_idle else _MANY_PAGES):
            self._copied = _written(db)
            self._job = self._thread.submit(self._copy)

    def truncate(self, db: apsw.Connection) -> bool:
        """Copies the rest and empties the log, so that nothing of the past is left in it; False if a reader was in the way."""
        if self.is_running:
            return False
        db.set_busy_timeout(_PATIENCE_MS)
        try:
            db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.BusyError:
            return False
        finally:
            db.set_busy_timeout(_USUAL_PATIENCE_MS)
        self._copied = _written(db)
        return True

    def close(self) -> None:
        """Waits for the other thread and ends it."""
        self._thread.shutdown(wait=True)
        if self._connection is not None:
            self._connection.close()

    def _uncopied(self, db: apsw.Connection) -> int:
        written = _written(db)
        if written < self._copied:  # another connection, which counts from zero
            self._copied = 0
        return written - self._copied

    def _copy(self) -> int:
        if self._connection is None:
            self._connection = self._connect()
        rest = 0
        for _ in range(_ROUNDS):
            in_log, copied = self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            rest = in_log - copied
            if rest <= _FEW_PAGES:
                break
        return rest


def _written(db: apsw.Connection) -> int:
    """How many pages the connection has written into the log."""
    return db.status(apsw.SQLITE_DBSTATUS_CACHE_WRITE)[0]
