"""The two forms in which messages are sent: as they are, or with their Markdown as HTML for a page."""

from __future__ import annotations

from typing import Literal, TypeAlias

from bubble.assembler import BubbleMessage
from bubble.server.messages.encoding import message_json
from bubble.starfish.rendering import HtmlMessages

__all__ = ["Form", "Format"]

Format: TypeAlias = Literal["json", "html"]


class Form:
    """How messages of one thread are written. `weight` is what a byte costs to make, in bytes of JSON."""

    def __init__(self, format: Format) -> None:
        self._html = HtmlMessages() if format == "html" else None
        self.weight = 1 if self._html is None else 8

    def encode(self, message: BubbleMessage) -> bytes:
        """The message as JSON text on one line."""
        return message_json(message if self._html is None else self._html.shown(message))
