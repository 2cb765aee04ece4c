"""Text that grows by deltas, and the text and reasoning parts that hold it.

A delta costs its own length. Pieces are put together when somebody looks, and then stay together.
"""

from __future__ import annotations

import re

from bubble.assembler.fields import Part
from bubble.protocol.jsontext import JSONValue

__all__ = ["GrowingText", "TextBlock", "joined"]

_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_FIRST_HIGH, _FIRST_LOW, _PAST_LOW = 0xD800, 0xDC00, 0xE000


def joined(text: str) -> str:
    """`text` with each pair of surrogates made the character that it means; lone ones stay. Decoders of JSON do the same."""
    if text.isascii() or _PAIR.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


class GrowingText:
    """A string made of pieces.

    The original counts in UTF-16 units: a high surrogate at the end of one piece and a low one at the beginning of the next are one
    character. Pieces must not have such pairs within them, see `joined`.
    """

    __slots__ = ("_halved", "_pieces")

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._halved = False  # the text ends with a high surrogate

    def append(self, piece: str) -> None:
        """Adds `piece` at the end."""
        if not piece:
            return
        if self._halved and _FIRST_LOW <= ord(piece[0]) < _PAST_LOW:
            piece = self._join(piece)
        self._halved = not piece.isascii() and _FIRST_HIGH <= ord(piece[-1]) < _FIRST_LOW
        self._pieces.append(piece)

    def text(self) -> str:
        """All of it."""
        pieces = self._pieces
        if len(pieces) > 1:
            pieces[:] = ("".join(pieces),)
        return pieces[0] if pieces else ""

    def _join(self, piece: str) -> str:
        last = self._pieces[-1]
        self._pieces[-1] = last[:-1]
        return joined(last[-1] + piece[0]) + piece[1:]


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
