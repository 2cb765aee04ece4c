"""Times on the wire: RFC 3339, UTC, milliseconds, `Z`. Inside, a time is an integer of milliseconds since 1970."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import TypeAlias

__all__ = ["Clock", "format_ms", "parse_ms", "system_clock"]

Clock: TypeAlias = Callable[[], int]

_SHAPE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)


def system_clock() -> int:
    """Now, in milliseconds since 1970 (UTC)."""
    return time.time_ns() // 1_000_000


@lru_cache(maxsize=64)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.")


def format_ms(ms: int) -> str:
    """`1778070896789` → `"2026-05-06T12:34:56.789Z"`."""
    seconds, rest = divmod(ms, 1000)
    return f"{_second(seconds)}{rest:03}Z"


def parse_ms(text: str) -> int:
    """The inverse of `format_ms`, for exactly that shape; `ValueError` otherwise."""
    if not _SHAPE.fullmatch(text):
        raise ValueError("must look like 2026-05-06T12:34:56.789Z")
    moment = datetime.fromisoformat(text)
    return int(moment.timestamp()) * 1000 + moment.microsecond // 1000
