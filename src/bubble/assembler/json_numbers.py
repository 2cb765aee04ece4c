"""JSON numbers: their values, and those that come in pieces."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

__all__ = ["NumberText", "number_value"]

# In digits. Converting longer ones takes time that grows with the square, and CPython refuses to.
_LONGEST_INTEGER: Final = 4000
_RUN = re.compile(r"[0-9+\-.eE]*")
_DIGITS = "0123456789"


def number_value(text: str) -> int | float:
    """The number that `text` says. Integers keep every digit; what is beyond doubles is infinite, as in JavaScript."""
    if len(text) < _LONGEST_INTEGER and text.lstrip("-").isdecimal():
        return int(text)
    return float(text)


# Where in a number one is, and what may come: the grammar as a table. Names in capitals are places where the number may end.
_NEXT: Final[Mapping[str, Mapping[str, str]]] = {
    "start": {"-": "sign", "0": "ZERO", **dict.fromkeys("123456789", "WHOLE")},
    "sign": {"0": "ZERO", **dict.fromkeys("123456789", "WHOLE")},
    "ZERO": {".": "point", "e": "mark", "E": "mark"},
    "WHOLE": {".": "point", "e": "mark", "E": "mark", **dict.fromkeys(_DIGITS, "WHOLE")},
    "point": dict.fromkeys(_DIGITS, "FRACTION"),
    "FRACTION": {"e": "mark", "E": "mark", **dict.fromkeys(_DIGITS, "FRACTION")},
    "mark": {"+": "power sign", "-": "power sign", **dict.fromkeys(_DIGITS, "POWER")},
    "power sign": dict.fromkeys(_DIGITS, "POWER"),
    "POWER": dict.fromkeys(_DIGITS, "POWER"),
}


class NumberText:
    """A number that is being read."""

    __slots__ = ("_pieces", "_place", "has_plus", "is_broken")

    def __init__(self) -> None:
        self.has_plus = False
        self.is_broken = False  # no number begins with what has come
        self._pieces: list[str] = []
        self._place = "start"

    @property
    def is_complete(self) -> bool:
        """Whether the number may end here."""
        return self._place.isupper()

    @property
    def has_digits(self) -> bool:
        """Whether there is more than a sign."""
        return self._place not in {"start", "sign"}

    def take(self, text: str, at: int) -> int:
        """Takes what belongs to the number; the place after it."""
        match = _RUN.match(text, at)
        end = at if match is None else match.end()
        if end > at:
            self._pieces.append(text[at:end])
            self._move(text[at:end])
        return end

    def _move(self, piece: str) -> None:
        self.has_plus |= "+" in piece
        place = self._place
        for char in piece:
            if char not in _NEXT[place]:
                self.is_broken = True
                return
            place = _NEXT[place][char]
        self._place = place

    def value(self) -> int | float:
        """The value up to the last digit, of which there must be one."""
        if len(self._pieces) > 1:
            self._pieces[:] = ("".join(self._pieces),)
        return number_value(self._pieces[0].rstrip("+-.eE"))
