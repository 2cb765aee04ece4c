"""Stored texts out of the file, many in one step.

A statement gives up the interpreter's lock at each step, so a thousand rows in one value cost a thousandth of the waiting that a
thousand rows one by one cost. How big that value may grow is bounded by the connection itself: where the rows turn out to be too big
together, fewer are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import apsw

from bubble.protocol.events import SequencedEvent
from bubble.store.sqlite.connection import Value, find_one, query

__all__ = ["SEPARATOR", "find_texts", "read_range", "read_texts"]

#: From a first seq and a count to so many texts, or fewer where there are no more.
Rows: TypeAlias = Callable[[int, int], list[bytes]]

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

    def rows(first: int, count: int) -> list[bytes]:
        return _split(db, "read_texts", (thread_id, first, min(count, to_seq - first + 1)))

    return _gather(db, rows, from_seq=from_seq, to_seq=to_seq, limit=limit, max_bytes=max_bytes)


def find_texts(
    db: apsw.Connection,
    thread_id: str,
    *,
    containing: bytes,
    from_seq: int,
    to_seq: int,
    limit: int,
    max_bytes: int,
) -> list[bytes]:
    """As `BubbleStore.find_events`."""

    def rows(first: int, count: int) -> list[bytes]:
        return _split(db, "find_texts", (thread_id, first, count, to_seq, containing))

    return _gather(db, rows, from_seq=from_seq, to_seq=to_seq, limit=limit, max_bytes=max_bytes)


def read_range(db: apsw.Connection, thread_id: str, first: int, last: int) -> list[bytes]:
    """All texts from `first` to `last`, both included."""
    return _split(db, "read_texts", (thread_id, first, last - first + 1))


def _gather(db: apsw.Connection, rows: Rows, *, from_seq: int, to_seq: int, limit: int, max_bytes: int) -> list[bytes]:
    texts: list[bytes] = []
    room, next_seq, more = max_bytes, from_seq, True
    while more and len(texts) < limit and next_seq <= to_seq:
        piece, more = _fitting(db, rows, next_seq, min(limit - len(texts), _MOST_ROWS), room)
        for text in piece:
            room -= len(text)
            if room < 0 and texts:
                return texts
            texts.append(text)
        if more:
            next_seq = SequencedEvent.from_stored(texts[-1]).seq + 1
    return texts


def _fitting(db: apsw.Connection, rows: Rows, first: int, count: int, room: int) -> tuple[list[bytes], bool]:
    """Up to `count` texts, fewer where so many do not fit into `room` bytes, but at least one where there is one.

    Beside them, whether there may be more.
    """
    db.limit(apsw.SQLITE_LIMIT_LENGTH, min(max(room, 0), _MOST_BYTES) + _SLACK)
    try:
        while count > 1:
            try:
                piece = rows(first, count)
                return piece, len(piece) == count
            except apsw.TooBigError:
                count = max(1, count // _FEWER)
    finally:
        db.limit(apsw.SQLITE_LIMIT_LENGTH, _LARGEST_VALUE)
    piece = rows(first, 1)
    return piece, bool(piece)


def _split(db: apsw.Connection, name: str, bindings: Sequence[Value]) -> list[bytes]:
    row = find_one(db, query(name), bindings)
    return [] if row is None or row[0] is None else row[0].split(SEPARATOR)
