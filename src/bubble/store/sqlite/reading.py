"""Stored texts out of the file, many in one step.

A statement gives up the interpreter's lock at each step, so a thousand rows in one value cost a thousandth of the waiting that a
thousand rows one by one cost. How big that value may grow is bounded by the connection itself: where the rows turn out to be too big
together, fewer are asked for.
"""

from __future__ import annotations

from typing import Final

import apsw

from bubble.store.sqlite.connection import find_one, query

__all__ = ["SEPARATOR", "read_range", "read_texts"]

#: Between two texts; no JSON text holds it.
SEPARATOR: Final = b"\x1e"
_MOST_ROWS: Final = 1_024
_FEWER: Final = 8
_MOST_BYTES: Final = 64 * 1024 * 1024
_SLACK: Final = 1024 * 1024
_LARGEST_VALUE: Final = 1_000_000_000


def read_texts(
    db: apsw.Connection, thread_id: str, *, from_seq: int, to_seq: int, limit: int, max_bytes: int
) -> list[bytes]:
    """As `BubbleStore.read`."""
    texts: list[bytes] = []
    room = max_bytes
    while True:
        next_seq = from_seq + len(texts)
        wanted = min(limit - len(texts), to_seq - next_seq + 1, _MOST_ROWS)
        piece = _read_piece(db, thread_id, next_seq, wanted, room) if wanted > 0 else ()
        if not piece:
            return texts
        for text in piece:
            room -= len(text)
            if room < 0 and texts:
                return texts
            texts.append(text)


def read_range(db: apsw.Connection, thread_id: str, first: int, last: int) -> list[bytes]:
    """All texts from `first` to `last`, both included."""
    return _rows(db, thread_id, first, last - first + 1)


def _read_piece(db: apsw.Connection, thread_id: str, from_seq: int, rows: int, room: int) -> list[bytes]:
    """Up to `rows` texts, fewer where so many do not fit into `room` bytes, but at least one where there is one."""
    db.limit(apsw.SQLITE_LIMIT_LENGTH, min(max(room, 0), _MOST_BYTES) + _SLACK)
    try:
        while rows > 1:
            try:
                return _rows(db, thread_id, from_seq, rows)
            except apsw.TooBigError:
                rows = max(1, rows // _FEWER)
    finally:
        db.limit(apsw.SQLITE_LIMIT_LENGTH, _LARGEST_VALUE)
    return _rows(db, thread_id, from_seq, 1)


def _rows(db: apsw.Connection, thread_id: str, from_seq: int, rows: int) -> list[bytes]:
    row = find_one(db, query("read_texts"), (thread_id, from_seq, rows))
    return [] if row is None or row[0] is None else row[0].split(SEPARATOR)
