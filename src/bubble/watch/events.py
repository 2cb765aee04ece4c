"""The events of a watch (spec 3, "Event catalog"): one struct for each type, with `.type`, `.id` and `.data`.

What has no place in a transcript has no id. `data` is in the order in which it is written. 64-bit counters and times in ms are decimal
strings, because a page's numbers are doubles; a generation is a number. A member that is UNSET is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from bubble.protocol.jsontext import JSONValue
from bubble.watch.wire import Word

__all__ = [
    "AgentStateData",
    "AgentStateEvent",
    "BotStateChangedData",
    "BotStateChangedEvent",
    "BotUpdatedData",
    "BotUpdatedEvent",
    "BoxStateData",
    "BoxStateEvent",
    "ComputerActionData",
    "ComputerActionsData",
    "ComputerActionsEvent",
    "ConnectedData",
    "ConnectedEvent",
    "EntryData",
    "EntryEvent",
    "HeartbeatData",
    "HeartbeatEvent",
    "MessageData",
    "MessageDeletedData",
    "MessageDeletedEvent",
    "MessageEvent",
    "PageTitleChangedData",
    "PageTitleChangedEvent",
    "ResetData",
    "ResetEvent",
    "ResyncRequiredData",
    "ResyncRequiredEvent",
    "TurnFailedData",
    "TurnFailedEvent",
    "UnavailableEntryData",
    "UnavailableEntryEvent",
    "WatchEvent",
]


class _Data(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class _Row(_Data, frozen=True, kw_only=True):
    bot_id: str
    session_id: str
    generation: int
    seq: str
    updated_seq: str
    entry_id: str
    replay: bool


class ConnectedData(_Data, frozen=True, kw_only=True):
    """`absolute_lifetime_ms`: how long the stream may live, `"0"` without a limit."""

    stream_id: str
    server_time_ms: str
    absolute_lifetime_ms: str


class HeartbeatData(_Data, frozen=True, kw_only=True):
    """The upstream's time."""

    server_time_ms: str


class MessageData(_Row, frozen=True, kw_only=True):
    """`text` is the whole text, to be put in the place of what `entry_id` had before."""

    operation: Literal["upsert"] = "upsert"
    text: str


class EntryData(_Row, frozen=True, kw_only=True):
    """`entry` is the decoded body, whatever it is."""

    entry_kind: str
    entry: JSONValue


class UnavailableEntryData(_Row, frozen=True, kw_only=True):
    """A row whose body is not here; the last two say what is known of the reason."""

    entry_kind: str
    body_omitted: bool
    blob_hash: str | UnsetType = UNSET


class MessageDeletedData(_Row, frozen=True, kw_only=True):
    """`entry_id` is gone."""


class ResetData(_Data, frozen=True, kw_only=True):
    """`generation` is the new one."""

    bot_id: str
    session_id: str
    generation: int


class ResyncRequiredData(_Data, frozen=True, kw_only=True):
    """The cursor is of no use any more."""

    bot_id: str
    session_id: str
    generation: int


class TurnFailedData(_Data, frozen=True, kw_only=True):
    """`summary` is for people, `code` for programs."""

    bot_id: str
    session_id: str
    turn_id: str
    code: Word
    summary: str
    failed_at_ms: str


class BotStateChangedData(_Data, frozen=True, kw_only=True):
    """`families` names what changed."""

    bot_id: str
    families: Sequence[Word]
    changed_at_ms: str


class BotUpdatedData(_Data, frozen=True, kw_only=True):
    """`bot` is the bot as it is listed now, None where that was not told."""

    bot_id: str
    kind: Word
    bot: Mapping[str, JSONValue] | None
    changed_fields: Sequence[str]
    changed_at_ms: str


class AgentStateData(_Data, frozen=True, kw_only=True):
    """`snapshot`: what is not in here is not. `live` is about this bot in this session, `client` about this bot."""

    bot_id: str
    session_id: str
    snapshot: bool
    live: Sequence[Mapping[str, JSONValue]]
    client: Sequence[Mapping[str, JSONValue]]


class ComputerActionData(_Data, frozen=True, kw_only=True):
    """One action."""

    agent_id: str
    type: Word
    x: int | float
    y: int | float
    button: Word
    count: int
    at_ms: str


class ComputerActionsData(_Data, frozen=True, kw_only=True):
    """Actions of this bot, in their order."""

    bot_id: str
    actions: Sequence[ComputerActionData]


class BoxStateData(_Data, frozen=True, kw_only=True):
    """The box's state as it came, and beside it which image it runs."""

    snapshot: bool
    state: Mapping[str, JSONValue] | None
    image_tag: str | UnsetType = UNSET
    static_snapshot_path: str | UnsetType = UNSET
    image_git_sha: str | UnsetType = UNSET
    static_snapshot_matches_pin: bool | UnsetType = UNSET
    static_snapshot_pin: str | UnsetType = UNSET


class PageTitleChangedData(_Data, frozen=True, kw_only=True):
    """A canvas or a document of a store."""

    store_id: str
    canvas_id: str | UnsetType = UNSET
    document_id: str | UnsetType = UNSET
    title: str
    changed_at_ms: str
    content_changed: bool


class _Event(msgspec.Struct, frozen=True, kw_only=True):
    pass


class _Unplaced(_Event, frozen=True, kw_only=True):
    id: ClassVar[None] = None


class _Placed(_Event, frozen=True, kw_only=True):
    id: str  # the cursor of whoever has got the event


class ConnectedEvent(_Unplaced, frozen=True, kw_only=True):
    """The stream is open."""

    type: ClassVar[Literal["connected"]] = "connected"
    data: ConnectedData


class HeartbeatEvent(_Unplaced, frozen=True, kw_only=True):
    """A sign of life of the upstream."""

    type: ClassVar[Literal["heartbeat"]] = "heartbeat"
    data: HeartbeatData


class MessageEvent(_Placed, frozen=True, kw_only=True):
    """A text message is new or has grown."""

    type: ClassVar[Literal["message"]] = "message"
    data: MessageData


class EntryEvent(_Placed, frozen=True, kw_only=True):
    """Any other row is new or changed."""

    type: ClassVar[Literal["entry"]] = "entry"
    data: EntryData


class UnavailableEntryEvent(_Placed, frozen=True, kw_only=True):
    """A row is new or changed, and its body is missing or no JSON."""

    type: ClassVar[Literal["entry.unavailable"]] = "entry.unavailable"
    data: UnavailableEntryData


class MessageDeletedEvent(_Placed, frozen=True, kw_only=True):
    """A row is gone."""

    type: ClassVar[Literal["message.deleted"]] = "message.deleted"
    data: MessageDeletedData


class ResetEvent(_Placed, frozen=True, kw_only=True):
    """The transcript began anew: whatever there is of this session is to be dropped."""

    type: ClassVar[Literal["reset"]] = "reset"
    data: ResetData


class ResyncRequiredEvent(_Unplaced, frozen=True, kw_only=True):
    """The cursor cannot be resumed from: load history, then watch again. Nothing follows."""

    type: ClassVar[Literal["resync-required"]] = "resync-required"
    data: ResyncRequiredData


class TurnFailedEvent(_Unplaced, frozen=True, kw_only=True):
    """A turn of the bot failed."""

    type: ClassVar[Literal["turn.failed"]] = "turn.failed"
    data: TurnFailedData


class BotStateChangedEvent(_Unplaced, frozen=True, kw_only=True):
    """Something about the bot changed that is read elsewhere."""

    type: ClassVar[Literal["bot.state.changed"]] = "bot.state.changed"
    data: BotStateChangedData


class BotUpdatedEvent(_Unplaced, frozen=True, kw_only=True):
    """The bot is listed differently."""

    type: ClassVar[Literal["bot.updated"]] = "bot.updated"
    data: BotUpdatedData


class AgentStateEvent(_Unplaced, frozen=True, kw_only=True):
    """What the bot is doing."""

    type: ClassVar[Literal["agent.state"]] = "agent.state"
    data: AgentStateData


class ComputerActionsEvent(_Unplaced, frozen=True, kw_only=True):
    """What the bot did on its computer."""

    type: ClassVar[Literal["computer.actions"]] = "computer.actions"
    data: ComputerActionsData


class BoxStateEvent(_Unplaced, frozen=True, kw_only=True):
    """How the account's box is."""

    type: ClassVar[Literal["box.state"]] = "box.state"
    data: BoxStateData


class PageTitleChangedEvent(_Unplaced, frozen=True, kw_only=True):
    """A canvas or a document has another title."""

    type: ClassVar[Literal["page.title.changed"]] = "page.title.changed"
    data: PageTitleChangedData


WatchEvent: TypeAlias = (
    ConnectedEvent
    | HeartbeatEvent
    | MessageEvent
    | EntryEvent
    | UnavailableEntryEvent
    | MessageDeletedEvent
    | ResetEvent
    | ResyncRequiredEvent
    | TurnFailedEvent
    | BotStateChangedEvent
    | BotUpdatedEvent
    | AgentStateEvent
    | ComputerActionsEvent
    | BoxStateEvent
    | PageTitleChangedEvent
)
