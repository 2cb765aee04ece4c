"""One recorded frame, the exact event, the exact bytes: all types of the catalogue."""

from __future__ import annotations

import json

import msgspec
import pytest

from bubble.protocol.sse import SseDecoder
from bubble.watch import RecordedSource, WatchDecoder, bot_events_sse, encode_event, watch_bot
from bubble.watch.sse import CLOSED, encode_error
from tests.watch.catalogue import BOT, CATALOGUE, SESSION, Line, rows, said

TYPES = {
    "connected",
    "heartbeat",
    "message",
    "entry",
    "entry.unavailable",
    "message.deleted",
    "reset",
    "resync-required",
    "turn.failed",
    "bot.state.changed",
    "bot.updated",
    "agent.state",
    "computer.actions",
    "box.state",
    "page.title.changed",
}
WITHOUT_ID = TYPES - {"message", "entry", "entry.unavailable", "message.deleted", "reset"}


@pytest.mark.requirement("WA-01")
def test_the_catalogue_has_the_fifteen_types_of_the_iterator() -> None:
    assert {line.type for line in CATALOGUE} == TYPES


@pytest.mark.requirement(
    "WA-01", "WA-02", "WA-03", "WA-04", "WA-05", "WA-06", "WA-07", "WA-08", "WA-09", "WA-10", "WA-11", "WA-12", "WA-13"
)
@pytest.mark.requirement("WA-14", "WA-15", "WA-16", "WA-19", "WA-20", "WA-21", "WA-26", "WA-27", "WA-66")
@pytest.mark.parametrize("line", CATALOGUE, ids=lambda line: line.type)
def test_a_recorded_frame_is_one_event_to_the_byte(line: Line) -> None:
    [event] = WatchDecoder(bot_id=BOT, session_id=SESSION).decode(line.frame)
    assert (event.type, event.id) == (line.type, line.id)
    assert msgspec.to_builtins(event.data) == json.loads(line.data)
    assert encode_event(event) == line.record


@pytest.mark.requirement("WA-24")
def test_what_has_no_place_in_the_transcript_has_no_id() -> None:
    assert {line.type for line in CATALOGUE if line.id is None} == WITHOUT_ID
    for line in CATALOGUE:
        assert (b"\nid: " in line.record) == (line.type not in WITHOUT_ID)


@pytest.mark.requirement("WA-17", "WA-18", "WA-24", "WA-33")
def test_the_two_types_that_only_a_stream_has_carry_no_id() -> None:
    assert CLOSED == b"event: stream.closed\ndata: {}\n\n"
    assert encode_error("stalled") == b'event: error\ndata: {"code":"stalled"}\n\n'


@pytest.mark.anyio
@pytest.mark.requirement("WA-01", "WA-17")
async def test_the_stream_is_the_events_of_the_iterator_one_after_the_other_and_its_end() -> None:
    source = RecordedSource([line.frame for line in CATALOGUE])
    events = [event async for event in watch_bot(source, bot_id=BOT, session_id=SESSION)]
    stream = bot_events_sse(watch_bot(source, bot_id=BOT, session_id=SESSION))
    pieces = [piece async for piece in stream]
    assert pieces == [*(line.record for line in CATALOGUE), CLOSED]
    decoded = SseDecoder().feed(b"".join(pieces))
    assert [(event.event, json.loads(event.data)) for event in decoded[:-1]] == [
        (event.type, msgspec.to_builtins(event.data)) for event in events
    ]


@pytest.mark.requirement("WA-12")
def test_a_roster_change_without_the_agent_is_null() -> None:
    frame = {"rosterChanged": {"kind": "REMOVED", "agentId": BOT, "changedAtMs": 9}}
    [event] = WatchDecoder(bot_id=BOT, session_id=SESSION).decode(frame)
    assert b'"bot":null' in encode_event(event)


@pytest.mark.requirement("WA-16")
def test_a_document_has_its_own_member() -> None:
    frame = {"pageTitleChanged": {"storeId": "st", "documentId": "d", "title": "T"}}
    [event] = WatchDecoder(bot_id=BOT, session_id=SESSION).decode(frame)
    assert encode_event(event) == (
        b"event: page.title.changed\n"
        b'data: {"storeId":"st","documentId":"d","title":"T","changedAtMs":"0","contentChanged":false}\n\n'
    )


@pytest.mark.requirement("WA-21")
@pytest.mark.parametrize("replay", [True, False])
def test_replay_is_what_the_source_said_of_the_batch(replay: bool) -> None:  # noqa: FBT001
    [event] = WatchDecoder(bot_id=BOT, session_id=SESSION).decode(rows(said(1), replay=replay))
    assert event.type == "message"
    assert event.data.replay is replay
