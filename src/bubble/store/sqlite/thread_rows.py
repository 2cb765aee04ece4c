"""The rows that make a thread exist."""

from __future__ import annotations

import apsw

from bubble.protocol.resources import JoinPolicy
from bubble.store.sqlite.connection import find_one
from bubble.store.sqlite.thread_state import ThreadState

__all__ = ["folded", "insert_thread", "is_retired"]


def insert_thread(
    db: apsw.Connection,
    thread_id: str,
    *,
    created_ms: int,
    title: str | None = None,
    metadata: bytes | None = None,
    join_policy: JoinPolicy = "invite",
) -> ThreadState:
    """Makes a thread without events."""
    db.execute(
        "INSERT INTO threads (thread_id, title, metadata, join_policy, created_ms, grant_version, folded)"
        " VALUES (?, ?, ?, ?, ?, 1, ?)",
        (thread_id, title, metadata, join_policy, created_ms, folded(thread_id, title)),
    )
    key = db.last_insert_rowid()
    db.execute(
        "INSERT INTO activity (thread_key, thread_id, head, last_ms) VALUES (?, ?, 0, ?)", (key, thread_id, created_ms)
    )
    return ThreadState(db, thread_id, key=key, join_policy=join_policy)


def is_retired(db: apsw.Connection, thread_id: str) -> bool:
    """Whether a thread of that id was deleted."""
    return find_one(db, "SELECT 1 FROM retired_threads WHERE thread_id = ?", (thread_id,)) is not None


def folded(thread_id: str, title: str | None) -> str:
    """What the search looks into: id and title, apart by a line break, which no id holds."""
    return f"{thread_id}\n{title or ''}".casefold()
