"""The input of a tool call while it streams in as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec import UNSET, UnsetType

from bubble.assembler.fields import Part
from bubble.assembler.growing_json import GrowingJson
from bubble.assembler.text import GrowingText, joined
from bubble.protocol.jsontext import JSONValue

__all__ = ["Change", "ChangedTool", "ToolInput"]

Change: TypeAlias = Callable[[Part], Part]
"""What makes another value of a tool part; from one without its streamed input it makes the same, without that input."""


class ToolInput:
    """What `tool-input-start` registers, and the text that has come since.

    While the last change of a tool part was a delta, the part is what `build` gives: `base` with the input as far as it goes.
    """

    __slots__ = ("_text", "base", "dynamic", "encoding", "index", "name", "shows_raw", "title", "tool_metadata")

    def __init__(
        self,
        *,
        name: str,
        dynamic: bool,
        encoding: JSONValue = None,
        title: JSONValue | UnsetType = UNSET,
        tool_metadata: JSONValue | UnsetType = UNSET,
        text: str = "",
    ) -> None:
        self.name = name
        self.dynamic = dynamic
        self.encoding = encoding
        self.title = title
        self.tool_metadata = tool_metadata
        self.base: Part = {}
        self.index: int | None = None  # of that part in the message
        self.shows_raw = True
        self._text = GrowingText() if encoding == "text" else GrowingJson()
        self._text.append(joined(text))

    def append(self, delta: str) -> None:
        """Adds to the text."""
        self._text.append(joined(delta))

    def build(self) -> Part:
        """The part as it is now, a new value."""
        part = self.base.copy()
        value = self._text.value() if isinstance(self._text, GrowingJson) else self._text.text()
        if value is not UNSET:
            part["input"] = value
        if self.shows_raw:
            part["rawInput"] = self._text.text()
        return part


class ChangedTool:
    """A tool part whose input was streaming in when something else changed it; until somebody looks, the input is not put together.

    The next delta makes a part anew, so that between two of them a change costs itself.
    """

    __slots__ = ("_changes", "_input", "base")

    def __init__(self, growing: ToolInput) -> None:
        self._input = growing
        self._changes: list[Change] = []
        self.base = growing.base

    def add(self, change: Change) -> None:
        """Changes the part once more."""
        self.base = change(self.base)
        self._changes.append(change)

    def build(self) -> Part:
        """The part as it is now."""
        part = self._input.build()
        for change in self._changes:
            part = change(part)
        return part
