"""A strict JSON reader that takes its text in pieces and can show at any moment what it has so far.

*Theory of operation.* One state, a stack of open containers, and the leaf that is being read. Each step function takes the text and a place
in it, takes as much as it can at once, and gives the place after that: whole tokens where the piece holds them, beginnings of tokens
at the end of a piece. Nothing is ever read twice, and nothing is done by recursion.

`value` closes what is open, on a copy: a container that is closed is finished and shared by every value shown from then on, an open one is
copied, so that what was shown stays as it was.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import ClassVar, Final, TypeAlias

from msgspec import UNSET, UnsetType

from bubble.assembler.json_guard import GUARDED, Guard
from bubble.assembler.json_numbers import NumberText, number_value
from bubble.assembler.text import GrowingText
from bubble.protocol.jsontext import MAX_DEPTH, JSONValue

__all__ = ["JSONScanner"]

_Container: TypeAlias = "list[JSONValue] | dict[str, JSONValue]"

_BLANKS = re.compile(r"[ \t\n\r]*")
_RUN = re.compile(r'[^"\\\x00-\x1f]*')
_WHOLE_STRING = re.compile(r'"([^"\\\x00-\x1f]*)"')
_WHOLE_NAME = re.compile(r'"([^"\\\x00-\x1f]*)"[ \t\n\r]*:')
_WHOLE_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE]-?[0-9]+)?(?=[,\]} \t\n\r])")
_ESCAPE = re.compile(r'\\(?:(["\\/bfnrt])|u([0-9a-fA-F]{4}))')
_ESCAPE_BEGUN = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")
_ESCAPED: Final = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_LITERALS: Final[dict[str, tuple[str, JSONValue]]] = {"t": ("true", True), "f": ("false", False), "n": ("null", None)}

# What must come next, or what is being read. The order is that of `_STEPS`.
_VALUE, _ITEM, _NAME, _NEXT_NAME, _COLON, _AFTER, _END, _STRING, _IN_NAME, _NUMBER, _LITERAL, _DEAD = range(12)


class JSONScanner:
    """Reads JSON by `feed`. Text nested deeper than `MAX_DEPTH` is not taken for JSON."""

    __slots__ = (
        "_containers",
        "_guard",
        "_literal",
        "_names",
        "_number",
        "_rest",
        "_root",
        "_state",
        "_text",
        "_value",
        "is_quirky",
    )

    def __init__(self) -> None:
        self.is_quirky = False  # see `growing_json`: the repair of partial JSON reads this text in another way
        self._state = _VALUE
        self._containers: list[_Container] = []
        self._names: list[str] = []  # for each container the name that its next value gets; unused for arrays
        self._root: JSONValue | UnsetType = UNSET
        self._rest = ""  # an escape that is not complete
        self._text = GrowingText()  # of the string or the name that is being read
        self._number = NumberText()
        self._literal = ""  # what is missing of a literal
        self._value: JSONValue = None  # which it will be
        self._guard = Guard()

    def feed(self, text: str) -> None:
        """Takes the next piece."""
        if self._rest:
            text, self._rest = self._rest + text, ""
        at = 0
        while at < len(text):
            at = self._STEPS[self._state](self, text, at)

    @property
    def is_dead(self) -> bool:
        """Whether no text that goes on from here is JSON."""
        return self._state == _DEAD

    def complete_value(self) -> JSONValue | UnsetType:
        """The value, where the text so far is JSON as it stands."""
        return self.value() if self.closers() == "" else UNSET

    def closers(self) -> str | None:
        """What to append so that the text is JSON; None where appending only closing signs is not enough."""
        leaf = self._leaf_closer()
        if leaf is None or self._rest:
            return None
        return leaf + "".join("]" if isinstance(open_, list) else "}" for open_ in reversed(self._containers))

    def value(self) -> JSONValue | UnsetType:
        """What has come so far, with everything closed; `UNSET` where that is nothing, or must not be shown."""
        if self._guard.refused or self._state == _DEAD:
            return UNSET
        shown = self._leaf()
        if self._state == _NUMBER and shown is UNSET and self._containers and self._containers[-1] == []:
            return UNSET  # `[-`: the one beginning of JSON that the original cannot close
        for container, name in zip(reversed(self._containers), reversed(self._names), strict=True):
            shown = _with(container, name, shown)
        return shown

    def _leaf(self) -> JSONValue | UnsetType:
        if self._state == _STRING:
            return self._text.text()
        if self._state == _LITERAL:
            return self._value
        if self._state == _NUMBER:
            return self._number.value() if self._number.has_digits else UNSET
        return UNSET if self._containers else self._root

    def _leaf_closer(self) -> str | None:
        if self._state == _STRING:
            return '"'
        if self._state == _LITERAL:
            return self._literal
        if self._state == _NUMBER:
            return "" if self._number.is_complete else None
        return "" if self._state in {_ITEM, _NAME, _AFTER, _END} else None

    # Steps: each takes at least one character or changes the state, and gives the place to go on from.

    def _step_value(self, text: str, at: int) -> int:
        char = text[at]
        if char == '"':
            return self._begin_string(text, at)
        if char in "-0123456789":
            return self._begin_number(text, at)
        if char in "[{":
            return self._open([] if char == "[" else {}, at)
        if char in _LITERALS:
            return self._begin_literal(char, at)
        return self._blank(text, at)

    def _step_item(self, text: str, at: int) -> int:
        return self._close(at) if text[at] == "]" else self._step_value(text, at)

    def _step_name(self, text: str, at: int) -> int:
        return self._close(at) if text[at] == "}" else self._step_next_name(text, at)

    def _step_next_name(self, text: str, at: int) -> int:
        if text[at] != '"':
            return self._blank(text, at)
        if (whole := _WHOLE_NAME.match(text, at)) is not None:
            self._names[-1] = whole[1]
            self._state = _VALUE
            return whole.end()
        self._text = GrowingText()
        self._state = _IN_NAME
        return at + 1

    def _step_colon(self, text: str, at: int) -> int:
        if text[at] != ":":
            return self._blank(text, at)
        self._state = _VALUE
        return at + 1

    def _step_after(self, text: str, at: int) -> int:
        char = text[at]
        is_array = isinstance(self._containers[-1], list)
        if char == ",":
            self._state = _VALUE if is_array else _NEXT_NAME
            return at + 1
        if char == ("]" if is_array else "}"):
            return self._close(at)
        return self._blank(text, at)

    def _step_string(self, text: str, at: int) -> int:
        at = self._take_text(text, at)
        if at < len(text) and text[at] == '"':
            self._put(self._text.text())
            return at + 1
        return at

    def _step_in_name(self, text: str, at: int) -> int:
        at = self._take_text(text, at)
        if at < len(text) and text[at] == '"':
            self._names[-1] = self._text.text()
            self._state = _COLON
            return at + 1
        return at

    def _step_number(self, text: str, at: int) -> int:
        was_shown = self._number.has_digits
        end = self._number.take(text, at)
        if self._number.is_broken or (end < len(text) and not self._number.is_complete):
            return self._die(text)
        if self._number.has_plus and not (self._containers and isinstance(self._containers[-1], list)):
            self.is_quirky = True
        if self._number.has_digits and not was_shown:
            self._begin()
        if end < len(text):
            self._put(self._number.value())
        return end

    def _step_literal(self, text: str, at: int) -> int:
        piece = text[at : at + len(self._literal)]
        if not self._literal.startswith(piece):
            return self._die(text)
        self._literal = self._literal[len(piece) :]
        if not self._literal:
            self._put(self._value)
        return at + len(piece)

    def _die(self, text: str, at: int = 0) -> int:  # noqa: ARG002 - a step like the others
        self._state = _DEAD
        self.is_quirky = True
        return len(text)

    def _blank(self, text: str, at: int) -> int:
        """Past white space, the only thing that may stand where nothing else may."""
        match = _BLANKS.match(text, at)
        end = at if match is None else match.end()
        return end if end > at else self._die(text)

    def _begin_string(self, text: str, at: int) -> int:
        self._begin()
        if (whole := _WHOLE_STRING.match(text, at)) is not None:
            self._put(whole[1])
            return whole.end()
        self._text = GrowingText()
        self._state = _STRING
        return at + 1

    def _begin_number(self, text: str, at: int) -> int:
        if (whole := _WHOLE_NUMBER.match(text, at)) is not None:
            self._begin()
            self._put(number_value(whole[0]))
            return whole.end()
        self._number = NumberText()
        self._state = _NUMBER
        return at

    def _begin_literal(self, char: str, at: int) -> int:
        self._begin()
        word, self._value = _LITERALS[char]
        self._literal = word[1:]
        self._state = _LITERAL
        return at + 1

    def _take_text(self, text: str, at: int) -> int:
        """Takes what belongs to a string, up to its end or the end of `text`."""
        run = _RUN.match(text, at)
        end = at if run is None else run.end()
        if end > at:
            self._text.append(text[at:end])
        if end == len(text) or text[end] == '"':
            return end
        return self._take_escape(text, end) if text[end] == "\\" else self._die(text)

    def _take_escape(self, text: str, at: int) -> int:
        if (escape := _ESCAPE.match(text, at)) is not None:
            self._text.append(_ESCAPED[escape[1]] if escape[1] else chr(int(escape[2], 16)))
            self.is_quirky |= self._state == _IN_NAME and escape[1] == '"'
            return escape.end()
        if _ESCAPE_BEGUN.match(text, at) is None:
            return self._die(text)
        self._rest = text[at:]
        return len(text)

    def _begin(self) -> None:
        """A value begins to show: it takes the place of what had its name."""
        names = self._names
        if names and (names[-1] in GUARDED or self._guard.refused) and isinstance(self._containers[-1], dict):
            self._guard.begin(names)

    def _open(self, container: _Container, at: int) -> int:
        self._begin()
        self._containers.append(container)
        self._names.append("")
        self._state = _ITEM if isinstance(container, list) else _NAME
        if len(self._containers) > MAX_DEPTH:
            self._state, self.is_quirky = _DEAD, True
        return at + 1

    def _close(self, at: int) -> int:
        container = self._containers.pop()
        self._names.pop()
        if self._guard.refused:
            self._guard.close(self._names)
        self._put(container)
        return at + 1

    def _put(self, value: JSONValue) -> None:
        if not self._containers:
            self._root = value
            self._state = _END
            return
        container = self._containers[-1]
        if isinstance(container, list):
            container.append(value)
        else:
            container[self._names[-1]] = value
        self._state = _AFTER

    _STEPS: ClassVar[tuple[Callable[[JSONScanner, str, int], int], ...]] = (
        _step_value,
        _step_item,
        _step_name,
        _step_next_name,
        _step_colon,
        _step_after,
        _blank,
        _step_string,
        _step_in_name,
        _step_number,
        _step_literal,
        _die,
    )


def _with(container: _Container, name: str, value: JSONValue | UnsetType) -> JSONValue:
    """A copy of an open container with the value that has begun, if one has."""
    if isinstance(container, list):
        return container.copy() if value is UNSET else [*container, value]
    return container.copy() if value is UNSET else {**container, name: value}
