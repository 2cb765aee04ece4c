"""How far a message is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from bubble.assembler.messages import BubbleMessage, BubbleMetadata, MessagePart

__all__ = ["Progress"]


@dataclass(slots=True)
class Progress:
    """`parts` are those that are told whole, as they were then; of the next one, a text, `characters` are told.

    `is_begun`: something of it is to be seen; `is_headed`: below a heading of its own.
    """

    message: BubbleMessage
    parts: list[MessagePart] = field(default_factory=list)
    characters: int = 0
    is_begun: bool = False
    is_headed: bool = False
    has_error: bool = False
    reactions: dict[str, list[str]] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The message's id."""
        return self.message["id"]

    @property
    def bubble(self) -> BubbleMetadata:
        """The message's metadata, as far as they are the log's."""
        return self.message["metadata"]["bubble"]

    @property
    def is_finished(self) -> bool:
        """Whether its run is over, if it has one."""
        return self.bubble["status"] == "finished"

    @property
    def rest(self) -> Sequence[MessagePart]:
        """The parts that are not told whole."""
        return self.message["parts"][len(self.parts) :]

    @property
    def began_at(self) -> str:
        """When what is told next happened, as far as that is known."""
        return self.bubble["updatedAt"] if self.is_begun else self.bubble["createdAt"]

    @property
    def goes_on(self) -> bool:
        """Whether its author was heard in the same run before."""
        return self.is_headed or "continuation" in self.bubble

    def end_part(self) -> None:
        """The next part is told whole."""
        self.parts.append(self.message["parts"][len(self.parts)])
        self.characters = 0

    def pass_over(self) -> None:
        """All that there is counts as told."""
        self.is_begun = self.is_headed = True
        while self.rest:
            part = self.rest[0]
            if len(self.rest) == 1 and part.get("state") == "streaming" and "text" in part:
                self.characters = len(str(part["text"]))
                return
            self.end_part()

    def remaining_text(self, part: MessagePart) -> str:
        """What is not told of the next part, a text. Blank lines at its beginning and at its end say nothing."""
        text = str(part.get("text", ""))[self.characters :].rstrip("\n")
        return self._beginning(text)

    def complete_lines(self, part: MessagePart) -> str:
        """Of the next part, a text that grows, the lines that will not become longer; they count as told."""
        text = str(part.get("text", ""))
        told = text[self.characters : max(self.characters, text.rfind("\n"))].rstrip("\n")
        if not told.strip():  # blank lines wait for what they are to separate
            return ""
        lines = self._beginning(told)
        self.characters += len(told) + 1
        return lines

    def _beginning(self, text: str) -> str:
        if self.characters:
            return text
        # Where another speaker cut a text in two, the space at the cut says nothing.
        is_second_half = "continuation" in self.bubble and not self.is_begun
        return text.lstrip() if is_second_half else text.lstrip("\n")
