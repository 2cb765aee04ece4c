"""From a URL to a store."""

from __future__ import annotations

from pathlib import Path

from bubble.protocol.errors import InvalidRequest
from bubble.protocol.timestamps import Clock, system_clock
from bubble.store.admission import RunIntegrity
from bubble.store.base import BubbleStore

__all__ = ["open_store"]


async def open_store(
    url: str, *, run_integrity: RunIntegrity = "strict", clock: Clock = system_clock, migrate: bool = True
) -> BubbleStore:
    """Opens `memory:` or `sqlite:///path` (relative) or `sqlite:////path` (absolute), creating what is not there.

    `migrate` False refuses an older file instead of bringing it up to date. Raises `InvalidRequest` for a URL of another kind,
    `Conflict` if another process holds the file, `Unavailable` if it cannot be read.
    """
    if url == "memory:":
        from bubble.store.memory import MemoryStore

        return MemoryStore(run_integrity=run_integrity, clock=clock)
    if url.startswith("sqlite:///") and len(url) > len("sqlite:///"):
        from bubble.store.sqlite import SqliteStore

        path = Path(url.removeprefix("sqlite:///"))
        return await SqliteStore.open(path, run_integrity=run_integrity, clock=clock, migrate=migrate)
    raise InvalidRequest(f'"{url}" names no store: use `memory:` or `sqlite:///path/to/file.db`.')
