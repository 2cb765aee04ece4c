"""Frames as JSON: an object with one member, as protobuf writes it (see `wire`).

A frame of a later version, whose member is not known here, says nothing; so does an empty one. What the known ones have in them is the
table at the end: the names on the wire, and what must be there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias, TypeVar

from bubble.watch.errors import WatchError
from bubble.watch.frames import (
    AgentState,
    AgentStateChanged,
    BoxPins,
    BoxState,
    Cleared,
    ComputerAction,
    ComputerActions,
    Connected,
    CursorTooOld,
    Delete,
    Entry,
    Heartbeat,
    Object,
    PageTitleChanged,
    RosterChanged,
    Rows,
    TurnFailed,
    WatchFrame,
)
from bubble.watch.wire import MAX_GENERATION, Fields, parse_json

__all__ = ["decode_frame", "parse_frame"]

T = TypeVar("T")

_UPPER: Final = re.compile("[A-Z]")

#: Takes the member of that name out of a message.
Taker: TypeAlias = Callable[[Fields, str], Any]


def parse_frame(text: bytes) -> WatchFrame | None:
    """The frame that a JSON text says; as `decode_frame`."""
    try:
        value = parse_json(text)
    except ValueError as error:
        raise WatchError("protocol_error", f"A frame is no JSON: {error}.") from None
    return decode_frame(value)


def decode_frame(value: object) -> WatchFrame | None:
    """The frame that JSON data says; None for one that says nothing this version knows.

    `WatchError` `protocol_error` for two things at once, and for a member that is not what it must be.
    """
    fields = Fields(value, "$")
    known = [name for name in _FRAMES if fields.given(name) is not None]
    if len(known) > 1:
        raise WatchError("protocol_error", f"A frame says {' and '.join(known)} at once.")
    return _FRAMES[known[0]](Fields(fields.given(known[0]), f"$.{known[0]}")) if known else None


def _reader(kind: Callable[..., T], /, **takers: Taker) -> Callable[[Fields], T]:
    """Reads a message: each of its members goes into the attribute that is called like it, with underscores."""
    members = [(_UPPER.sub(r"_\g<0>", name).lower(), name, take) for name, take in takers.items()]

    def read(fields: Fields) -> T:
        return kind(**{attribute: take(fields, name) for attribute, name, take in members})

    return read


def _each(read: Callable[[Fields], T]) -> Callable[[Fields, str], tuple[T, ...]]:
    return lambda fields, name: tuple(map(read, fields.messages(name)))


def _generation(fields: Fields, name: str) -> int:
    return fields.uint(name, most=MAX_GENERATION)


def _box_state(fields: Fields) -> BoxState:
    # Each pin stands in the state or beside it. The default in one place says nothing against what is in the other.
    state = fields.members("state")
    inside, beside = _PINS(Fields(state or {}, f"{fields.path}.state")), _PINS(fields)
    told = {name: value for name in BoxPins.__slots__ if (value := getattr(inside, name)) is not None}
    own = {name: value for name, value in told.items() if value or getattr(beside, name) is None}
    return BoxState(snapshot=fields.flag("snapshot"), state=state, pins=replace(beside, **own))


_text, _uint, _flag, _word = Fields.text, Fields.uint, Fields.flag, Fields.word
_maybe_text, _maybe_flag = Fields.optional_text, Fields.optional_flag
_objects: Final[Callable[[Fields, str], tuple[Object, ...]]] = _each(Fields.all)

_PINS: Final = _reader(
    BoxPins,
    imageTag=_maybe_text,
    staticSnapshotPath=_maybe_text,
    imageGitSha=_maybe_text,
    staticSnapshotMatchesPin=_maybe_flag,
    staticSnapshotPin=_maybe_text,
)
_ENTRY: Final = _reader(
    Entry,
    seq=_uint,
    updatedSeq=_uint,
    entryKind=_text,
    entryId=_maybe_text,
    body=Fields.blob,
    blobHash=_maybe_text,
    bodyOmitted=_flag,
)
_DELETE: Final = _reader(Delete, seq=_uint, updatedSeq=_uint, entryId=_maybe_text)
_ACTION: Final = _reader(
    ComputerAction,
    agentId=_text,
    type=_word,
    x=Fields.number,
    y=Fields.number,
    button=_word,
    count=_uint,
    atMs=_uint,
)

_FRAMES: Final[Mapping[str, Callable[[Fields], WatchFrame]]] = {
    "connected": _reader(Connected, streamId=_text, serverTimeMs=_uint, absoluteLifetimeMs=_uint),
    "heartbeat": _reader(Heartbeat, serverTimeMs=_uint),
    "rows": _reader(
        Rows,
        agentId=_text,
        sessionId=_text,
        generation=_generation,
        replay=_flag,
        entries=_each(_ENTRY),
        deletes=_each(_DELETE),
    ),
    "cleared": _reader(Cleared, agentId=_text, sessionId=_text, newGeneration=_generation),
    "cursorTooOld": _reader(CursorTooOld, agentId=_text, sessionId=_text, generation=_generation),
    "turnFailed": _reader(
        TurnFailed, agentId=_text, sessionId=_text, turnId=_text, code=_word, summary=_text, failedAtMs=_uint
    ),
    "agentStateChanged": _reader(AgentStateChanged, agentId=_text, families=Fields.words, changedAtMs=_uint),
    "rosterChanged": _reader(
        RosterChanged, agentId=_text, kind=_word, agent=Fields.members, changedFields=Fields.texts, changedAtMs=_uint
    ),
    "agentState": _reader(AgentState, snapshot=_flag, live=_objects, client=_objects),
    "computerActions": _reader(ComputerActions, actions=_each(_ACTION)),
    "boxState": _box_state,
    "pageTitleChanged": _reader(
        PageTitleChanged,
        storeId=_text,
        canvasId=_maybe_text,
        documentId=_maybe_text,
        title=_text,
        changedAtMs=_uint,
        contentChanged=_flag,
    ),
}
