"""From an empty or older file to what this code knows: numbered files, forward only, each in one transaction."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Final

import apsw

from bubble.protocol.errors import Conflict
from bubble.protocol.timestamps import Clock
from bubble.store.sqlite.connection import find_one, number, transaction

__all__ = ["APPLICATION_ID", "Migration", "bring_up_to_date", "known_migrations", "require_current"]

#: In the header of every file that is ours ("BBBL").
APPLICATION_ID: Final = 0x4242424C

_LEDGER = (
    "CREATE TABLE migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_ms INTEGER NOT NULL) STRICT"
)


@dataclass(frozen=True, slots=True)
class Migration:
    """One step: `version` is the number its file begins with, dense from 1."""

    version: int
    name: str
    sql: str


@cache
def known_migrations() -> tuple[Migration, ...]:
    """Every migration of this code, in order."""
    files = sorted(resources.files(__package__).joinpath("migrations").iterdir(), key=lambda file: file.name)
    found = [file for file in files if file.name.endswith(".sql")]
    return tuple(Migration(int(file.name[:4]), file.name[5:-4], file.read_text("utf-8")) for file in found)


def bring_up_to_date(db: apsw.Connection, path: Path, *, migrate: bool, clock: Clock) -> int:
    """Runs what is missing and tells the version. `Conflict` for a file that is not ours, is newer, or is older and may not change.

    An empty file is always filled.
    """
    if _is_new(db):
        version = 0
    elif migrate:
        version = _require_ours(db, path)
    else:
        return require_current(db, path)
    for step in known_migrations()[version:]:
        _apply(db, step, clock())
    return known_migrations()[-1].version


def require_current(db: apsw.Connection, path: Path) -> int:
    """The version of a file that this code can use as it is; `Conflict` if it cannot."""
    version, needed = _require_ours(db, path), known_migrations()[-1].version
    if version < needed:
        raise Conflict(
            f"{path} has schema {version}, this Bubble needs {needed}. Back it up, then run `bubble db migrate`."
        )
    return version


def _is_new(db: apsw.Connection) -> bool:
    return number(db, "PRAGMA application_id") == 0 and find_one(db, "SELECT 1 FROM sqlite_schema") is None


def _require_ours(db: apsw.Connection, path: Path) -> int:
    if number(db, "PRAGMA application_id") != APPLICATION_ID:
        raise Conflict(f"{path} is a SQLite file of another program. Give Bubble a file of its own.")
    version, known = number(db, "SELECT max(version) FROM migrations"), known_migrations()[-1].version
    if version > known:
        raise Conflict(
            f"{path} was written by a newer Bubble (its schema is {version}, this one knows {known}). Upgrade Bubble."
        )
    return version


def _apply(db: apsw.Connection, step: Migration, now_ms: int) -> None:
    with transaction(db):
        if step.version == 1:
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.execute(_LEDGER)
        db.execute(step.sql)
        db.execute("INSERT INTO migrations VALUES (?, ?, ?)", (step.version, step.name, now_ms))
