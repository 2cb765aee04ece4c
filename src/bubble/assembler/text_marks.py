"""How long a text was when, so that what came later can be told from what was there."""

from __future__ import annotations

from array import array
from bisect import bisect_right

__all__ = ["TextMarks"]


class TextMarks:
    """The lengths of a text after each event that added to it.

    They count UTF-16 units, as lengths do where the deltas were cut: two deltas that bring the halves of one character add one each, though
    the text they make has one character.
    """

    __slots__ = ("_lengths", "_seqs")

    def __init__(self) -> None:
        self._seqs = array("Q")
        self._lengths = array("Q", [0])

    def add(self, seq: int, delta: str) -> None:
        """The event `seq` added `delta`."""
        self._seqs.append(seq)
        self._lengths.append(self._lengths[-1] + (len(delta) if delta.isascii() else len(_units(delta)) // 2))

    def rest(self, text: str, *, after: int) -> str:
        """What events above `after` added; `text` is all of it."""
        start = self._lengths[bisect_right(self._seqs, after)]
        return text[start:] if text.isascii() else _units(text)[2 * start :].decode("utf-16-le", "surrogatepass")


def _units(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass")
