"""One process at a time: a lock file beside a database, held as long as the database is in use.

SQLite's own locks would let a second process in, which then goes by what it has in its own memory: two servers would give out the same
seqs, two connectors would answer everything twice.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from bubble.protocol.errors import Conflict

__all__ = ["FileLock"]

_MOST_DIGITS: Final = 20
_NOT_FOR_CHILDREN: Final = getattr(os, "O_CLOEXEC", 0)

if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> None:
        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _try_lock(descriptor: int) -> None:
        # flock, not lockf: it belongs to the open file, so it also keeps out a second user in the same process.
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


class FileLock:
    """An exclusive lock on `<database>.lock`, in which its holder's process id stands. The operating system releases it when the process
    ends, however it ends.
    """

    def __init__(self, database: Path, *, user: str) -> None:
        """Takes the lock. `user` is what kind of program uses such a file: "server", "connector".

        Raises `Conflict` if it is held, `OSError` if the file cannot be made.
        """
        self._descriptor = os.open(_beside(database), os.O_RDWR | os.O_CREAT | _NOT_FOR_CHILDREN, 0o600)
        try:
            _lock(self._descriptor, database, user)
        except Conflict:
            os.close(self._descriptor)
            raise
        self._sign()

    @staticmethod
    def look(database: Path, *, user: str) -> None:
        """Raises like the constructor where the lock is held, but makes no file and holds nothing."""
        try:
            descriptor = os.open(_beside(database), os.O_RDWR | _NOT_FOR_CHILDREN)
        except FileNotFoundError:
            return
        try:
            _lock(descriptor, database, user)
        finally:
            os.close(descriptor)

    def _sign(self) -> None:
        with suppress(OSError):  # a full disk, say: the lock holds without it
            os.ftruncate(self._descriptor, 0)
            os.lseek(self._descriptor, 0, os.SEEK_SET)
            os.write(self._descriptor, str(os.getpid()).encode())

    def release(self) -> None:
        """Gives the lock up. The file stays: removing it would let two processes hold locks on two files of one name."""
        os.close(self._descriptor)


def _beside(database: Path) -> Path:
    return database.with_name(database.name + ".lock")


def _lock(descriptor: int, database: Path, user: str) -> None:
    try:
        _try_lock(descriptor)
    except OSError:
        raise Conflict(
            f"{database} is in use by another {user}{_process_in(descriptor)} (its lock is {_beside(database)}). "
            "Stop that one, or give this one a file of its own."
        ) from None


def _process_in(descriptor: int) -> str:
    """The holder, as words to insert; nothing where it has not signed yet, or its lock keeps others from reading too (Windows)."""
    try:
        os.lseek(descriptor, 0, os.SEEK_SET)
        text = os.read(descriptor, _MOST_DIGITS)
    except OSError:
        return ""
    return f", process {text.decode()}" if text.isdigit() else ""
