"""A disk that fails when it is told to: an SQLite VFS around the real one."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any, Self

import apsw

__all__ = ["FailingDisk"]


class FailingDisk(apsw.VFS):
    """While armed, counts what reaches the disk and lets the n-th such call fail, once or from there on.

    Use as a context manager: the VFS is known under `name` until the end of the block.
    """

    def __init__(self, name: str = "failing") -> None:
        super().__init__(name, "")
        self.name = name
        self.failures = 0
        self._lock = threading.Lock()
        self._left: int | None = None
        self._only_once = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.unregister()

    def fail_at(self, number: int, *, only_once: bool = True) -> None:
        """Lets the `number`-th write, sync or truncation from now on fail; unless `only_once`, every one after it too."""
        with self._lock:
            self._left, self._only_once, self.failures = number, only_once, 0

    def heal(self) -> None:
        """Nothing fails any more."""
        with self._lock:
            self._left = None

    def touch(self, what: str) -> None:
        """One call that reaches the disk."""
        with self._lock:
            if self._left is None:
                return
            self._left -= 1
            if self._left == 0 or (self._left < 0 and not self._only_once):
                self.failures += 1
                raise apsw.IOError(f"planned failure of {what}")

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: ANN401, N802 - as apsw has it
        """As apsw calls it."""
        return _File(self, name, flags)


class _File(apsw.VFSFile):
    def __init__(self, disk: FailingDisk, name: Any, flags: list[int]) -> None:  # noqa: ANN401 - as apsw has it
        super().__init__("", name, flags)
        self._disk = disk

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._disk.touch("a write")
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802
        # Not carried out: nobody pulls the plug here, and it would take most of the time.
        self._disk.touch(f"a sync ({flags})")

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        self._disk.touch("a truncation")
        super().xTruncate(newsize)
