"""The events of frames that have no place in the transcript: each is one event, or none where it is about somebody else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar

from msgspec import UNSET, UnsetType

from bubble.protocol.jsontext import JSONValue
from bubble.watch import events, frames
from bubble.watch.events import WatchEvent
from bubble.watch.wire import with_outer_numbers

__all__ = ["event_beside"]

T = TypeVar("T")

FrameBeside: TypeAlias = (
    frames.Connected
    | frames.Heartbeat
    | frames.TurnFailed
    | frames.AgentStateChanged
    | frames.RosterChanged
    | frames.AgentState
    | frames.ComputerActions
    | frames.BoxState
    | frames.PageTitleChanged
)


def event_beside(frame: FrameBeside, *, bot_id: str, session_id: str) -> WatchEvent | None:
    """What the frame says about this bot and session; None where it says nothing about them.

    The box and the titles belong to nobody in particular, so whoever gets those frames is meant.
    """
    return _MAKERS[type(frame)](frame, bot_id, session_id)


def _connected(frame: frames.Connected, _bot: str, _session: str) -> WatchEvent:
    data = events.ConnectedData(
        stream_id=frame.stream_id,
        server_time_ms=str(frame.server_time_ms),
        absolute_lifetime_ms=str(frame.absolute_lifetime_ms),
    )
    return events.ConnectedEvent(data=data)


def _heartbeat(frame: frames.Heartbeat, _bot: str, _session: str) -> WatchEvent:
    return events.HeartbeatEvent(data=events.HeartbeatData(server_time_ms=str(frame.server_time_ms)))


def _turn_failed(frame: frames.TurnFailed, bot_id: str, session_id: str) -> WatchEvent | None:
    if (frame.agent_id, frame.session_id) != (bot_id, session_id):
        return None
    data = events.TurnFailedData(
        bot_id=bot_id,
        session_id=session_id,
        turn_id=frame.turn_id,
        code=frame.code,
        summary=frame.summary,
        failed_at_ms=str(frame.failed_at_ms),
    )
    return events.TurnFailedEvent(data=data)


def _state_changed(frame: frames.AgentStateChanged, bot_id: str, _session: str) -> WatchEvent | None:
    if frame.agent_id != bot_id:
        return None
    data = events.BotStateChangedData(
        bot_id=bot_id, families=list(frame.families), changed_at_ms=str(frame.changed_at_ms)
    )
    return events.BotStateChangedEvent(data=data)


def _roster_changed(frame: frames.RosterChanged, bot_id: str, _session: str) -> WatchEvent | None:
    if frame.agent_id != bot_id:
        return None
    data = events.BotUpdatedData(
        bot_id=bot_id,
        kind=frame.kind,
        bot=None if frame.agent is None else with_outer_numbers(frame.agent),
        changed_fields=list(frame.changed_fields),
        changed_at_ms=str(frame.changed_at_ms),
    )
    return events.BotUpdatedEvent(data=data)


def _agent_state(frame: frames.AgentState, bot_id: str, session_id: str) -> WatchEvent | None:
    live = [row for row in _of_bot(frame.live, bot_id) if (row.get("sessionId") or "") == session_id]
    client = _of_bot(frame.client, bot_id)
    if not (frame.snapshot or live or client):
        return None
    data = events.AgentStateData(
        bot_id=bot_id, session_id=session_id, snapshot=frame.snapshot, live=live, client=client
    )
    return events.AgentStateEvent(data=data)


def _of_bot(rows: Sequence[frames.Object], bot_id: str) -> list[dict[str, JSONValue]]:
    return [with_outer_numbers(row) for row in rows if row.get("agentId") == bot_id]


def _computer_actions(frame: frames.ComputerActions, bot_id: str, _session: str) -> WatchEvent | None:
    actions = [_action(each) for each in frame.actions if each.agent_id == bot_id]
    if not actions:
        return None
    return events.ComputerActionsEvent(data=events.ComputerActionsData(bot_id=bot_id, actions=actions))


def _action(action: frames.ComputerAction) -> events.ComputerActionData:
    return events.ComputerActionData(
        agent_id=action.agent_id,
        type=action.type,
        x=action.x,
        y=action.y,
        button=action.button,
        count=action.count,
        at_ms=str(action.at_ms),
    )


def _box_state(frame: frames.BoxState, _bot: str, _session: str) -> WatchEvent:
    pins = frame.pins
    data = events.BoxStateData(
        snapshot=frame.snapshot,
        state=None if frame.state is None else with_outer_numbers(frame.state),
        image_tag=_or_unset(pins.image_tag or None),
        static_snapshot_path=_or_unset(pins.static_snapshot_path or None),
        image_git_sha=_or_unset(pins.image_git_sha or None),
        static_snapshot_matches_pin=_or_unset(pins.static_snapshot_matches_pin),
        static_snapshot_pin=_or_unset(pins.static_snapshot_pin or None),
    )
    return events.BoxStateEvent(data=data)


def _title_changed(frame: frames.PageTitleChanged, _bot: str, _session: str) -> WatchEvent:
    data = events.PageTitleChangedData(
        store_id=frame.store_id,
        canvas_id=_or_unset(frame.canvas_id or None),
        document_id=_or_unset(frame.document_id or None),
        title=frame.title,
        changed_at_ms=str(frame.changed_at_ms),
        content_changed=frame.content_changed,
    )
    return events.PageTitleChangedEvent(data=data)


def _or_unset(value: T | None) -> T | UnsetType:
    return UNSET if value is None else value


_MAKERS: Final[Mapping[type, Callable[[Any, str, str], WatchEvent | None]]] = {
    frames.Connected: _connected,
    frames.Heartbeat: _heartbeat,
    frames.TurnFailed: _turn_failed,
    frames.AgentStateChanged: _state_changed,
    frames.RosterChanged: _roster_changed,
    frames.AgentState: _agent_state,
    frames.ComputerActions: _computer_actions,
    frames.BoxState: _box_state,
    frames.PageTitleChanged: _title_changed,
}
