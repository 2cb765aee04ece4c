"""An extension as a third party would write it: parts of the kind `mention`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bubble.assembler import MessagePart, NativePart
from bubble.extensions import Extension

__all__ = ["EXTENSION", "MentionHandler"]


class MentionHandler:
    """`{kind: "mention", principalId}` ⇄ a `data-app-mention` part."""

    kind: Final = "mention"

    def to_chunks(self, part: NativePart) -> list[MessagePart]:
        """One part per principal that is mentioned."""
        who = part["principalId"]
        return [{"type": "data-app-mention", "id": f"mention:{who}", "data": {"principalId": who}}]

    def from_ui_part(self, part: MessagePart) -> NativePart | None:
        """The mention that a part came from."""
        data = part.get("data")
        if part["type"] != "data-app-mention" or not isinstance(data, Mapping):
            return None
        return {"kind": self.kind, "principalId": data["principalId"]}


EXTENSION: Final = Extension(name="mentions", version=1, part_handlers=(MentionHandler(),))
