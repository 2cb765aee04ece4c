"""The connector's SQLite file. Everything here waits for the disk: `AmphibianStore` calls it in a thread of its own."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Final

from bubble.file_lock import FileLock
from bubble.protocol.errors import Unavailable

__all__ = ["MEMORY", "Database", "look_at"]

MEMORY: Final = ":memory:"
_APPLICATION: Final = 0x4275_4361  # "BuCa": says in the file's header whose it is
_VERSION: Final = 1
_USER: Final = "connector"
# How long somebody else may hold the file for writing. No other connector does: a tool that looks into it might.
_BUSY_SECONDS: Final = 2.0

Row = tuple[object, ...]


class Database:
    """One connection. `path` is a file, made with its directory where there is none and locked against other connectors, or `MEMORY`.

    Raises, with a sentence that names the file, `Conflict` if it is in use, and `Unavailable` if it is damaged, somebody else's, of a newer
    version, or not to be written.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        with _explained(path), ExitStack() as undo:
            if path != MEMORY:
                undo.callback(_lock(Path(path)).release)
            self._db = sqlite3.connect(path, isolation_level=None, timeout=_BUSY_SECONDS, check_same_thread=False)
            undo.callback(self._db.close)
            self._prepare()
            self._resources = undo.pop_all()

    def close(self) -> None:
        """Closes the connection and lets others have the file."""
        self._resources.close()

    def row(self, sql: str, values: Row) -> Row | None:
        """The first row of a query."""
        with _explained(self.path):
            found: Row | None = self._db.execute(sql, values).fetchone()
        return found

    def write(self, sql: str, rows: Sequence[Row]) -> None:
        """One statement for each row, all or none, durable on return."""
        with _explained(self.path), self._transaction():
            self._db.executemany(sql, rows)

    def _prepare(self) -> None:
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        with self._transaction():
            if _is_new(self._db, self.path):
                self._create()
        _check(self._db)

    def _create(self) -> None:
        for statement in _without_comments(files(__package__).joinpath("schema.sql").read_text("utf-8")).split(";"):
            self._db.execute(statement)
        self._db.execute(f"PRAGMA application_id = {_APPLICATION}")
        self._db.execute(f"PRAGMA user_version = {_VERSION}")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")


def look_at(path: str) -> bool:
    """Whether there is a store at `path` already, where a connector could use or make one. Nothing is made, changed or held.

    Raises like `Database` where it could not.
    """
    place = Path(path)
    with _explained(path):
        if not place.exists():
            _check_that_it_can_be_made(place)
            return False
        if not place.is_file():
            raise Unavailable(f"{path} is not a file: name another one.")
        FileLock.look(place.resolve(), user=_USER)
        if not os.access(place, os.R_OK | os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        # As it is on the disk: otherwise SQLite would make files beside it.
        with closing(sqlite3.connect(f"{place.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as db:
            is_settled = not place.with_name(
                f"{place.name}-wal"
            ).exists()  # else it may be whole only together with that
            if not _is_new(db, path) and is_settled:
                _check(db)
    return True


def _check_that_it_can_be_made(place: Path) -> None:
    above = next(each for each in place.absolute().parents if each.exists())
    if not above.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    if not os.access(above, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def _is_new(db: sqlite3.Connection, path: str) -> bool:
    """Whether nobody has written anything there yet. Raises `Unavailable` where it was not a connector, or one of a newer version."""

    def pragma(name: str) -> int:
        return int(db.execute(f"PRAGMA {name}").fetchone()[0])

    version, application = pragma("user_version"), pragma("application_id")
    has_tables = db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is not None
    if version == 0 and application == 0 and not has_tables:
        return True
    if application != _APPLICATION:
        raise Unavailable(f"{path} is not a connector's store: name another file.")
    if version > _VERSION:
        raise Unavailable(f"{path} was written by a newer version of Bubble: install that one.")
    return False


def _check(db: sqlite3.Connection) -> None:
    (state,) = db.execute("PRAGMA quick_check(1)").fetchone()
    if state != "ok":
        raise sqlite3.DatabaseError(state)


@contextmanager
def _explained(path: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        raise Unavailable(f"The connector's store {path} cannot be used: {error}.") from None
    except sqlite3.DatabaseError as error:
        raise Unavailable(
            f"The connector's store {path} is damaged ({error}): move it away, and the connector starts anew."
        ) from None
    except OSError as error:
        raise Unavailable(f"The connector's store {path} cannot be made: {error.strerror or error}.") from None


def _lock(path: Path) -> FileLock:
    """The file's lock. The file and what directories it needs are made, for nobody else: sessions may hold what an agent was told."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.touch(mode=0o600, exist_ok=True)
    return FileLock(path.resolve(), user=_USER)


def _without_comments(sql: str) -> str:
    return "\n".join(line.partition("--")[0] for line in sql.splitlines()).strip().removesuffix(";")
