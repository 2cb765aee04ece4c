"""Is the file sound? SQLite's own check first, then each thread's log against what is recorded about it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import apsw

from bubble.protocol.events import SequencedEvent
from bubble.protocol.timestamps import parse_ms
from bubble.store.admission import RunState
from bubble.store.checking import check_thread
from bubble.store.records import Problem
from bubble.store.sqlite.connection import STORE_ERRORS, find_one, number, open_connection, query, unavailable
from bubble.store.sqlite.migrations import require_current
from bubble.store.sqlite.reading import SEPARATOR

__all__ = ["check_database", "check_file"]

_PIECE: Final = 64


async def check_file(path: Path, *, vfs: str | None = None) -> list[Problem]:
    """Checks a store from outside, also while a server uses it.

    `Conflict` for a file that this code cannot use as it is, `Unavailable` for one that cannot be opened.
    """
    try:
        return await asyncio.to_thread(_check_file, path, vfs)
    except STORE_ERRORS as error:
        raise unavailable(error) from error


def _check_file(path: Path, vfs: str | None) -> list[Problem]:
    connection = open_connection(path, vfs=vfs, read_only=True)
    try:
        require_current(connection, path)
        return check_database(connection)
    finally:
        connection.close()


def check_database(db: apsw.Connection) -> list[Problem]:
    """Everything that is wrong, in one view of the file."""
    db.execute("BEGIN")
    try:
        problems = [Problem(thread_id=None, message=message) for message in _broken_pages(db)]
        return problems or list(_broken_threads(db))
    except apsw.CorruptError as error:
        return [Problem(thread_id=None, message=str(error))]
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def _broken_pages(db: apsw.Connection) -> Iterator[str]:
    for (message,) in db.execute("PRAGMA integrity_check"):
        if message != "ok":
            yield str(message)


def _broken_threads(db: apsw.Connection) -> Iterator[Problem]:
    strays = number(db, query("count_stray_threads"))
    if strays:
        yield Problem(thread_id=None, message=f"events of {strays} threads that do not exist")
    settled = number(db, "SELECT value FROM marks WHERE name = 'settled'")
    for thread_id, thread_key in db.execute("SELECT thread_id, thread_key FROM threads").fetchall():
        for message in _broken_thread(db, int(str(thread_key)), settled):
            yield Problem(thread_id=str(thread_id), message=message)


def _broken_thread(db: apsw.Connection, key: int, settled: int) -> Iterator[str]:
    recorded = find_one(db, "SELECT head, last_ms FROM activity WHERE thread_key = ?", (key,))
    if recorded is None:
        yield "its activity is not recorded"
        return
    head, last_ms = recorded
    last = find_one(db, "SELECT event_id, seq, text FROM events WHERE thread_key = ? ORDER BY seq DESC LIMIT 1", (key,))
    if last is not None and last[0] > settled:
        # What is not settled yet is not wrong. See activity.py.
        head, last_ms = last[1], _time_of(last[2])
    yield from check_thread(_texts(db, key), head=head, last_ms=last_ms, runs=_runs(db, key))


def _time_of(text: bytes) -> int:
    try:
        return parse_ms(SequencedEvent.from_stored(text).created_at)
    except ValueError:
        return 0


def _runs(db: apsw.Connection, key: int) -> dict[str, RunState]:
    rows = db.execute("SELECT run_id, principal_id, finished_seq FROM runs WHERE thread_key = ?", (key,))
    return {
        str(run_id): RunState(str(principal_id), "open" if finished_seq is None else "finished")
        for run_id, principal_id, finished_seq in rows
    }


def _texts(db: apsw.Connection, key: int) -> Iterator[bytes]:
    seq: int | None = 0
    while seq is not None:
        joined, seq = find_one(db, query("texts_after"), (key, seq, _PIECE))
        if joined is not None:
            yield from joined.split(SEPARATOR)
