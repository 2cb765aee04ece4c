"""Connections to the file, what all of them have in common, and what becomes of SQLite's errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

import apsw
import msgspec

from bubble.protocol.errors import Unavailable

__all__ = [
    "STORE_ERRORS",
    "Value",
    "find_all",
    "find_one",
    "is_damaged",
    "number",
    "open_connection",
    "query",
    "transaction",
    "unavailable",
]

Value: TypeAlias = None | int | float | bytes | str
T = TypeVar("T")

#: What a statement raises where the disk, or the file on it, fails. (A VFS written in Python may raise the second kind.)
STORE_ERRORS: Final = (apsw.Error, OSError)

_BUSY_MS = 5_000
_KIB_OF_CACHE = {"write": 65_536, "read": 8_192}
_STATEMENTS = 300


def open_connection(path: Path, *, vfs: str | None = None, read_only: bool = False) -> apsw.Connection:
    """A connection that syncs every commit and leaves checkpoints to whoever owns them.

    Raises one of `STORE_ERRORS`.
    """
    flags = apsw.SQLITE_OPEN_READWRITE | (0 if read_only else apsw.SQLITE_OPEN_CREATE)
    connection = apsw.Connection(str(path), flags=flags, vfs=vfs, statementcachesize=_STATEMENTS)
    try:
        connection.set_busy_timeout(_BUSY_MS)
        # A statement keeps the plan it was prepared with. Else SQLite looks at each new value and prepares many of them again.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        connection.pragma("cache_size", -_KIB_OF_CACHE["read" if read_only else "write"])
        connection.pragma("wal_autocheckpoint", 0)
        if read_only:
            connection.pragma("query_only", 1)
        else:
            connection.pragma("journal_mode", "wal")
            connection.pragma("synchronous", "full")
            connection.pragma(
                "fullfsync", 1
            )  # on macOS a plain sync does not reach the disk; elsewhere it says nothing
            connection.pragma("secure_delete", 1)
    except BaseException:
        connection.close()
        raise
    return connection


def is_damaged(error: BaseException) -> bool:
    """Whether one of `STORE_ERRORS` says that the file itself is wrong, which trying again does not change."""
    return isinstance(error, apsw.CorruptError | apsw.NotADBError)


def unavailable(error: BaseException) -> Unavailable:
    """What a caller learns of one of `STORE_ERRORS`: the kind, never a path or a statement."""
    if is_damaged(error):
        return Unavailable(
            f"The store's file is damaged, or no database ({type(error).__name__}). Keep a copy of it, then restore a backup."
        )
    return Unavailable(f"The store cannot do that now ({type(error).__name__}). It is safe to try again.")


@contextmanager
def transaction(db: apsw.Connection) -> Iterator[None]:
    """Commits what the block writes, or nothing where it or the commit raises."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # some errors have rolled back already
            db.execute("ROLLBACK")
        raise


@cache
def query(name: str) -> str:
    """The statement in `queries/<name>.sql`."""
    return resources.files(__package__).joinpath("queries", f"{name}.sql").read_text("utf-8")


def find_one(db: apsw.Connection, sql: str, bindings: Sequence[Value] = ()) -> Any:  # noqa: ANN401 - SQLite types values, not columns
    """The first row as a tuple, or None."""
    return db.execute(sql, bindings).fetchone()


def number(db: apsw.Connection, sql: str, bindings: Sequence[Value] = ()) -> int:
    """The single number that a statement answers with; 0 for NULL or no row."""
    row = db.execute(sql, bindings).fetchone()
    return 0 if row is None or row[0] is None else int(row[0])


def find_all(
    db: apsw.Connection, sql: str, bindings: Sequence[Value], decoder: msgspec.json.Decoder[list[T]]
) -> list[T]:
    """The rows that a statement gives as one JSON array.

    Each step of a statement gives up the interpreter's lock and has to win it back, which beside a busy event loop costs
    milliseconds. So a list comes in one step, not in one per row, and gets its types on the way.
    """
    row = db.execute(sql, bindings).fetchone()
    return [] if row is None or row[0] is None else decoder.decode(row[0])
