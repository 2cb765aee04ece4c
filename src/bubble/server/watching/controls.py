"""What a bot says about its own session with an `agent_event` of one of these names, which is not shown as an entry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from msgspec import UNSET

from bubble.protocol.events import MessagePart
from bubble.protocol.jsontext import JSONValue, load_json
from bubble.protocol.parts import AgentEventPart, decode_native_part
from bubble.watch import WatchError, decode_frame
from bubble.watch.frames import AgentStateChanged, BoxState, ComputerActions

__all__ = ["CONTROLS", "SESSION_CLEARED", "Control", "MessageDeleted", "SessionCleared", "Told", "read_control"]

SESSION_CLEARED: Final = "session_cleared"
_MESSAGE_DELETED: Final = "message_deleted"
_TELLING: Final = {
    "computer_actions": "computerActions",
    "box_state": "boxState",
    "state_changed": "agentStateChanged",
}
CONTROLS: Final = frozenset({SESSION_CLEARED, _MESSAGE_DELETED, *_TELLING})


@dataclass(frozen=True, slots=True)
class SessionCleared:
    """The session begins anew."""


@dataclass(frozen=True, slots=True)
class MessageDeleted:
    """The row with that id is gone."""

    entry_id: str


@dataclass(frozen=True, slots=True)
class Told:
    """A frame to be passed on."""

    frame: ComputerActions | BoxState | AgentStateChanged


Control = SessionCleared | MessageDeleted | Told


def read_control(event: MessagePart, *, at_ms: int) -> Control | None:
    """What the event of a bot says about its session; None if it says nothing, or not in the way it must be said."""
    part = decode_native_part(event.part) if event.version == "bubble-v1" else None
    if not isinstance(part, AgentEventPart) or part.name not in CONTROLS:
        return None
    if part.name == SESSION_CLEARED:
        return SessionCleared()
    data = {} if part.data is UNSET else load_json(bytes(part.data))
    if not isinstance(data, dict):
        return None
    if part.name == _MESSAGE_DELETED:
        entry_id = data.get("entryId")
        return MessageDeleted(entry_id) if isinstance(entry_id, str) and entry_id else None
    return _told(part.name, data, bot_id=event.principal_id, at_ms=at_ms)


def _told(name: str, data: dict[str, JSONValue], *, bot_id: str, at_ms: int) -> Told | None:
    """The frame that the data are the members of. A bot speaks for itself alone, and of now."""
    if name == "computer_actions":
        actions = data.get("actions")
        own = (
            [_own(each, bot_id, at_ms) for each in actions if isinstance(each, dict)]
            if isinstance(actions, list)
            else []
        )
        data = {"actions": own}
    elif name == "state_changed":
        data = {"changedAtMs": at_ms, **data, "agentId": bot_id}
    try:
        frame: Any = decode_frame({_TELLING[name]: data})
    except WatchError:
        return None
    return Told(frame)


def _own(action: dict[str, JSONValue], bot_id: str, at_ms: int) -> JSONValue:
    return {"atMs": at_ms, **action, "agentId": bot_id}
