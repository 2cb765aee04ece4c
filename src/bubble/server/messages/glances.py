"""What can be seen of a stored event without decoding it: enough to decide whether a page or a viewer is concerned at all.

A store writes the envelope first and in one order (`protocol/events`), so the beginning of a text tells everything but the payload.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from bubble.protocol.jsontext import load_json
from bubble.protocol.parts import ReactionPart

__all__ = ["NATIVE", "Glance", "Survey", "glance"]

#: What the text of every event with a native part ends with; a reaction is one.
NATIVE: Final = b'"version":"bubble-v1"}'

_BEGINNING = re.compile(
    rb'\{"seq":(\d+),"createdAt":"[^"]*","type":"([a-z_]+)"'  # seq, type
    rb'(?:,"principalId":"[^"]*","runId":("(?:[^"\\]|\\.)*+"))?'  # run
)
_REACTION = b"reaction"


class _Reacting(msgspec.Struct):
    part: ReactionPart


_decode: Final = msgspec.json.Decoder(_Reacting).decode


class Glance(NamedTuple):
    """An event's place and run (None: it belongs to no run), and what it may do to messages.

    `talks`: it may show something of its run. A run's beginning and end, and reactions in it, show nothing by themselves. `target` is the
    seq of the event that it reacts to, None if it is no reaction.
    """

    seq: int
    run_id: str | None
    starts: bool
    finishes: bool
    talks: bool
    target: int | None


def glance(text: bytes) -> Glance:
    """What is seen of a stored event."""
    found = _BEGINNING.match(text)
    if found is None:
        raise ValueError("not the text of a stored event")
    seq, kind, run = found.groups()
    if run is None:
        return Glance(int(seq), None, starts=False, finishes=False, talks=False, target=None)
    starts, finishes = kind == b"run_started", kind == b"run_finished"
    target = _reaction_target(text) if kind == b"message_part" else None
    return Glance(int(seq), _string(run), starts, finishes, not (starts or finishes) and target is None, target)


@lru_cache(maxsize=1024)
def _string(text: bytes) -> str:
    return str(json.loads(text))


def _reaction_target(text: bytes) -> int | None:
    """The seq that the event reacts to; None if it is no reaction."""
    if not text.endswith(NATIVE) or (_REACTION not in text and b"\\u" not in text):
        return None
    try:
        return _decode(text).part.target_seq
    except msgspec.DecodeError:
        return _target_beside_what_msgspec_refuses(text)


def _target_beside_what_msgspec_refuses(text: bytes) -> int | None:
    event = load_json(text)  # which knows lone surrogates and numbers beyond the doubles
    try:  # an event of the log is an object; whatever else it is, it reacts to nothing
        return msgspec.convert(event["part"], ReactionPart).target_seq  # type: ignore[index, call-overload]
    except (msgspec.ValidationError, ValueError, LookupError, TypeError):
        return None


@dataclass(slots=True)
class Survey:
    """What can be seen of several events."""

    #: The runs that start among them, that may show something, and that end.
    starters: set[str] = field(default_factory=set)
    talkers: set[str] = field(default_factory=set)
    finishers: set[str] = field(default_factory=set)
    #: The seq of each run's last event, and what the reactions are to.
    last_of: dict[str, int] = field(default_factory=dict)
    targets: set[int] = field(default_factory=set)

    def add(self, seen: Glance) -> None:
        """One more."""
        if seen.target is not None:
            self.targets.add(seen.target)
        if seen.run_id is None:
            return
        self.last_of[seen.run_id] = seen.seq
        if seen.talks:
            self.talkers.add(seen.run_id)
        elif seen.starts:
            self.starters.add(seen.run_id)
        elif seen.finishes:
            self.finishers.add(seen.run_id)
