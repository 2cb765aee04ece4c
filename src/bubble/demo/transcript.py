"""What was said on a thread, as a person reads it: one paragraph per run, growing with every event.

Just enough for the demonstration: texts and reasoning grow, tool calls have an input and an output, the rest is counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from bubble.protocol.events import SequencedEvent
from bubble.protocol.jsontext import JSONValue, dump_json

__all__ = ["Block", "Said", "Transcript"]

BlockKind = Literal["text", "reasoning", "tool", "output"]
_GROWING: Final[Mapping[str, tuple[BlockKind, str, str]]] = {
    "text-delta": ("text", "id", "delta"),
    "reasoning-delta": ("reasoning", "id", "delta"),
    "tool-input-delta": ("tool", "toolCallId", "inputTextDelta"),
}
_STARTING: Final[Mapping[str, tuple[BlockKind, str]]] = {
    "text-start": ("text", "id"),
    "reasoning-start": ("reasoning", "id"),
    "tool-input-start": ("tool", "toolCallId"),
}


@dataclass(slots=True)
class Block:
    """A piece of one kind. `label` is a tool's name."""

    kind: BlockKind
    label: str = ""
    units: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """What it says; halves of a character that came in two deltas are joined."""
        joined = "".join(self.units)
        return joined.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@dataclass(slots=True)
class Said:
    """One run: who, what, and whether it is finished."""

    principal_id: str
    run_id: str
    kind: str
    blocks: list[Block] = field(default_factory=list)
    chunks: int = 0
    finished: bool = False
    outcome: str = ""


class Transcript:
    """Grows by `apply`; `runs` in the order in which they started."""

    def __init__(self) -> None:
        self._runs: dict[str, Said] = {}
        self._growing: dict[tuple[str, BlockKind, str], Block] = {}

    @property
    def runs(self) -> Sequence[Said]:
        """All runs so far."""
        return list(self._runs.values())

    def apply(self, stored: SequencedEvent) -> None:
        """Takes in the next event; what it does not know, it passes over."""
        event = stored.to_dict()
        run_id = str(event.get("runId"))
        if event["type"] == "run_started":
            self._runs[run_id] = Said(str(event["principalId"]), run_id, str(event.get("kind", "")))
        elif event["type"] == "run_finished" and run_id in self._runs:
            self._runs[run_id].finished = True
            self._runs[run_id].outcome = str(event.get("outcome", ""))
        elif event["type"] == "message_part" and run_id in self._runs:
            part = event["part"]
            self._runs[run_id].chunks += 1
            if isinstance(part, dict):
                self._apply_chunk(self._runs[run_id], part)

    def _apply_chunk(self, said: Said, chunk: Mapping[str, JSONValue]) -> None:
        name = str(chunk.get("type"))
        if name in _STARTING:
            kind, key = _STARTING[name]
            self._start(said, kind, str(chunk.get(key)), label=str(chunk.get("toolName", "")))
        elif name in _GROWING:
            kind, key, value = _GROWING[name]
            self._block(said, kind, str(chunk.get(key))).units.append(str(chunk.get(value, "")))
        elif name == "tool-input-available":
            block = self._block(said, "tool", str(chunk.get("toolCallId")), label=str(chunk.get("toolName", "")))
            block.units[:] = [_json(chunk.get("input"))]
        elif name == "tool-output-available":
            said.blocks.append(Block("output", units=[_json(chunk.get("output"))]))

    def _block(self, said: Said, kind: BlockKind, block_id: str, *, label: str = "") -> Block:
        found = self._growing.get((said.run_id, kind, block_id))
        return found if found is not None else self._start(said, kind, block_id, label=label)

    def _start(self, said: Said, kind: BlockKind, block_id: str, *, label: str) -> Block:
        block = Block(kind, label)
        said.blocks.append(block)
        self._growing[said.run_id, kind, block_id] = block
        return block


def _json(value: JSONValue) -> str:
    return dump_json(value).decode("utf-8")
