"""The repair of JSON that is cut off, as the original does it: keep a beginning of the text, and append what closes it.

*Theory of operation.* A stack of states is driven by one character at a time. Some characters say that the text up to here can be kept;
others are only passed over, and are kept if a later one is. The result need not be JSON: whoever asks parses it and sees. The rules
are those of the original to the letter, oversights included: a backslash in a name means nothing, a plus sign ends a number, and an
array keeps what an object passes over.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import ClassVar, Final

__all__ = ["Repair", "repair_json"]

_CLOSERS: Final[Mapping[str, str]] = {
    "string": '"',
    "object start": "}",
    "name": "}",
    "after name": "}",
    "before value": "}",
    "after member": "}",
    "object comma": "}",
    "array start": "]",
    "after item": "]",
    "array comma": "]",
}
_LITERALS: Final[Mapping[str, str]] = {"t": "rue", "f": "alse", "n": "ull"}
_OPENED: Final[Mapping[str, str]] = {"{": "object start", "[": "array start", '"': "string"}
_PLAIN = re.compile(r'[^"\\]+')


def repair_json(text: str) -> str:
    """The beginning of `text` that can be kept, closed."""
    repair = Repair()
    repair.feed(text)
    return text[: repair.kept] + repair.closers()


class Repair:
    """The repair of a text that comes in pieces. `kept` is how many of its characters are kept so far."""

    __slots__ = ("_digits", "_literal", "_seen", "_stack", "kept")

    def __init__(self) -> None:
        self.kept = 0
        self._seen = 0  # characters of the pieces before this one
        self._stack = ["root"]
        self._literal = ""  # what is missing of the literal
        self._digits = 0  # of the escape

    def feed(self, text: str) -> None:
        """Takes the next piece."""
        at = 0
        while at < len(text):
            at = self._STEPS[self._stack[-1]](self, text, at)
        self._seen += len(text)

    def closers(self) -> str:
        """What to append to the text that is kept."""
        return "".join(
            self._literal if state == "literal" else _CLOSERS.get(state, "") for state in reversed(self._stack)
        )

    # Steps: each looks at the character at a place and gives the place to go on from.

    def _keep(self, at: int) -> int:
        self.kept = self._seen + at + 1
        return at + 1

    def _begin_value(self, text: str, at: int, then: str) -> int:
        """A value that may begin here; `then` is the state after it."""
        char = text[at]
        if char in _OPENED:
            self._stack[-1:] = (then, _OPENED[char])
            return self._keep(at)
        if char in _LITERALS:
            self._stack[-1:] = (then, "literal")
            self._literal = _LITERALS[char]
            return self._keep(at)
        if char in "-0123456789":
            self._stack[-1:] = (then, "number")
            return at + 1 if char == "-" else self._keep(at)
        return at + 1

    def _root(self, text: str, at: int) -> int:
        return self._begin_value(text, at, "finish")

    def _finish(self, text: str, at: int) -> int:  # noqa: ARG002 - a step like the others
        return len(text)

    def _object_start(self, text: str, at: int) -> int:
        if text[at] == "}":
            self._stack.pop()
            return self._keep(at)
        return self._object_comma(text, at)

    def _object_comma(self, text: str, at: int) -> int:
        return self._turn(text, at, '"', "name")

    def _name(self, text: str, at: int) -> int:
        end = text.find('"', at)
        return len(text) if end < 0 else self._turn(text, end, '"', "after name")

    def _after_name(self, text: str, at: int) -> int:
        return self._turn(text, at, ":", "before value")

    def _turn(self, text: str, at: int, char: str, state: str) -> int:
        if text[at] == char:
            self._stack[-1] = state
        return at + 1

    def _before_value(self, text: str, at: int) -> int:
        return self._begin_value(text, at, "after member")

    def _after_member(self, text: str, at: int) -> int:
        return self._after(text, at, end="}", comma="object comma")

    def _array_start(self, text: str, at: int) -> int:
        self._keep(at)
        if text[at] == "]":
            self._stack.pop()
            return at + 1
        return self._begin_value(text, at, "after item")

    def _after_item(self, text: str, at: int) -> int:
        if text[at] != ",":
            self._keep(at)
        return self._after(text, at, end="]", comma="array comma")

    def _array_comma(self, text: str, at: int) -> int:
        return self._begin_value(text, at, "after item")

    def _after(self, text: str, at: int, *, end: str, comma: str) -> int:
        if text[at] == ",":
            self._stack[-1] = comma
        elif text[at] == end:
            self._stack.pop()
            self._keep(at)
        return at + 1

    def _string(self, text: str, at: int) -> int:
        if (plain := _PLAIN.match(text, at)) is not None:
            return self._keep(plain.end() - 1)
        if text[at] == "\\":
            self._stack.append("escape")
            return at + 1
        self._stack.pop()
        return self._keep(at)

    def _escape(self, text: str, at: int) -> int:
        self._stack.pop()
        if text[at] != "u":
            return self._keep(at)
        self._digits = 0
        self._stack.append("code")
        return at + 1

    def _code(self, text: str, at: int) -> int:
        if text[at] in "0123456789abcdefABCDEF":
            self._digits += 1
            if self._digits == 4:
                self._stack.pop()
                return self._keep(at)
        return at + 1

    def _number(self, text: str, at: int) -> int:
        if text[at] in "0123456789":
            return self._keep(at)
        return at + 1 if text[at] in "eE-." else self._end_leaf(text, at)

    def _in_literal(self, text: str, at: int) -> int:
        if not self._literal.startswith(text[at]):
            return self._end_leaf(text, at)
        self._literal = self._literal[1:]
        return self._keep(at)

    def _end_leaf(self, text: str, at: int) -> int:
        """A character that does not belong to a number or literal: it ends it, and may be a comma or the end of a container."""
        self._stack.pop()
        if self._stack[-1] == "after member":
            return self._after_member(text, at)
        if self._stack[-1] == "after item":
            return self._after(text, at, end="]", comma="array comma")
        return at + 1

    _STEPS: ClassVar[Mapping[str, Callable[[Repair, str, int], int]]] = {
        "root": _root,
        "finish": _finish,
        "object start": _object_start,
        "object comma": _object_comma,
        "name": _name,
        "after name": _after_name,
        "before value": _before_value,
        "after member": _after_member,
        "array start": _array_start,
        "after item": _after_item,
        "array comma": _array_comma,
        "string": _string,
        "escape": _escape,
        "code": _code,
        "number": _number,
        "literal": _in_literal,
    }
