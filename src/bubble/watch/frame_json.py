"""Frames as JSON: an object with one member, as protobuf writes it (see `wire`).

A frame of a later version, whose member is not known here, says nothing; so does an empty one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

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
    PageTitleChanged,
    RosterChanged,
    Rows,
    TurnFailed,
    WatchFrame,
)
from bubble.watch.wire import MAX_GENERATION, Fields, parse_json

__all__ = ["decode_frame", "parse_frame"]


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
    known = [name for name in _READERS if fields.given(name) is not None]
    if len(known) > 1:
        raise WatchError("protocol_error", f"A frame says {' and '.join(known)} at once.")
    return _READERS[known[0]](Fields(fields.given(known[0]), f"$.{known[0]}")) if known else None


def _connected(fields: Fields) -> Connected:
    return Connected(
        stream_id=fields.text("streamId"),
        server_time_ms=fields.uint("serverTimeMs"),
        absolute_lifetime_ms=fields.uint("absoluteLifetimeMs"),
    )


def _heartbeat(fields: Fields) -> Heartbeat:
    return Heartbeat(server_time_ms=fields.uint("serverTimeMs"))


def _rows(fields: Fields) -> Rows:
    return Rows(
        agent_id=fields.text("agentId"),
        session_id=fields.text("sessionId"),
        generation=fields.uint("generation", most=MAX_GENERATION),
        replay=fields.flag("replay"),
        entries=tuple(map(_entry, fields.messages("entries"))),
        deletes=tuple(map(_delete, fields.messages("deletes"))),
    )


def _entry(fields: Fields) -> Entry:
    return Entry(
        seq=fields.uint("seq"),
        updated_seq=fields.uint("updatedSeq"),
        entry_kind=fields.text("entryKind"),
        entry_id=fields.optional_text("entryId"),
        body=fields.blob("body"),
        blob_hash=fields.optional_text("blobHash"),
        body_omitted=fields.flag("bodyOmitted"),
    )


def _delete(fields: Fields) -> Delete:
    return Delete(
        seq=fields.uint("seq"), updated_seq=fields.uint("updatedSeq"), entry_id=fields.optional_text("entryId")
    )


def _cleared(fields: Fields) -> Cleared:
    return Cleared(
        agent_id=fields.text("agentId"),
        session_id=fields.text("sessionId"),
        new_generation=fields.uint("newGeneration", most=MAX_GENERATION),
    )


def _cursor_too_old(fields: Fields) -> CursorTooOld:
    return CursorTooOld(
        agent_id=fields.text("agentId"),
        session_id=fields.text("sessionId"),
        generation=fields.uint("generation", most=MAX_GENERATION),
    )


def _turn_failed(fields: Fields) -> TurnFailed:
    return TurnFailed(
        agent_id=fields.text("agentId"),
        session_id=fields.text("sessionId"),
        turn_id=fields.text("turnId"),
        code=fields.word("code"),
        summary=fields.text("summary"),
        failed_at_ms=fields.uint("failedAtMs"),
    )


def _agent_state_changed(fields: Fields) -> AgentStateChanged:
    return AgentStateChanged(
        agent_id=fields.text("agentId"),
        families=fields.words("families"),
        changed_at_ms=fields.uint("changedAtMs"),
    )


def _roster_changed(fields: Fields) -> RosterChanged:
    return RosterChanged(
        agent_id=fields.text("agentId"),
        kind=fields.word("kind"),
        agent=fields.members("agent"),
        changed_fields=fields.texts("changedFields"),
        changed_at_ms=fields.uint("changedAtMs"),
    )


def _agent_state(fields: Fields) -> AgentState:
    return AgentState(
        snapshot=fields.flag("snapshot"),
        live=tuple(each.all() for each in fields.messages("live")),
        client=tuple(each.all() for each in fields.messages("client")),
    )


def _computer_actions(fields: Fields) -> ComputerActions:
    return ComputerActions(actions=tuple(map(_computer_action, fields.messages("actions"))))


def _computer_action(fields: Fields) -> ComputerAction:
    return ComputerAction(
        agent_id=fields.text("agentId"),
        type=fields.word("type"),
        x=fields.number("x"),
        y=fields.number("y"),
        button=fields.word("button"),
        count=fields.uint("count"),
        at_ms=fields.uint("atMs"),
    )


def _box_state(fields: Fields) -> BoxState:
    state = fields.members("state")
    places = [Fields({} if state is None else state, f"{fields.path}.state"), fields]

    def text(name: str) -> str | None:
        return next((found for place in places if (found := place.optional_text(name)) is not None), None)

    def flag(name: str) -> bool | None:
        return next((found for place in places if (found := place.optional_flag(name)) is not None), None)

    pins = BoxPins(
        image_tag=text("imageTag"),
        static_snapshot_path=text("staticSnapshotPath"),
        image_git_sha=text("imageGitSha"),
        static_snapshot_matches_pin=flag("staticSnapshotMatchesPin"),
        static_snapshot_pin=text("staticSnapshotPin"),
    )
    return BoxState(snapshot=fields.flag("snapshot"), state=state, pins=pins)


def _page_title_changed(fields: Fields) -> PageTitleChanged:
    return PageTitleChanged(
        store_id=fields.text("storeId"),
        canvas_id=fields.optional_text("canvasId"),
        document_id=fields.optional_text("documentId"),
        title=fields.text("title"),
        changed_at_ms=fields.uint("changedAtMs"),
        content_changed=fields.flag("contentChanged"),
    )


_READERS: Final[Mapping[str, Callable[[Fields], WatchFrame]]] = {
    "connected": _connected,
    "heartbeat": _heartbeat,
    "rows": _rows,
    "cleared": _cleared,
    "cursorTooOld": _cursor_too_old,
    "turnFailed": _turn_failed,
    "agentStateChanged": _agent_state_changed,
    "rosterChanged": _roster_changed,
    "agentState": _agent_state,
    "computerActions": _computer_actions,
    "boxState": _box_state,
    "pageTitleChanged": _page_title_changed,
}
