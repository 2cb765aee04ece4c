"""One statement for many rows.

Each step of a statement gives up the interpreter's lock; winning it back beside a busy event loop takes up to a switch interval. So what a
group writes goes down in as few statements as it can, each with exactly as many rows as there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Final

import apsw

from bubble.store.sqlite.connection import Value

__all__ = ["MultiRow"]

_EXACT: Final = 128
_MOST: Final = 2_048


class MultiRow:
    """`before` + a VALUES list + `after`, for rows of `width` values that come as one flat sequence."""

    def __init__(self, before: str, *, width: int, after: str = "") -> None:
        self._before = before
        self._after = after
        self._width = width
        self._large_statements: dict[int, str] = {}

    def run(self, db: apsw.Connection, values: Sequence[Value]) -> None:
        """Executes it for all rows: in one statement up to 128 rows, in few pieces beyond that, not at all for none."""
        width = self._width
        rows = len(values) // width
        if not rows:
            return
        if rows <= _EXACT:
            db.execute(self._statements[rows], values)
            return
        first = 0
        while first < rows:
            count = _largest_piece(rows - first)
            db.execute(self._large(count), values[first * width : (first + count) * width])
            first += count

    def fits_one(self, values: Sequence[Value]) -> bool:
        """Whether `run` would take a single statement."""
        return len(values) // self._width <= _EXACT

    @cached_property
    def _statements(self) -> list[str]:
        return [self._statement(rows) for rows in range(_EXACT + 1)]

    def _large(self, rows: int) -> str:
        statement = self._large_statements.get(rows)
        if statement is None:
            statement = self._large_statements[rows] = self._statement(rows)
        return statement

    def _statement(self, rows: int) -> str:
        row = f"({','.join('?' * self._width)})"
        return f"{self._before} VALUES {','.join([row] * rows)} {self._after}"


def _largest_piece(rows: int) -> int:
    # Whole multiples beyond the exact ones: two pieces are enough for most, and few enough sizes that all stay prepared.
    return min(rows - rows % _EXACT, _MOST) or rows
