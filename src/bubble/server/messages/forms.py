"""The two forms in which messages are sent: as they are, or with their Markdown as HTML for a page."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from bubble.assembler import BubbleMessage
from bubble.server.messages.encoding import message_json
from bubble.starfish.rendering import HtmlMessages

__all__ = ["Form", "Format"]

Format: TypeAlias = Literal["json", "html"]

#: How much of what was written is remembered, in bytes.
REMEMBERED_BYTES: Final = 2 * 1024 * 1024


class Form:
    """How messages of one thread are written. `weight` is what a byte costs to make, in bytes of JSON.

    A message that was written lately is not written again, whoever is to have it, as long as it is the same.
    """

    def __init__(self, format: Format) -> None:
        self._html = HtmlMessages() if format == "html" else None
        self.weight = 1 if self._html is None else 8
        self._written: dict[str, tuple[BubbleMessage, bytes]] = {}  # by id; the one written longest ago comes first
        self._size = 0

    def encode(self, message: BubbleMessage) -> bytes:
        """The message as JSON text on one line."""
        known, text = self._written.get(message["id"], (None, b""))
        if known is not message:
            text = message_json(message if self._html is None else self._html.shown(message))
            self._remember(message, text)
        return text

    def _remember(self, message: BubbleMessage, text: bytes) -> None:
        self._forget(message["id"])
        self._written[message["id"]] = (message, text)
        self._size += len(text)
        while self._size > REMEMBERED_BYTES:
            self._forget(next(iter(self._written)))

    def _forget(self, id: str) -> None:
        if id in self._written:
            self._size -= len(self._written.pop(id)[1])
