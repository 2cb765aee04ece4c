"""One process at a time: a lock file beside the database, held as long as the store is open.

SQLite's own locks would let a second server in, and then each would give out the same seqs from its own memory.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from bubble.protocol.errors import Conflict

__all__ = ["FileLock"]

if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> None:
        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _try_lock(descriptor: int) -> None:
        # flock, not lockf: it belongs to the open file, so it also keeps out a second store in the same process.
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


class FileLock:
    """An exclusive lock on `<database>.lock`. The operating system releases it when the process ends, however it ends."""

    def __init__(self, database: Path) -> None:
        """Takes the lock; raises `Conflict` if it is held, `OSError` if the file cannot be made."""
        path = database.with_name(database.name + ".lock")
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        try:
            _try_lock(self._descriptor)
        except OSError:
            os.close(self._descriptor)
            raise Conflict(
                f"{database} is in use by another server (its lock is {path}). Stop that one, or give this one a file of its own."
            ) from None

    def release(self) -> None:
        """Gives the lock up. The file stays: removing it would let two processes hold locks on two files of one name."""
        os.close(self._descriptor)
