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

# Possessive, and content with a string that never ends: whatever the text, one pass over it.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_SPACE = re.compile(r"[ \t\r\n]*")
_HEX2 = rb"[0-9a-fA-F]{2}"
_SURROGATES = re.compile(
    rb"(\\\\)"
    rb"|(\\u[dD][89abAB]" + _HEX2 + rb"\\u[dD][c-fC-F]" + _HEX2 + rb")"
    rb"|\\u[dD][89a-fA-F]" + _HEX2
)
_values = json.JSONDecoder(parse_int=str, parse_float=str)  # numbers are only passed over, however long
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
    offsets = [match.start() for match in _SURROGATES.finditer(text) if match.lastindex is None]
    masked = bytearray(text)
    for offset in offsets:
        masked[offset : offset + 6] = b"\\u0020"
    return bytes(masked), offsets


def member_spans(text: bytes, start: int = 0) -> Iterator[tuple[str, int, int]]:
    """`(name, first byte, end)` of each member's value of the object that begins at `start`, in order, duplicates included.

    `text` must already be known to be valid JSON with an object at `start` (leading white space allowed).
    """
    plain = text.decode("latin-1")  # one character per byte, so that places agree
    at = _past_space(plain, _past_space(plain, start) + 1)
    while plain[at] != "}":
        name_at = at
        name, at = _values.raw_decode(plain, at)
        if not plain.isascii():
            name = json.loads(text[name_at:at])
        first = _past_space(plain, plain.index(":", at) + 1)
        _, end = _values.raw_decode(plain, first)
        yield name, first, end
        at = _past_space(plain, end)
        if plain[at] == ",":
            at = _past_space(plain, at + 1)


def _past_space(plain: str, at: int) -> int:
    match = _SPACE.match(plain, at)
    return at if match is None else match.end()


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
