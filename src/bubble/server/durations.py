"""Lengths of time among the settings: seconds, or a number with a unit (`500ms`, `90s`, `15m`, `1h`, `30d`)."""

from __future__ import annotations

import re
from typing import Annotated, Final, TypeAlias

from pydantic import BeforeValidator, Field
from pydantic.fields import FieldInfo

__all__ = ["Duration", "duration_text", "is_duration"]

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)")


def _seconds(value: object) -> object:
    if not isinstance(value, str):
        return value
    if match := _DURATION.fullmatch(value.strip()):
        return float(match.group(1)) * _UNITS[match.group(2)]
    try:
        return float(value)
    except ValueError:
        raise ValueError("must be seconds, or a number with a unit: `500ms`, `90s`, `15m`, `1h`, `30d`") from None


Duration: TypeAlias = Annotated[
    float, BeforeValidator(_seconds), Field(ge=0, le=10 * 366 * 86_400, allow_inf_nan=False)
]


def is_duration(field: FieldInfo) -> bool:
    """Whether a setting is one."""
    return any(isinstance(each, BeforeValidator) and each.func is _seconds for each in field.metadata)


def duration_text(seconds: float) -> str:
    """The shortest text that gives it again: with the largest unit that it is a whole number of."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:.0f}{unit}"
    if 0 < seconds < 1:
        return f"{seconds * 1000:.12g}ms"
    return f"{seconds:.15g}s"
