"""Text that grows by deltas, and the text and reasoning parts that hold it.

A delta costs its own length. Pieces are put together when somebody looks, and then stay together.
"""

from __future__ import annotations

import re
from typing import Final

from bubble.assembler.fields import Part
from bubble.protocol.jsontext import JSONValue

__all__ = ["MANY", "GrowingText", "Pieces", "TextBlock", "joined"]

MANY: Final = 1_024
"""Pieces that may wait until they are gathered."""

_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_FIRST_HIGH, _FIRST_LOW, _PAST_LOW = 0xD800, 0xDC00, 0xE000


def joined(text: str) -> str:
    """`text` with each pair of surrogates made the character that it means; lone ones stay. Decoders of JSON do the same."""
    if text.isascii() or _PAIR.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


class Pieces:
    """A string made of pieces, as it was given. Many short pieces cost much more memory than what they say, so they are gathered."""

    __slots__ = ("_gathered", "_recent")

    def __init__(self) -> None:
        self._gathered: list[str] = []
        self._recent: list[str] = []

    def append(self, piece: str) -> None:
        """Adds `piece` at the end."""
        self._recent.append(piece)
        if len(self._recent) == MANY:
            self._gathered.append("".join(self._recent))
            self._recent.clear()

    def pop(self) -> str:
        """Takes the last piece away again, or the last that were gathered."""
        return (self._recent or self._gathered).pop()

    def text(self) -> str:
        """All of it, from now on one piece."""
        if self._recent or len(self._gathered) > 1:
            self._gathered[:] = ("".join((*self._gathered, *self._recent)),)
            self._recent.clear()
        return self._gathered[0] if self._gathered else ""


class GrowingText:
    """A string of UTF-16 units, as JavaScript counts: halves of a character that meet where two pieces do become the character.

    Only the border is looked at: within a piece there must be no such halves, see `joined`.
    """

    __slots__ = ("_halved", "_pieces")

    def __init__(self) -> None:
        self._pieces = Pieces()
        self._halved = False  # the text ends with a high surrogate

    def append(self, piece: str) -> None:
        """Adds `piece` at the end."""
        if not piece:
            return
        if self._halved and _FIRST_LOW <= ord(piece[0]) < _PAST_LOW:
            piece = joined(self._pieces.pop() + piece)
        self._halved = not piece.isascii() and _FIRST_HIGH <= ord(piece[-1]) < _FIRST_LOW
        self._pieces.append(piece)

    def text(self) -> str:
        """All of it."""
        return self._pieces.text()


class TextBlock:
    """A text or reasoning part between its start and its end. `index` is its place in the message."""

    __slots__ = ("_part", "_text", "index")

    def __init__(self, part: Part, *, index: int) -> None:
        self.index = index
        self._part = part
        self._text = GrowingText()

    def append(self, delta: str) -> None:
        """Adds to the text."""
        self._text.append(joined(delta))

    def amend(self, **fields: JSONValue) -> None:
        """Replaces fields other than `text`."""
        self._part = {**self._part, **fields}

    def build(self) -> Part:
        """The part as it is now."""
        return {**self._part, "text": self._text.text()}
