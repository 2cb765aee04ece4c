"""The value of JSON text that is still coming, after every piece, without ever starting again.

*Theory of operation.* What must be shown is what the original shows: `parse_partial_json` of all the text so far. As long as the text
is the beginning of JSON, that is what a strict scanner has read, with everything closed, and one scanner is all there is.

In a few places the original's repair reads otherwise than JSON is meant: a quote that is escaped within a name, a plus sign in an exponent,
and everything after a mistake. The scanner calls such text `quirky`. From then on, and for good, three readers go on together:

- the scanner itself, *ahead*: should the text be JSON as it stands, its value counts;
- the repair, which says how much of the text it keeps and with what it closes that;
- a second scanner, *behind*, which has read exactly what is kept. If what would close it is what the repair appends, the repaired text
  is JSON, and its value is what this scanner shows. If not, there is nothing to show.

Coming to that point costs one pass over the text; afterwards each piece is again read only once by each reader.
"""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from bubble.assembler.json_repair import Repair
from bubble.assembler.json_scanner import JSONScanner
from bubble.assembler.text import MANY, GrowingText, Pieces, joined
from bubble.protocol.jsontext import JSONValue

__all__ = ["GrowingJson"]


class GrowingJson:
    """JSON text that grows by `append`. It is read when its value is asked for, or when much has gathered."""

    __slots__ = ("_ahead", "_repaired", "_text", "_unread")

    def __init__(self) -> None:
        self._text = GrowingText()
        self._unread: list[str] = []  # what has not been read
        self._ahead: JSONScanner | None = None  # many an input comes without a delta
        self._repaired: _Repaired | None = None

    def append(self, piece: str) -> None:
        """Adds to the text."""
        self._text.append(piece)
        self._unread.append(piece)
        if len(self._unread) == MANY:
            self._read()

    def text(self) -> str:
        """All of the text."""
        return self._text.text()

    def value(self) -> JSONValue | UnsetType:
        """What `parse_partial_json` gives for all of the text; `UNSET` where that is no value."""
        ahead = self._read()
        if self._repaired is None:
            return ahead.value()
        whole = ahead.complete_value()
        return self._repaired.value() if whole is UNSET else whole

    def _read(self) -> JSONScanner:
        ahead = self._ahead = self._ahead or JSONScanner()
        piece = joined("".join(self._unread))
        self._unread.clear()
        ahead.feed(piece)
        if self._repaired is not None and not (ahead.is_dead and self._repaired.is_hopeless):
            self._repaired.feed(piece)
        if ahead.is_quirky and self._repaired is None:
            self._repaired = _Repaired()
            self._repaired.feed(self._text.text())
        return ahead


class _Repaired:
    """The repair, and the scanner that has read what it keeps."""

    __slots__ = ("_behind", "_kept", "_repair", "_waiting")

    def __init__(self) -> None:
        self._repair = Repair()
        self._behind = JSONScanner()
        self._kept = 0  # characters that `_behind` has read
        self._waiting = Pieces()  # what it has not

    @property
    def is_hopeless(self) -> bool:
        """Whether there will never be anything to show: what is kept once stays."""
        return self._behind.is_dead

    def feed(self, piece: str) -> None:
        self._waiting.append(piece)
        self._repair.feed(piece)
        if (count := self._repair.kept - self._kept) > 0:
            waiting, self._waiting = self._waiting.text(), Pieces()
            self._behind.feed(joined(waiting[:count]))
            self._waiting.append(waiting[count:])
            self._kept = self._repair.kept

    def value(self) -> JSONValue | UnsetType:
        closers = self._behind.closers()
        return UNSET if closers is None or closers != self._repair.closers() else self._behind.value()
