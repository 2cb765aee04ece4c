"""What the projection knows of a run, and of each of those who speak in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from bubble.assembler.fields import Part
from bubble.assembler.handlers import Grown
from bubble.assembler.reactions import Anchor
from bubble.assembler.records import ApprovalRecord, ResultRecord
from bubble.assembler.segment import Segment
from bubble.protocol.jsontext import JSONValue

__all__ = ["BlockKey", "Call", "DataKey", "DataPart", "Decision", "Run", "Voice", "Waiting"]

BlockKey: TypeAlias = tuple[str, str]  # "text" or "reasoning", and the id
DataKey: TypeAlias = tuple[str, str]  # the type, and the id
Decision: TypeAlias = ApprovalRecord | ResultRecord


@dataclass(slots=True, eq=False)
class Waiting:
    """An event that cannot be shown yet, and the message that it will be part of."""

    record: Decision
    anchor: Anchor = field(default_factory=Anchor)


@dataclass(slots=True, eq=False)
class Call:
    """Where a tool call is shown, who made it, and in which of its author's steps; how much its deltas have brought of its input."""

    segment: Segment
    author: str
    step: int
    length: int = 0


@dataclass(slots=True, eq=False)
class DataPart:
    """Where a data part with an id is shown, and what it holds, unless something keeps that for it."""

    segment: Segment
    data: JSONValue
    growing: Grown | None = None


@dataclass(slots=True, eq=False)
class Run:
    """One run. `starter` is who started it; where the log begins later than the run, the first who says something in it."""

    id: str
    starter: str | None = None
    is_started: bool = False
    kind: str | None = None
    is_finished: bool = False
    outcome: str | None = None
    segments: list[Segment] = field(default_factory=list)
    voices: dict[str, Voice] = field(default_factory=dict)
    talking: set[Voice] = field(default_factory=set)  # who began a block since the run was finished last
    calls: dict[str, Call] = field(default_factory=dict)  # what a decision on an id is about
    decided: dict[str, ApprovalRecord] = field(default_factory=dict)  # the first decision on each call
    results: dict[str, ResultRecord] = field(default_factory=dict)  # the first result for each call that is shown
    waiting: dict[str, list[Waiting]] = field(
        default_factory=dict
    )  # decisions on calls that are not known yet, by call
    owed: list[tuple[Part, Anchor]] = field(default_factory=list)  # facts for the owner, who is not known yet
    anchor: Anchor = field(default_factory=Anchor)  # for the run's first message

    def voice(self, author: str) -> Voice:
        """The voice of `author` in this run."""
        voice = self.voices.get(author)
        if voice is None:
            voice = self.voices[author] = Voice(self, author)
        return voice

    def add_call(self, call_id: str, call: Call) -> bool:
        """Takes notice of a new call; whether decisions on its id are about it.

        They are about the starter's, if there is one: nobody turns a decision away from it by a call of the same id.
        """
        known = self.calls.get(call_id)
        if known is not None and call.author not in (known.author, self.starter):
            return False
        self.calls[call_id] = call
        self.results.pop(call_id, None)
        return True

    def end_blocks(self) -> None:
        """Nothing is added any more to what is open, whoever opened it."""
        for voice in self.talking:
            voice.blocks.clear()
        self.talking.clear()

    def touch(self) -> None:
        """What all messages of the run say of it has changed."""
        for segment in self.segments:
            segment.touch()


@dataclass(slots=True, eq=False)
class Voice:
    """One author in one run. Parts reach what their own voice has made, and nothing else."""

    run: Run
    author: str
    segment: Segment | None = None  # the latest
    pending: list[Part] = field(default_factory=list)  # said about the message before it was there
    blocks: dict[BlockKey, Segment] = field(default_factory=dict)  # what is open, and where
    calls: dict[str, Call] = field(default_factory=dict)  # the newest of each id
    step: int = 0  # how many `start-step`s there were
    repeated: int = 0  # characters of inputs that went on in later steps than they began in
    data: dict[DataKey, DataPart] = field(default_factory=dict)  # data parts with an id
    anchor: Anchor = field(default_factory=Anchor)  # for its first message
