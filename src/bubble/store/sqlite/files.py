"""Files and directories that are really there."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["make_private", "sync"]


def make_private(path: Path) -> None:
    """Makes an empty file, and the directories above it, where there is none: nobody else may read what will be in it."""
    _make_private_directory(path.parent)
    if not path.exists():
        path.touch(mode=0o600)
        sync(path.parent)


def _make_private_directory(path: Path) -> None:
    if not path.is_dir():
        _make_private_directory(path.parent)  # `parents` of mkdir would leave these to the umask
        path.mkdir(mode=0o700, exist_ok=True)


def sync(path: Path) -> None:
    """Returns once a file's bytes, or a directory's names, are on the disk."""
    if os.name == "nt" and path.is_dir():
        return  # Windows gives no handles of directories
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
