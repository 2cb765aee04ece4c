"""The two voices of a reply: what is said, and what is thought. Each is said once, and in blocks of its own."""

from __future__ import annotations

from collections.abc import Iterator

from bubble.reef.events import Content, TextPart
from bubble.reef.said import Passage, Said
from bubble.reef.sayings import EndBlock, Reasoning, Saying, Text

__all__ = ["Voice", "speech", "thought"]


class Voice:
    """One of them. A content is begun with its whole text; then its pieces are said, less what is known."""

    def __init__(self, kind: type[Text | Reasoning]) -> None:
        self.said = Said()
        self._kind = kind
        self._known = 0

    def says(self, part: TextPart) -> bool:
        """Whether the part is of this voice."""
        return part.thought == (self._kind is Reasoning)

    def begin(self, passage: Passage, content: Content, *, is_said_otherwise: bool) -> Iterator[Saying]:
        """Takes in the whole text of a content. A whole that is not known stands in a block of its own."""
        self._known = 0
        if not passage.text:
            return
        if is_said_otherwise:
            self._known = len(passage.text)
            return
        self.said.begin(content.carrier, content.id)
        self._known = self.said.known(passage)
        self.said.add(passage, known=self._known)
        if passage.is_whole:
            self.said.cut()
            if not self._known and not passage.append:
                yield EndBlock()

    def say(self, text: str) -> Iterator[Saying]:
        """A piece of that content, in order."""
        known = min(self._known, len(text))
        self._known -= known
        if new := text[known:]:
            yield self._kind(new)


def speech() -> Voice:
    """What is said."""
    return Voice(Text)


def thought() -> Voice:
    """What is thought."""
    return Voice(Reasoning)
