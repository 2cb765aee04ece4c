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
        self._held: tuple[Passage, Content] | None = None

    def says(self, part: TextPart) -> bool:
        """Whether the part is of this voice."""
        return part.thought == (self._kind is Reasoning)

    def begin(self, passage: Passage, content: Content, *, is_said_otherwise: bool) -> Iterator[Saying]:
        """Takes in the whole text of a content. A whole that is not known stands in a block of its own."""
        self._known = len(passage.text) if is_said_otherwise else 0
        if not passage.text or is_said_otherwise:
            yield from self.flush()
            return
        yield from self._settle(passage)
        self._known = self.said.known(passage)
        if not self._known and self.said.is_doubtful(passage):
            self._known = len(passage.text)
            self._held = (passage, content)
            return
        if passage.is_whole and not self._known and not passage.append:
            yield EndBlock()
        self._note(passage, content)

    def say(self, text: str) -> Iterator[Saying]:
        """A piece of that content, in order."""
        known = min(self._known, len(text))
        self._known -= known
        if new := text[known:]:
            yield self._kind(new)

    def flush(self) -> Iterator[Saying]:
        """What was held back, now that nothing more can decide about it."""
        if self._held is not None:
            (passage, content), self._held = self._held, None
            self.said.begin(content.carrier, content.id)
            self.said.add(passage, known=0)
            yield self._kind(passage.text)

    def _settle(self, passage: Passage) -> Iterator[Saying]:
        # The new passage repeats what was said, and the held one is not in it: then that was a repetition too.
        if self._held is None:
            return
        known = self.said.known(passage)
        if known and not passage.text[known:].startswith(self._held[0].text):
            self._held = None
        yield from self.flush()

    def _note(self, passage: Passage, content: Content) -> None:
        self.said.begin(content.carrier, content.id)
        self.said.add(passage, known=self._known)
        if passage.is_whole:
            self.said.cut()


def speech() -> Voice:
    """What is said."""
    return Voice(Text)


def thought() -> Voice:
    """What is thought."""
    return Voice(Reasoning)
