"""JSON as protobuf writes it: what a field may look like, whichever implementation wrote it.

64-bit integers are strings or numbers, a default value or `null` stands for a member that is not there, bytes are base64 of either alphabet
with or without padding, enums are names or numbers, and members that nobody knows are passed over. Everything else about a known member is
a `protocol_error` that names it: above all a number that is not exactly what it must be, for it would be taken for another one.
"""

from __future__ import annotations

import base64
import json
import math
import re
import sys
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Final, Never, TypeGuard, cast

from bubble.protocol.jsontext import JSONValue, check_text
from bubble.watch.errors import WatchError

__all__ = [
    "MAX_GENERATION",
    "MAX_UINT64",
    "Fields",
    "Word",
    "is_uint64",
    "malformed",
    "parse_as_a_browser",
    "parse_json",
    "with_outer_numbers",
]

MAX_UINT64: Final = 2**64 - 1
#: A generation is a JSON number on the way out, so it must survive in a double.
MAX_GENERATION: Final = 2**53 - 1

#: An enum: its name, or its number where the writer did not know it.
Word = str | int

# Up to here a double is the integer that was written, and not the nearest one that it can hold.
_EXACT: Final = 2**53 - 1
_LARGEST_DOUBLE: Final = sys.float_info.max
_ENUM: Final = range(-(2**31), 2**31)
_DIGITS: Final = 4_000  # beyond that the interpreter itself makes no integer

_COUNTERS: Final = frozenset({"seq", "updatedSeq"})
_DECIMAL: Final = re.compile(r"0|[1-9][0-9]{0,19}")
_STANDARD: Final = str.maketrans("-_", "+/")


def malformed(path: str, what: str) -> Never:
    """Raises the `protocol_error` that says what the member at `path` should have been."""
    raise WatchError("protocol_error", f"`{path}` must be {what}.")


def is_uint64(text: str) -> bool:
    """Whether the text is a decimal from 0 to 2^64-1, without leading zeros."""
    return _DECIMAL.fullmatch(text) is not None and int(text) <= MAX_UINT64


class _Rounded(float):
    """An integer as a double, though what was written may have been something else."""


def parse_json(text: bytes) -> JSONValue:
    """The value of a JSON text of the protocol. `ValueError` for what is none, is no UTF-8, nests deeper than 512, or gives a member twice.

    Integers keep every digit. A number that no double can hold is infinite, which is more than any member takes.
    """
    return _decoded(text, _STRICT)


def parse_as_a_browser(text: bytes) -> JSONValue:
    """The same for JSON that is passed on, as it would be after a journey through a page: of a member that is given twice the last one
    counts, and a number that no double can hold is null. Integers keep every digit all the same.
    """
    return _decoded(text, _AS_A_BROWSER)


def _decoded(text: bytes, decoder: json.JSONDecoder) -> JSONValue:
    check_text(text)
    try:
        value: JSONValue = decoder.decode(text.decode("utf-8"))
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    return value


def _once(pairs: list[tuple[str, JSONValue]]) -> dict[str, JSONValue]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member is given twice")
    return members


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) < _DIGITS else math.inf


def _double(digits: str) -> float:
    number = float(digits)
    return number if not number.is_integer() or _says(digits, number) else _Rounded(number)


def _says(digits: str, number: float) -> bool:
    try:
        return abs(number) <= _EXACT and Decimal(digits) == Decimal(number)
    except InvalidOperation:  # an exponent beyond all measure
        return False


def _or_null(number: float) -> float | None:
    return number if isinstance(number, int) or math.isfinite(number) else None


def _no_constant(name: str) -> Never:
    raise ValueError(f"{name} is no JSON")


_STRICT: Final = json.JSONDecoder(
    object_pairs_hook=_once, parse_int=_integer, parse_float=_double, parse_constant=_no_constant
)
_AS_A_BROWSER: Final = json.JSONDecoder(
    parse_int=lambda digits: _or_null(_integer(digits)),
    parse_float=lambda digits: _or_null(float(digits)),
    parse_constant=_no_constant,
)


def with_outer_numbers(value: Mapping[str, JSONValue]) -> dict[str, JSONValue]:
    """A copy with its numbers as they are outside, at whatever depth: members called `seq`, `updatedSeq` or `…Ms` are decimal strings or
    arrays of them, a `generation` is a number; other numbers that JSON cannot say are null.
    """
    text = json.dumps(dict(value))
    copy: dict[str, JSONValue] = json.loads(text, object_pairs_hook=_outer_members, parse_constant=_null)
    return copy


def _outer_members(pairs: list[tuple[str, JSONValue]]) -> dict[str, JSONValue]:
    return {name: _outer(name, value) for name, value in pairs}


def _outer(name: str, value: JSONValue) -> JSONValue:
    if name in _COUNTERS or name.endswith("Ms"):
        return _decimal(value)
    if name == "generation" and isinstance(value, str) and is_uint64(value) and int(value) <= MAX_GENERATION:
        return int(value)
    return value


def _decimal(value: JSONValue) -> JSONValue:
    if isinstance(value, list):
        return [_decimal(each) for each in value]
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else f"{Decimal(repr(value)):f}"
    return str(value) if type(value) is int else value


def _null(_: str) -> None:
    return None


class Fields:
    """The members of one message. `path` is where it stands, for what is said about it."""

    __slots__ = ("_members", "path")

    def __init__(self, value: object, path: str) -> None:
        if not isinstance(value, Mapping):
            malformed(path, "an object")
        self._members: Mapping[str, JSONValue] = value
        self.path = path

    def given(self, name: str) -> JSONValue:
        """The member as it is; None if it is not there."""
        return self._members.get(name)

    def uint(self, name: str, *, most: int = MAX_UINT64) -> int:
        """An unsigned integer."""
        value = self.given(name)
        if value is None:
            return 0
        if (isinstance(value, str) and is_uint64(value)) or _is_exact(value):
            value = int(value)
        if type(value) is not int or not 0 <= value <= most:
            malformed(f"{self.path}.{name}", f"an integer from 0 to {most}")
        return value

    def number(self, name: str) -> int | float:
        """Any number."""
        value = self.given(name)
        if value is None:
            return 0
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _LARGEST_DOUBLE:
            malformed(f"{self.path}.{name}", "a number")
        return float(value) if isinstance(value, float) else value

    def text(self, name: str) -> str:
        """A string."""
        return self.optional_text(name) or ""

    def optional_text(self, name: str) -> str | None:
        """A string, or None where the message does not have it or it is empty, which is the same."""
        value = self.given(name)
        if value is not None and not isinstance(value, str):
            malformed(f"{self.path}.{name}", "a string")
        return value or None

    def flag(self, name: str) -> bool:
        """A boolean."""
        return self.optional_flag(name) or False

    def optional_flag(self, name: str) -> bool | None:
        """A boolean, or None where the message does not have it."""
        value = self.given(name)
        if value is not None and not isinstance(value, bool):
            malformed(f"{self.path}.{name}", "a boolean")
        return value

    def word(self, name: str) -> Word:
        """An enum, by name or number."""
        value = self.given(name)
        return 0 if value is None else _word(value, f"{self.path}.{name}")

    def texts(self, name: str) -> tuple[str, ...]:
        """Strings."""
        values = self._list(name)
        for index, each in enumerate(values):
            if not isinstance(each, str):
                malformed(f"{self.path}.{name}[{index}]", "a string")
        return tuple(cast("Sequence[str]", values))

    def words(self, name: str) -> tuple[Word, ...]:
        """Enums."""
        return tuple(_word(each, f"{self.path}.{name}[{index}]") for index, each in enumerate(self._list(name)))

    def blob(self, name: str) -> bytes | None:
        """Bytes, or None where the message has none."""
        text = self.optional_text(name)
        if not text:
            return None
        data = _bytes_of(text)
        if data is None:
            malformed(f"{self.path}.{name}", "base64")
        return data

    def messages(self, name: str) -> list[Fields]:
        """Repeated messages."""
        return [Fields(each, f"{self.path}.{name}[{index}]") for index, each in enumerate(self._list(name))]

    def members(self, name: str) -> Mapping[str, JSONValue] | None:
        """A message that is passed on as it is; None where there is none."""
        value = self.given(name)
        return None if value is None else Fields(value, f"{self.path}.{name}").all()

    def all(self) -> Mapping[str, JSONValue]:
        """The message itself, to be passed on."""
        return self._members

    def _list(self, name: str) -> Sequence[JSONValue]:
        value = self.given(name)
        if value is None:
            return ()
        if isinstance(value, str) or not isinstance(value, Sequence):
            malformed(f"{self.path}.{name}", "an array")
        return cast("Sequence[JSONValue]", value)


def _bytes_of(text: str) -> bytes | None:
    # The decoder need not be strict: whatever it passes over makes the text another one than that of the bytes.
    try:
        data = base64.b64decode(text.translate(_STANDARD) + "==")
    except ValueError:
        return None
    encode = base64.urlsafe_b64encode if "-" in text or "_" in text else base64.b64encode
    whole = encode(data).decode("ascii")
    return data if text in (whole, whole.rstrip("=")) else None


def _word(value: JSONValue, path: str) -> Word:
    if isinstance(value, str) or (type(value) is int and value in _ENUM):
        return value
    malformed(path, "the name or the number of an enum")


def _is_exact(value: JSONValue) -> TypeGuard[float]:
    return type(value) is float and value.is_integer() and abs(value) <= _EXACT
