"""Emojis that people put on messages, and which message an event belongs to.

A reaction names an event by its seq. `Places` knows for each event that contributed to a message which one that was, in runs of consecutive
seqs, so that it stays small. An event may also contribute to a message that is not there yet (a run's beginning, metadata before the first
part): then the reaction is held until it is.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from bubble.assembler.handlers import REACTION, NativePart
from bubble.protocol.parts import ReactionPart

if TYPE_CHECKING:
    from bubble.assembler.segment import Segment

__all__ = ["Anchor", "Holder", "Places", "Reaction", "Reactions", "read_reaction"]


@dataclass(frozen=True, slots=True)
class Reaction:
    """What one principal does to one emoji on the message that holds `target_seq`."""

    principal_id: str
    emoji: str
    target_seq: int
    adds: bool


def read_reaction(principal_id: str, part: NativePart) -> Reaction | None:
    """The reaction that a native part says; None for one of another kind and for what does not have the shape."""
    if part.get("kind") != REACTION:
        return None
    try:
        said = msgspec.convert(part, ReactionPart)
    except ValueError:  # of the wrong shape, or with half a character where a word must stand
        return None
    return Reaction(principal_id, said.emoji, said.target_seq, adds=said.op == "add")


class Reactions:
    """The reactions on one message."""

    __slots__ = ("_by_emoji",)

    def __init__(self) -> None:
        self._by_emoji: dict[str, dict[str, int]] = {}  # who, and the latest event they reacted to

    def take(self, reaction: Reaction) -> bool:
        """Adds or removes; whether that made a difference to who is listed."""
        people = self._by_emoji.get(reaction.emoji, {})
        was_there = reaction.principal_id in people
        if reaction.adds:
            known = people.get(reaction.principal_id, 0)
            people[reaction.principal_id] = max(known, reaction.target_seq)
            self._by_emoji[reaction.emoji] = people
        elif was_there:
            del people[reaction.principal_id]
            if not people:
                del self._by_emoji[reaction.emoji]
        return was_there != reaction.adds

    def shown(self, *, after: int = 0) -> dict[str, list[str]]:
        """Who put which emoji on events with a seq above `after`, in order of first addition."""
        listed = {
            emoji: [who for who, target in people.items() if target > after] for emoji, people in self._by_emoji.items()
        }
        return {emoji: people for emoji, people in listed.items() if people}


class Anchor:
    """Stands for a message that may still have to come."""

    __slots__ = ("_held", "_segment")

    def __init__(self) -> None:
        self._segment: Segment | None = None
        self._held: list[Reaction] = []

    def settle(self, segment: Segment) -> None:
        """The message is there. The first one counts."""
        if self._segment is None:
            self._segment = segment
            for reaction in self._held:
                segment.react(reaction)
            self._held.clear()

    def react(self, reaction: Reaction) -> None:
        """A reaction for the message, now or when it is there."""
        if self._segment is None:
            self._held.append(reaction)
        else:
            self._segment.react(reaction)


Holder: TypeAlias = "Segment | Anchor"


class Places:
    """Who holds which event, by seq."""

    __slots__ = ("_firsts", "_holders", "_lasts")

    def __init__(self) -> None:
        self._firsts = array("Q")
        self._lasts = array("Q")
        self._holders: list[Holder] = []

    def add(self, seq: int, holder: Holder) -> None:
        """`holder` holds the event `seq`, which is above all that were added."""
        if self._holders and self._holders[-1] is holder and self._lasts[-1] == seq - 1:
            self._lasts[-1] = seq
        else:
            self._firsts.append(seq)
            self._lasts.append(seq)
            self._holders.append(holder)

    def find(self, seq: int) -> Holder | None:
        """Who holds the event `seq`, if anybody does."""
        index = bisect_right(self._firsts, seq) - 1
        return self._holders[index] if index >= 0 and seq <= self._lasts[index] else None
