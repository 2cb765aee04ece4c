"""A copy of the file while it is in use."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import apsw

from bubble.protocol.errors import Conflict
from bubble.store.sqlite.connection import STORE_ERRORS, open_connection, unavailable
from bubble.store.sqlite.files import make_private, sync

__all__ = ["backup_file"]

_PAGES: Final = 4_096


async def backup_file(source: Path, target: Path, *, vfs: str | None = None) -> None:
    """Copies the store in `source` to `target`, as it is at this moment, also while a server uses it.

    The copy appears under its name when it is complete and synced. Raises `Conflict` if `target` exists, `Unavailable` if reading or
    writing fails.
    """
    if await asyncio.to_thread(target.exists):
        raise Conflict(f"{target} exists already. Choose another name, or remove it.")
    try:
        await asyncio.to_thread(_copy, source, target, vfs)
    except STORE_ERRORS as error:
        raise unavailable(error) from error


def _copy(source: Path, target: Path, vfs: str | None) -> None:
    unfinished = target.with_name(f"{target.name}.unfinished")
    unfinished.unlink(missing_ok=True)
    try:
        _copy_pages(source, unfinished, vfs)
        sync(unfinished)
        unfinished.replace(target)
        sync(target.parent)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def _copy_pages(source: Path, target: Path, vfs: str | None) -> None:
    reader = open_connection(source, vfs=vfs, read_only=True)
    try:
        # One view for all steps: else each commit of the server would make the copy begin again.
        reader.execute("BEGIN; SELECT 1 FROM sqlite_schema").fetchall()
        make_private(target)
        copy = apsw.Connection(str(target))
        try:
            with copy.backup("main", reader, "main") as backup:
                while not backup.done:
                    backup.step(_PAGES)
        finally:
            copy.close()
    finally:
        reader.close()
