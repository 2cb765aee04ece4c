"""What can be seen of a stored event without decoding it: enough to decide whether a page or a viewer is concerned at all.

A store writes the envelope first and in one order (`protocol/events`), so the beginning of a text tells everything but the payload.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from bubble.protocol.jsontext import load_json
from bubble.protocol.parts import ReactionPart

__all__ = ["NATIVE", "Glance", "glance", "reaction_target", "starters", "talkers"]

#: In the text of every event with a native part, which is what a reaction is.
NATIVE: Final = b'"version":"bubble-v1"'

_BEGINNING = re.compile(
    rb'\{"seq":(\d+),"createdAt":"[^"]*","type":"([a-z_]+)"'  # seq, type
    rb'(?:,"principalId":"[^"]*","runId":("(?:[^"\\]|\\.)*+"))?'  # run
)
_REACTION = b"reaction"


class Glance(NamedTuple):
    """An event's place and run (None: it belongs to no run), and what it may do to messages.

    `talks`: it may show something of its run. A run's beginning and end, and reactions in it, show nothing by themselves.
    """

    seq: int
    run_id: str | None
    starts: bool
    finishes: bool
    talks: bool


def glance(text: bytes) -> Glance:
    """The beginning of a stored event."""
    found = _BEGINNING.match(text)
    if found is None:
        raise ValueError("not the text of a stored event")
    seq, kind, run = found.groups()
    if run is None:
        return Glance(int(seq), None, starts=False, finishes=False, talks=False)
    starts, finishes = kind == b"run_started", kind == b"run_finished"
    talks = not (starts or finishes) and (kind != b"message_part" or reaction_target(text) is None)
    return Glance(int(seq), _string(run), starts, finishes, talks)


@lru_cache(maxsize=1024)
def _string(text: bytes) -> str:
    return str(json.loads(text))


def reaction_target(text: bytes) -> int | None:
    """The seq that the event reacts to; None if it is no reaction."""
    if NATIVE not in text or (_REACTION not in text and b"\\u" not in text):
        return None
    event = load_json(text)
    try:
        return msgspec.convert(event["part"], ReactionPart).target_seq  # type: ignore[index, call-overload]
    except (msgspec.ValidationError, ValueError, LookupError, TypeError):
        return None


def starters(glances: Iterable[Glance]) -> set[str]:
    """The runs that start among the events."""
    return {seen.run_id for seen in glances if seen.starts and seen.run_id is not None}


def talkers(glances: Iterable[Glance]) -> set[str]:
    """The runs of which the events may show something."""
    return {seen.run_id for seen in glances if seen.talks and seen.run_id is not None}
