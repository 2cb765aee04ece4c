"""What a turn has said already, so that nothing is said twice.

*Theory of operation.* Agents send their words as deltas and then, often, once more as a whole: as a message and again as an artifact, or as
an artifact that repeats all deltas, under another id, with or without `append`. Nothing in the protocol tells a delta from a repetition for
certain, so the text itself decides. `Said` keeps the turn's text as the chunks it came in, and remembers where a message or an artifact
began. A new text is held against what was said since each of these places, the earliest first:

- it *is* that text: a repetition, of which nothing is said again;
- it *begins with* that text: the same, grown; only the growth is said;
- neither: it is new.

Where what was said since such a place is a single chunk, equality alone proves little ("ha", "ha"), so that more is asked for: that the new
text is known to be whole, or comes in another carrier, or that the single chunk was marked as a delta. A text marked as a delta is never a
repetition. What stays in doubt is for the caller to hold until what comes next has decided (`is_doubtful`).
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import islice

from bubble.reef.events import Carrier

__all__ = ["Passage", "Said"]

# A text that grows out of one single shorter chunk must share so many characters with it: "-" and then "--" are two deltas.
_TELLING = 4
# So many places are compared with; more of them match only in texts that were made for it.
_MOST_PLACES = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A text as it comes in.

    `is_delta` and `append` are the agent's own marks. `is_whole` tells that it is known to be no delta, `is_composed` that it came together
    with other parts, as deltas hardly do, `is_copy` that it comes in a snapshot of the task, which repeats by its nature.
    """

    text: str
    carrier: Carrier
    is_delta: bool = False
    is_whole: bool = False
    is_composed: bool = False
    is_copy: bool = False
    append: bool = False


@dataclass(frozen=True, slots=True)
class _Chunk:
    text: str
    carrier: Carrier
    is_delta: bool


class Said:
    """The text of one turn, of one kind: what is said, or what is thought."""

    def __init__(self) -> None:
        self._chunks: list[_Chunk] = []
        self._length = 0
        self._places: list[int] = []  # offsets in the text, ascending
        self._first_chunks: list[int] = []  # for each place, the chunk that begins there
        self._begins = True
        self._source: tuple[Carrier, str | None] | None = None
        self._wholes: set[str] = set()

    def begin(self, carrier: Carrier, id: str | None) -> None:
        """What comes next is of this message or artifact. A message is always a new one; an artifact goes on while its id is the same."""
        source = (carrier, id)
        if carrier != "artifact" or source != self._source:
            self.cut()
            self._source = source

    def cut(self) -> None:
        """What comes next begins something new."""
        if not self._begins:
            self._wholes.add(self._since(len(self._places) - 1))
        self._begins = True
        self._source = None

    def known(self, passage: Passage) -> int:
        """How many characters at the beginning of the passage were said before."""
        text = passage.text
        if passage.is_delta or not text:
            return 0
        for place in self._places_for(text):
            said = self._since(place)
            if text.startswith(said) and self._proves(place, passage, is_equal=len(said) == len(text)):
                return len(said)
        return len(text) if (passage.is_whole or passage.is_copy) and text in self._wholes else 0

    def is_doubtful(self, passage: Passage) -> bool:
        """Whether the passage, of which nothing is `known`, may repeat the one chunk before it all the same."""
        if passage.is_delta or passage.append or self._begins or not self._places:
            return False
        return self._since(len(self._places) - 1) == passage.text

    def add(self, passage: Passage, *, known: int) -> None:
        """Takes note that the passage is being said, but for the characters that were `known`."""
        new = passage.text[known:]
        if not new:
            self.cut()
            return
        if self._begins and not known:
            self._places.append(self._length)
            self._first_chunks.append(len(self._chunks))
        self._begins = False
        self._chunks.append(_Chunk(new, passage.carrier, passage.is_delta))
        self._length += len(new)

    def _places_for(self, text: str) -> list[int]:
        # Only where no more was said since than the text is long, and where the first chunk is how the text begins.
        shortest = bisect_left(self._places, self._length - len(text))
        places = range(shortest, len(self._places))
        fitting = (place for place in places if text.startswith(self._chunks[self._first_chunks[place]].text))
        return list(islice(fitting, _MOST_PLACES))

    def _since(self, place: int) -> str:
        return "".join(chunk.text for chunk in self._chunks[self._first_chunks[place] :])

    def _proves(self, place: int, passage: Passage, *, is_equal: bool) -> bool:
        first = self._first_chunks[place]
        single = self._chunks[first]
        if len(self._chunks) - first > 1 or passage.is_copy or single.is_delta or single.carrier != passage.carrier:
            return True
        if is_equal:
            return passage.is_whole or passage.is_composed
        if passage.is_whole:
            return not passage.append
        return not passage.append and (place == 0 or len(single.text.strip()) >= _TELLING)
