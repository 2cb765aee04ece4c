"""The parts of one message: frozen values in order, those that still grow, and where to find what a chunk names.

A part that is looked at is built once and not touched again: a change puts another value in its place. So lists of parts that were handed
out stay as they were, and share every part that did not change since.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from bubble.assembler.fields import DATA, Part

__all__ = ["DYNAMIC_TOOL", "STEP_START", "TOOL", "DataSource", "Growing", "Parts", "SourcedData", "is_tool"]

TOOL: Final = "tool-"
DYNAMIC_TOOL: Final = "dynamic-tool"
STEP_START: Final = "step-start"


class Growing(Protocol):
    """What a part is made of as long as deltas come for it."""

    def build(self) -> Part:
        """The part as it is now, a new value."""
        ...


class DataSource(Protocol):
    """Whoever knows what a data part holds."""

    def fields(self) -> Part:
        """The part's `data` as it is now, and whatever else is as it says; values that are not changed afterwards."""
        ...


@dataclass(frozen=True, slots=True)
class SourcedData:
    """A data part whose data somebody else keeps."""

    part: Part
    source: DataSource

    def build(self) -> Part:
        """The part as it is now."""
        return {**self.part, **self.source.fields()}


def is_tool(part: Mapping[str, object]) -> bool:
    """Whether `part` is a tool call, static or dynamic."""
    kind = part.get("type")
    return isinstance(kind, str) and (kind == DYNAMIC_TOOL or kind.startswith(TOOL))


class Parts:
    """The parts. The *current step* is everything after the last `step-start`."""

    __slots__ = ("_built", "_data", "_dynamic", "_growing", "_latest", "_shown", "_stale", "_static", "changed", "step")

    def __init__(self) -> None:
        self.step = 0
        self.changed = -1  # the place of the part that was added or changed last
        self._built: list[Part] = []
        self._shown: list[Part] | None = None
        self._growing: dict[int, Growing] = {}
        self._stale: set[int] = set()
        self._static: dict[str, int] = {}  # the first of its kind in the current step, by toolCallId
        self._dynamic: dict[str, int] = {}
        self._latest: dict[str, int] = {}  # the last of either kind in the message
        self._data: dict[tuple[str, str], int] = {}  # the first in the message, by type and id

    def __len__(self) -> int:
        return len(self._built)

    def all(self) -> list[Part]:
        """Every part as it is now. The list is the caller's to keep and to read, not to change."""
        for index in self._stale:
            self._built[index] = self._growing[index].build()
        self._stale.clear()
        if self._shown is None:
            self._shown = self._built.copy()
        return self._shown

    def at(self, index: int) -> Part:
        """One part as it is now."""
        if index in self._stale:
            self._built[index] = self._growing[index].build()
            self._stale.discard(index)
        return self._built[index]

    def append(self, part: Part) -> int:
        """Adds a part; its place."""
        index = len(self._built)
        self._built.append(part)
        self._shown = None
        self.changed = index
        self._note(part, index)
        return index

    def replace(self, index: int, part: Part) -> None:
        """Puts another value in the place of a part of the same kind. It no longer grows."""
        self._growing.pop(index, None)
        self._stale.discard(index)
        self._built[index] = part
        self._shown = None
        self.changed = index

    def grow(self, index: int, growing: Growing) -> None:
        """From now on the part is what `growing` builds."""
        self._growing[index] = growing
        self.touch(index)

    def growing(self, index: int) -> Growing | None:
        """What the part is made of, if it grows."""
        return self._growing.get(index)

    def is_stale(self, index: int) -> bool:
        """Whether the part would have to be built to be looked at."""
        return index in self._stale

    def touch(self, index: int) -> None:
        """What the part is made of has changed."""
        self._stale.add(index)
        self._shown = None
        self.changed = index

    def settle(self, index: int) -> None:
        """The part has its last value."""
        self.at(index)
        self._growing.pop(index, None)

    def find_data(self, kind: str, part_id: str) -> int | None:
        """The first data part in the message of this type and id."""
        return self._data.get((kind, part_id))

    def find_in_step(self, call_id: str, *, dynamic: bool) -> int | None:
        """The first tool part of that kind in the current step."""
        return (self._dynamic if dynamic else self._static).get(call_id)

    def find_either_in_step(self, call_id: str) -> int | None:
        """The first tool part of either kind in the current step."""
        static, dynamic = self._static.get(call_id), self._dynamic.get(call_id)
        return (
            min(static, dynamic)
            if static is not None and dynamic is not None
            else static
            if dynamic is None
            else dynamic
        )

    def find_call(self, call_id: str) -> int | None:
        """The tool part that an outcome is for: the first in the current step, else the last in the message."""
        index = self.find_either_in_step(call_id)
        return self._latest.get(call_id) if index is None else index

    def _note(self, part: Part, index: int) -> None:
        kind = part.get("type")
        if not isinstance(kind, str):
            return
        if kind == STEP_START:
            self.step = index + 1
            self._static.clear()
            self._dynamic.clear()
        elif kind.startswith(DATA):
            if isinstance(part_id := part.get("id"), str):
                self._data.setdefault((kind, part_id), index)
        elif is_tool(part) and isinstance(call_id := part.get("toolCallId"), str):
            (self._dynamic if kind == DYNAMIC_TOOL else self._static).setdefault(call_id, index)
            self._latest[call_id] = index
