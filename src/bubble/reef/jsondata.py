"""Agents' JSON: read without losing a number, and tidied for the log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import isfinite
from typing import Any, Final

from bubble.protocol.jsontext import MAX_DEPTH, JSONValue

__all__ = ["MOST_LEVELS", "TooDeep", "load", "tidy_numbers"]

#: Of an agent's data. The log takes a few more, with all that is around it: a part, an event, a batch of them.
MOST_LEVELS: Final = MAX_DEPTH - 12

# Integers up to here are exact as floats, so that `3.0` can only have been `3`.
_EXACT: Final = 2**53
# Of the largest float, with a sign. Integers beyond it stay texts: many readers of JSON make a float of each number.
_MOST_DIGITS: Final = 310


class TooDeep(ValueError):
    """Data that the log does not take."""


def load(text: bytes | str) -> JSONValue:
    """JSON, with each number that is beyond the range of floats as a text of its digits. Raises like `json.loads`."""
    raw = text if isinstance(text, str) else text.decode("utf-8")
    value: JSONValue = json.loads(raw, parse_int=_integer, parse_float=_float)
    return value


def _integer(digits: str) -> int | str:
    return int(digits) if len(digits) <= _MOST_DIGITS and isfinite(float(digits)) else digits


def _float(digits: str) -> float | str:
    number = float(digits)
    return number if isfinite(number) else digits


def tidy_numbers(value: JSONValue) -> JSONValue:
    """The value with the integers back that protobuf made floats of (`3.0`), and without NaN and infinities, which are no JSON.

    Raises `TooDeep` for what nests deeper than the log takes it.
    """
    # Level by level, for an agent may nest deeper than calls can. What is changed is a copy.
    whole: list[JSONValue] = [value]
    level: list[Any] = [whole]
    for _ in range(MOST_LEVELS + 1):
        if not level:
            break
        level = [inner for holder in level for inner in _tidied(holder)]
    if level:
        raise TooDeep(f"It is nested deeper than {MOST_LEVELS} levels.")
    return whole[0]


def _tidied(holder: Any) -> Iterator[JSONValue]:  # noqa: ANN401 - a list or an object
    """Tidies what stands in `holder` itself. The lists and objects in it are copied, and given for the next step."""
    for at, each in enumerate(holder) if isinstance(holder, list) else holder.items():
        if isinstance(each, float):
            holder[at] = _tidy(each)
        elif isinstance(each, list | dict):
            holder[at] = copy = each.copy()
            yield copy


def _tidy(number: float) -> float | None:
    if number.is_integer() and abs(number) <= _EXACT:
        return int(number)
    return number if isfinite(number) else None
