"""JSON as text: the strictness that the envelope needs and the losslessness that payloads need.

*Theory of operation.* An event is decoded by msgspec into a struct whose payload members (`part`, `input`, `output`) stay raw.
That leaves three things msgspec does not tell: a member given twice, invalid UTF-8 inside a raw member, and nesting beyond the
limit. And one thing it refuses that payloads may hold: a lone UTF-16 surrogate written as an escape.

- `check_text` settles UTF-8 and nesting with a few `bytes.count` calls; only a text with many brackets is looked at closely.
- `refuse_duplicates` walks the members, where `strict` could not prove without a walk that none is given twice.
- `mask_lone_surrogates` gives a text of the same length in which each lone surrogate escape is another escape, so that msgspec can
  check and decode the rest; `member_spans` then finds the original bytes of a raw member.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeAlias

__all__ = [
    "MAX_DEPTH",
    "JSONValue",
    "check_text",
    "dump_json",
    "load_json",
    "mask_lone_surrogates",
    "member_spans",
    "refuse_duplicates",
]

if TYPE_CHECKING:
    JSONValue: TypeAlias = "None | bool | int | float | str | list[JSONValue] | dict[str, JSONValue]"
else:
    JSONValue = Any  # msgspec, which reads annotations at run time, cannot follow a recursive alias

MAX_DEPTH = 512

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\],]', re.DOTALL)
_HEX2 = rb"[0-9a-fA-F]{2}"
_SURROGATES = re.compile(
    rb"(\\\\)"
    rb"|(\\u[dD][89abAB]" + _HEX2 + rb"\\u[dD][c-fC-F]" + _HEX2 + rb")"
    rb"|\\u[dD][89a-fA-F]" + _HEX2
)
_NOT_BRACKETS = bytes(value for value in range(256) if value not in b"{}[]")
_STEPS = bytes.maketrans(b"{[}]", b"\x01\x01\xff\xff")


def check_text(text: bytes) -> None:
    """Raises `ValueError` where `text` is not UTF-8 or nests deeper than `MAX_DEPTH`."""
    if not text.isascii():
        try:
            text.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"invalid UTF-8 at byte {error.start}") from None
    if len(text) <= 2 * MAX_DEPTH:  # each level needs two brackets
        return
    if text.count(b"{") + text.count(b"[") > MAX_DEPTH and _depth(text) > MAX_DEPTH:
        raise ValueError(f"nested deeper than {MAX_DEPTH}")


def _depth(text: bytes) -> int:
    steps = _STRING.sub(b"", text).translate(_STEPS, _NOT_BRACKETS)
    return max(accumulate(memoryview(steps).cast("b")), default=0)


def mask_lone_surrogates(text: bytes) -> tuple[bytes, list[int]]:
    """A text of equal length without lone surrogate escapes, and the offsets where they stood."""
    offsets: list[int] = []

    def masked(match: re.Match[bytes]) -> bytes:
        if match.group(1) or match.group(2):
            return match.group()
        offsets.append(match.start())
        return b"\\u0020"

    return _SURROGATES.sub(masked, text), offsets


def member_spans(text: bytes, start: int = 0) -> Iterator[tuple[str, int, int]]:
    """`(name, first byte, end)` of each member's value of the object that begins at `start`, in order, duplicates included.

    `text` must already be known to be valid JSON with an object at `start` (leading white space allowed).
    """
    depth, name, value_at = 0, None, 0
    for token in _TOKEN.finditer(text, start):
        kind = text[token.start()]
        if kind in b"{[":
            depth += 1
        elif kind in b"}]":
            depth -= 1
        if depth == 1 and kind == 0x22 and name is None:
            name = str(json.loads(token.group()))
            value_at = text.index(b":", token.end()) + 1
        elif name is not None and ((depth == 1 and kind == 0x2C) or depth == 0):
            first, end = _trimmed(text, value_at, token.start())
            yield name, first, end
            name = None
        if depth == 0:
            return


def _trimmed(text: bytes, start: int, end: int) -> tuple[int, int]:
    while text[start] in b" \t\r\n":
        start += 1
    while text[end - 1] in b" \t\r\n":
        end -= 1
    return start, end


def refuse_duplicates(text: bytes, start: int = 0, *, path: str = "$") -> dict[str, tuple[int, int]]:
    """The spans of an object's members by name; `ValueError` naming the member where one is given twice."""
    spans: dict[str, tuple[int, int]] = {}
    for name, first, end in member_spans(text, start):
        if name in spans:
            raise ValueError(f"Member `{path}.{name}` is given twice")
        spans[name] = (first, end)
    return spans


def load_json(text: bytes | memoryview | str) -> JSONValue:
    """The value of a payload as Python data. Lone surrogates stay in the string, integers keep every digit."""
    raw = text if isinstance(text, str) else bytes(text).decode("utf-8")
    value: JSONValue = json.loads(raw, parse_int=_integer)
    return value


def _integer(digits: str) -> int | float:
    # CPython refuses to convert very long integers by default (a guard against quadratic time).
    return int(digits) if len(digits) < 4000 else float(digits)


def dump_json(value: object) -> bytes:
    """Compact JSON of plain Python data; `ValueError` for what JSON cannot say (NaN, infinities, foreign objects).

    A string with a lone surrogate is written with escapes, so that it survives UTF-8.
    """
    try:
        text = json.dumps(value, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode("ascii")
    except (TypeError, RecursionError) as error:
        raise ValueError(str(error)) from None
