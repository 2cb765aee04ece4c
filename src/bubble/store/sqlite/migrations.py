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

__all__ = ["APPLICATION_ID", "Migration", "bring_up_to_date", "known_migrations", "schema_version"]

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


def schema_version(db: apsw.Connection) -> int:
    """The newest migration that the file has had, 0 for an empty one."""
    if not find_one(db, "SELECT 1 FROM sqlite_schema WHERE name = 'migrations'"):
        return 0
    return number(db, "SELECT max(version) FROM migrations")


def bring_up_to_date(db: apsw.Connection, path: Path, *, migrate: bool, clock: Clock) -> int:
    """Runs what is missing and tells the version. `Conflict` for a file that is not ours, is newer, or is older and may not change.

    An empty file is always filled.
    """
    _check_owner(db, path)
    version = schema_version(db)
    known = known_migrations()
    if version > known[-1].version:
        raise Conflict(
            f"{path} was written by a newer Bubble (its schema is {version}, this one knows {known[-1].version}). Upgrade Bubble."
        )
    missing = [step for step in known if step.version > version]
    if missing and version and not migrate:
        raise Conflict(
            f"{path} has schema {version}, this Bubble needs {known[-1].version}. Back it up, then run `bubble db migrate`."
        )
    for step in missing:
        _apply(db, step, clock())
    return known[-1].version


def _check_owner(db: apsw.Connection, path: Path) -> None:
    owner = number(db, "PRAGMA application_id")
    is_empty = find_one(db, "SELECT 1 FROM sqlite_schema") is None
    if owner != APPLICATION_ID and not (owner == 0 and is_empty):
        raise Conflict(f"{path} is a SQLite file of another program. Give Bubble a file of its own.")


def _apply(db: apsw.Connection, step: Migration, now_ms: int) -> None:
    with transaction(db):
        if step.version == 1:
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.execute(_LEDGER)
        db.execute(step.sql)
        db.execute("INSERT INTO migrations VALUES (?, ?, ?)", (step.version, step.name, now_ms))
