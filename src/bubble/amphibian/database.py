"""The connector's SQLite file. Everything here waits for the disk: `AmphibianStore` calls it in a thread of its own."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Final

from bubble.file_lock import FileLock
from bubble.protocol.errors import Unavailable

__all__ = ["MEMORY", "Database"]

MEMORY: Final = ":memory:"
_APPLICATION: Final = 0x4275_4361  # "BuCa": says in the file's header whose it is
_VERSION: Final = 1

Row = tuple[object, ...]


class Database:
    """One connection. `path` is a file, made with its directory where there is none and locked against other connectors, or `MEMORY`.

    Raises, with a sentence that names the file, `Conflict` if it is in use, and `Unavailable` if it is damaged, somebody else's, of a newer
    version, or not to be written.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        with self._explained(), ExitStack() as undo:
            if path != MEMORY:
                undo.callback(_lock(Path(path)).release)
            self._db = sqlite3.connect(path, isolation_level=None, timeout=10.0, check_same_thread=False)
            undo.callback(self._db.close)
            self._prepare()
            self._resources = undo.pop_all()

    def close(self) -> None:
        """Closes the connection and lets others have the file."""
        self._resources.close()

    def row(self, sql: str, values: Row) -> Row | None:
        """The first row of a query."""
        with self._explained():
            found: Row | None = self._db.execute(sql, values).fetchone()
        return found

    def write(self, sql: str, rows: Sequence[Row]) -> None:
        """One statement for each row, all or none, durable on return."""
        with self._explained(), self._transaction():
            self._db.executemany(sql, rows)

    def _prepare(self) -> None:
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        with self._transaction():
            version, application = self._pragma("user_version"), self._pragma("application_id")
            if version == 0 and application == 0 and not self._has_tables():
                self._create()
            elif application != _APPLICATION:
                raise Unavailable(f"{self.path} is not a connector's store: name another file.")
            elif version > _VERSION:
                raise Unavailable(f"{self.path} was written by a newer version of Bubble: install that one.")
        (state,) = self._db.execute("PRAGMA quick_check(1)").fetchone()
        if state != "ok":
            raise sqlite3.DatabaseError(state)

    def _create(self) -> None:
        for statement in _without_comments(files(__package__).joinpath("schema.sql").read_text("utf-8")).split(";"):
            self._db.execute(statement)
        self._db.execute(f"PRAGMA application_id = {_APPLICATION}")
        self._db.execute(f"PRAGMA user_version = {_VERSION}")

    def _pragma(self, name: str) -> int:
        return int(self._db.execute(f"PRAGMA {name}").fetchone()[0])

    def _has_tables(self) -> bool:
        return self._db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is not None

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise Unavailable(f"The connector's store {self.path} cannot be used: {error}.") from None
        except sqlite3.DatabaseError as error:
            raise Unavailable(
                f"The connector's store {self.path} is damaged ({error}): move it away, and the connector starts anew."
            ) from None
        except OSError as error:
            raise Unavailable(f"The connector's store {self.path} cannot be made: {error.strerror or error}.") from None


def _lock(path: Path) -> FileLock:
    """The file's lock. The file and what directories it needs are made, for nobody else: sessions may hold what an agent was told."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.touch(mode=0o600, exist_ok=True)
    return FileLock(path.resolve(), user="connector")


def _without_comments(sql: str) -> str:
    return "\n".join(line.partition("--")[0] for line in sql.splitlines()).strip().removesuffix(";")
