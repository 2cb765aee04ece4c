"""Watch frames: what a source tells, one thing at a time.

On a wire a frame is an object with one member (see `frame_json`); in a program it is one of the values here. Counters and times are
integers in here; they go out again as strings, with the events (see `events`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from bubble.protocol.jsontext import JSONValue
from bubble.watch.wire import Word

__all__ = [
    "AgentState",
    "AgentStateChanged",
    "BoxPins",
    "BoxState",
    "Cleared",
    "ComputerAction",
    "ComputerActions",
    "Connected",
    "CursorTooOld",
    "Delete",
    "Entry",
    "Heartbeat",
    "Object",
    "PageTitleChanged",
    "RosterChanged",
    "Rows",
    "TurnFailed",
    "WatchFrame",
]

#: A message that is passed on as it came.
Object: TypeAlias = Mapping[str, JSONValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class Connected:
    """The stream is open. Times in ms; `absolute_lifetime_ms` is how long it may live, 0 for no limit."""

    stream_id: str = ""
    server_time_ms: int = 0
    absolute_lifetime_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """A sign of life."""

    server_time_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One row of a transcript, as of its last change. `body` is JSON text; None where it was left out, for which the rest may say why."""

    seq: int
    updated_seq: int
    entry_kind: str = ""
    entry_id: str | None = None
    body: bytes | None = None
    blob_hash: str | None = None
    body_omitted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """A row that is gone."""

    seq: int
    updated_seq: int
    entry_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """A batch of a transcript. `replay`: it tells of what was there before the stream."""

    agent_id: str
    session_id: str = ""
    generation: int = 0
    replay: bool = False
    entries: Sequence[Entry] = ()
    deletes: Sequence[Delete] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleared:
    """The transcript began anew."""

    agent_id: str
    session_id: str = ""
    new_generation: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CursorTooOld:
    """The cursor cannot be resumed from."""

    agent_id: str
    session_id: str = ""
    generation: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFailed:
    """A turn of the bot failed."""

    agent_id: str
    session_id: str = ""
    turn_id: str = ""
    code: Word = 0
    summary: str = ""
    failed_at_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStateChanged:
    """Something of the bot changed that is read elsewhere; `families` says what."""

    agent_id: str
    families: Sequence[Word] = ()
    changed_at_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RosterChanged:
    """The bot, as it is listed, changed. `agent` None: the frame did not say to what."""

    agent_id: str
    kind: Word = 0
    agent: Object | None = None
    changed_fields: Sequence[str] = ()
    changed_at_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentState:
    """What agents are doing (`live`, per session) and who has them open (`client`). `snapshot`: this is all of it."""

    snapshot: bool = False
    live: Sequence[Object] = ()
    client: Sequence[Object] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputerAction:
    """Something that an agent did on its computer."""

    agent_id: str
    type: Word = 0
    x: int | float = 0
    y: int | float = 0
    button: Word = 0
    count: int = 0
    at_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputerActions:
    """Actions, of any agents."""

    actions: Sequence[ComputerAction] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxPins:
    """Which image the box runs; None for what was not told."""

    image_tag: str | None = None
    static_snapshot_path: str | None = None
    image_git_sha: str | None = None
    static_snapshot_matches_pin: bool | None = None
    static_snapshot_pin: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxState:
    """The account's box. It names no agent."""

    snapshot: bool = False
    state: Object | None = None
    pins: BoxPins = BoxPins()


@dataclass(frozen=True, slots=True, kw_only=True)
class PageTitleChanged:
    """A canvas or a document has another title. It names no agent."""

    store_id: str = ""
    canvas_id: str | None = None
    document_id: str | None = None
    title: str = ""
    changed_at_ms: int = 0
    content_changed: bool = False


WatchFrame: TypeAlias = (
    Connected
    | Heartbeat
    | Rows
    | Cleared
    | CursorTooOld
    | TurnFailed
    | AgentStateChanged
    | RosterChanged
    | AgentState
    | ComputerActions
    | BoxState
    | PageTitleChanged
)
