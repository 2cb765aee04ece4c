"""What a decoder makes of frames: whose they are, in which order, and what is new."""

from __future__ import annotations

import base64
import json
from typing import Any

import msgspec
import pytest

from bubble.watch import WatchCursor, WatchDecoder, WatchError, parse_frame
from bubble.watch.events import EntryEvent, MessageEvent, UnavailableEntryEvent, WatchEvent
from bubble.watch.frames import Heartbeat
from tests.watch.catalogue import BOT, SESSION, body, cursor_text, rows, said, spoken

Json = dict[str, Any]


def resumed(after: int, *, generation: int = 0) -> WatchDecoder:
    cursor = WatchCursor(bot_id=BOT, session_id=SESSION, generation=generation, after_updated_seq=after)
    return WatchDecoder(bot_id=BOT, session_id=SESSION, cursor=cursor)


def fresh() -> WatchDecoder:
    return WatchDecoder(bot_id=BOT, session_id=SESSION)


def told(decoder: WatchDecoder, *frames: Json) -> list[tuple[str, str]]:
    """Type, and the row it is about."""
    return [(event.type, getattr(event.data, "entry_id", "")) for frame in frames for event in decoder.decode(frame)]


def gone(updated: int) -> Json:
    return {"seq": str(updated), "updatedSeq": str(updated), "entryId": f"e{updated}"}


def entry(value: object, **fields: object) -> WatchEvent:
    [event] = fresh().decode(rows({"seq": "7", "updatedSeq": "9", "body": body(value), **fields}))
    return event


# --- order ----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("WA-34", "WA-68")
def test_rows_are_applied_in_the_order_of_their_counters_as_integers() -> None:
    batch = rows(said(10), said(9), said(9007199254740993), said(100), deletes=[gone(99), gone(9007199254740992)])
    assert told(fresh(), batch) == [
        ("message", "e9"),
        ("message", "e10"),
        ("message.deleted", "e99"),
        ("message", "e100"),
        ("message.deleted", "e9007199254740992"),
        ("message", "e9007199254740993"),
    ]


@pytest.mark.requirement("WA-20", "WA-68")
@pytest.mark.parametrize("counter", [9007199254740993, 18446744073709551615])
def test_a_counter_of_64_bits_survives(counter: int) -> None:
    [event] = fresh().decode(rows(said(counter)))
    assert isinstance(event, MessageEvent)
    assert (event.data.seq, event.data.updated_seq) == (str(counter), str(counter))
    assert WatchCursor.decode(event.id).after_updated_seq == counter


@pytest.mark.requirement("WA-35")
def test_what_is_at_or_behind_the_cursor_was_applied_before() -> None:
    assert told(resumed(22), rows(said(21), said(22), said(23), deletes=[gone(20)])) == [("message", "e23")]


@pytest.mark.requirement("WA-35", "WA-36")
def test_a_repeated_batch_brings_nothing_twice() -> None:
    decoder, batch = fresh(), rows(said(1), said(2))
    assert told(decoder, batch, batch, rows(said(2), said(3))) == [
        ("message", "e1"),
        ("message", "e2"),
        ("message", "e3"),
    ]


@pytest.mark.requirement("WA-58")
def test_of_two_rows_with_the_same_counter_the_entry_comes_first_and_the_other_is_behind_it() -> None:
    decoder = fresh()
    assert told(decoder, rows(said(5), {**said(5), "entryId": "second"}, deletes=[gone(5)])) == [("message", "e5")]
    assert told(fresh(), rows(deletes=[gone(5)])) == [("message.deleted", "e5")]


@pytest.mark.requirement("WA-36", "WA-58")
def test_every_row_that_is_applied_moves_the_cursor() -> None:
    batch = rows(said(1), {"seq": 2, "updatedSeq": 2, "bodyOmitted": True}, deletes=[gone(3)])
    decoder = fresh()
    events = decoder.decode(batch)
    assert [event.id for event in events] == [cursor_text(1), cursor_text(2), cursor_text(3)]
    assert decoder.cursor == WatchCursor.decode(cursor_text(3))


# --- generations ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("WA-53")
@pytest.mark.parametrize("generation", [0, 5])
def test_a_fresh_watch_takes_the_first_generation_silently(generation: int) -> None:
    assert fresh().cursor is None
    decoder = fresh()
    assert told(decoder, rows(generation=generation)) == []
    assert decoder.cursor == WatchCursor.decode(cursor_text(0, generation=generation))
    assert told(decoder, rows(said(1), generation=generation)) == [("message", "e1")]


@pytest.mark.requirement("WA-08", "WA-37", "WA-53")
@pytest.mark.parametrize(("held", "told_of"), [(4, 5), (4, 3), (4, 0), (0, 1)])
@pytest.mark.parametrize("is_resumed", [True, False])
def test_any_other_generation_resets_before_its_own_rows(held: int, told_of: int, is_resumed: bool) -> None:  # noqa: FBT001
    decoder = resumed(100, generation=held) if is_resumed else fresh()
    if not is_resumed:
        decoder.decode(rows(said(100), generation=held))
    reset, first, second = decoder.decode(rows(said(2), said(1), generation=told_of))
    assert reset.type == "reset"
    assert reset.data.generation == told_of
    assert reset.id == cursor_text(0, generation=told_of)
    assert (first.id, second.id) == (cursor_text(1, generation=told_of), cursor_text(2, generation=told_of))


@pytest.mark.requirement("WA-37", "WA-53")
def test_a_batch_without_rows_tells_of_a_new_generation_too() -> None:
    assert told(resumed(100), rows(generation=1)) == [("reset", "")]


@pytest.mark.requirement("WA-08", "WA-54")
@pytest.mark.parametrize("generation", [0, 1, 9])
def test_a_cleared_session_is_a_reset_with_the_counter_at_0(generation: int) -> None:
    decoder = resumed(100)
    [reset] = decoder.decode({"cleared": {"agentId": BOT, "sessionId": SESSION, "newGeneration": generation}})
    assert (reset.type, reset.id) == ("reset", cursor_text(0, generation=generation))
    assert told(decoder, rows(said(1), generation=generation)) == [("message", "e1")]


@pytest.mark.requirement("WA-09", "WA-55")
def test_nothing_comes_after_resync_required() -> None:
    decoder = resumed(100)
    stale = {"cursorTooOld": {"agentId": BOT, "sessionId": SESSION, "generation": 2}}
    assert told(decoder, stale, rows(said(200)), {"heartbeat": {}}, stale) == [("resync-required", "")]
    assert decoder.is_over
    assert decoder.cursor == WatchCursor.decode(cursor_text(100))


# --- what an entry is -----------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("WA-04", "WA-22", "WA-56")
@pytest.mark.parametrize("text", ["hello", "", "é\ud83d\u2028"])
def test_a_text_message_that_was_sent_is_a_message_with_its_whole_text(text: str) -> None:
    event = entry(spoken(text))
    assert isinstance(event, MessageEvent)
    assert (event.data.text, event.data.operation) == (text, "upsert")


@pytest.mark.requirement("WA-05", "WA-22", "WA-56")
@pytest.mark.parametrize(
    "value",
    [
        {"kind": "message", "role": "user", "content": "hi"},
        {"kind": "message", "message": {"type": "text", "content": "hi"}},
        {"kind": "send-message", "message": {"type": "image", "content": "hi"}},
        {"kind": "send-message", "message": {"type": "text", "content": 1}},
        {"kind": "send-message", "message": {"type": "text"}},
        {"kind": "send-message", "message": "hi"},
        {"kind": "send-message"},
        {"type": "send-message", "message": {"type": "text", "content": "hi"}},
        [1],
        "text",
        7,
        None,
        True,
    ],
    ids=str,
)
def test_every_other_body_is_an_entry(value: object) -> None:
    event = entry(value, entryKind="k")
    assert isinstance(event, EntryEvent)
    assert (event.data.entry, event.data.entry_kind) == (value, "k")


@pytest.mark.requirement("WA-06", "WA-56")
@pytest.mark.parametrize("text", [b"", b"{", b"\xff", b'"\xed\xa0\x80"', b"NaN", b"[" * 100_000, b"\xef\xbb\xbf{}"])
def test_a_body_that_cannot_be_read_is_unavailable(text: bytes) -> None:
    [event] = fresh().decode(rows({"seq": 7, "updatedSeq": 9, "body": base64.b64encode(text).decode()}))
    assert isinstance(event, UnavailableEntryEvent)
    assert event.data.body_omitted is False
    assert event.id == cursor_text(9)


@pytest.mark.requirement("WA-56")
def test_a_body_that_is_there_wins_over_the_word_that_it_was_left_out() -> None:
    assert entry(spoken("here"), bodyOmitted=True, blobHash="abc").type == "message"


@pytest.mark.requirement("WA-05")
def test_numbers_of_a_body_are_kept_as_far_as_json_can_say_them() -> None:
    [event] = fresh().decode(
        rows({"seq": 1, "updatedSeq": 1, "body": base64.b64encode(b"[9007199254740993,1e400,-1e400,1.5]").decode()})
    )
    assert isinstance(event, EntryEvent)
    assert event.data.entry == [9007199254740993, None, None, 1.5]


@pytest.mark.requirement("WA-05")
def test_a_body_is_read_as_a_page_would_read_it() -> None:
    text = b'{"a":1,"a":2,"b":%s,"atMs":5}' % (b"9" * 5_000)
    [event] = fresh().decode(rows({"seq": 1, "updatedSeq": 1, "body": base64.b64encode(text).decode()}))
    assert isinstance(event, EntryEvent)
    assert event.data.entry == {"a": 2, "b": None, "atMs": 5}


@pytest.mark.requirement("WA-57")
@pytest.mark.parametrize(
    ("fields", "value", "expected"),
    [
        ({"entryId": "own"}, {"id": "inner"}, "own"),
        ({}, {"id": "inner"}, "inner"),
        ({"entryId": ""}, {"id": "inner"}, "inner"),
        ({}, {"id": ""}, "7"),
        ({}, {"id": 3}, "7"),
        ({}, ["id"], "7"),
        ({}, {**spoken("hi"), "id": "inner"}, "inner"),
    ],
)
def test_an_entry_without_an_id_has_that_of_its_body_or_else_its_seq(
    fields: Json, value: object, expected: str
) -> None:
    event = entry(value, **fields)
    assert isinstance(event, EntryEvent | MessageEvent)
    assert event.data.entry_id == expected


@pytest.mark.requirement("WA-57")
def test_a_delete_without_an_id_has_its_seq() -> None:
    assert told(fresh(), rows(deletes=[{"seq": 7, "updatedSeq": 9}])) == [("message.deleted", "7")]


# --- whose it is ----------------------------------------------------------------------------------------------------------------------

OTHERS = [{"agentId": "other", "sessionId": SESSION}, {"agentId": BOT, "sessionId": "other"}, {"agentId": BOT}, {}]


@pytest.mark.requirement("WA-38", "WA-60")
@pytest.mark.parametrize("whose", OTHERS, ids=str)
@pytest.mark.parametrize("name", ["rows", "cleared", "cursorTooOld", "turnFailed"])
def test_frames_of_another_bot_or_session_are_passed_over(name: str, whose: Json) -> None:
    decoder = resumed(0)
    frame = {name: {**whose, "generation": 7, "newGeneration": 7, "entries": [said(1)]}}
    assert decoder.decode(frame) == []
    assert not decoder.is_over
    assert told(decoder, rows(said(1))) == [("message", "e1")]


@pytest.mark.requirement("WA-38")
def test_the_main_session_is_the_empty_one() -> None:
    decoder = WatchDecoder(bot_id=BOT)
    assert told(decoder, {"rows": {"agentId": BOT, "entries": [said(1)]}}, rows(said(2))) == [("message", "e1")]


@pytest.mark.requirement("WA-38", "WA-60")
@pytest.mark.parametrize("name", ["agentStateChanged", "rosterChanged"])
def test_changes_of_another_bot_are_passed_over(name: str) -> None:
    assert fresh().decode({name: {"agentId": "other"}}) == []
    assert len(fresh().decode({name: {"agentId": BOT}})) == 1


@pytest.mark.requirement("WA-13", "WA-39", "WA-59")
def test_rows_of_others_are_dropped_from_a_state() -> None:
    live = [{"agentId": BOT, "sessionId": SESSION, "n": 1}, *({**whose, "n": 2} for whose in OTHERS)]
    client = [{"agentId": BOT, "n": 3}, {"agentId": BOT, "sessionId": "other", "n": 4}, {"agentId": "other"}]
    [event] = fresh().decode({"agentState": {"live": live, "client": client}})
    assert event.type == "agent.state"
    assert [row["n"] for row in event.data.live] == [1]
    assert [row["n"] for row in event.data.client] == [3, 4]


@pytest.mark.requirement("WA-13", "WA-39", "WA-59")
def test_a_state_that_is_about_others_alone_is_told_only_as_a_snapshot() -> None:
    others = [{"agentId": "other", "sessionId": SESSION}]
    assert fresh().decode({"agentState": {"live": others}}) == []
    [event] = fresh().decode({"agentState": {"live": others, "snapshot": True}})
    assert event.type == "agent.state"
    assert event.data.live == []


@pytest.mark.requirement("WA-14", "WA-39", "WA-59")
def test_actions_of_others_are_dropped_and_none_at_all_are_no_event() -> None:
    actions = [{"agentId": BOT, "x": 1}, {"agentId": "other", "x": 2}]
    [event] = fresh().decode({"computerActions": {"actions": actions}})
    assert event.type == "computer.actions"
    assert [action.x for action in event.data.actions] == [1]
    assert fresh().decode({"computerActions": {"actions": actions[1:]}}) == []
    assert fresh().decode({"computerActions": {}}) == []


@pytest.mark.requirement("WA-15", "WA-16", "WA-40")
@pytest.mark.parametrize("name", ["boxState", "pageTitleChanged"])
def test_what_names_no_agent_is_for_whoever_gets_it(name: str) -> None:
    assert len(fresh().decode({name: {}})) == 1


@pytest.mark.requirement("WA-20")
def test_times_go_out_as_strings_however_deep_they_are() -> None:
    agent = {"id": BOT, "sessions": [{"lastActivityAtMs": 5, "name": 6}], "retryMs": None, "isMs": True}
    [event] = fresh().decode({"rosterChanged": {"agentId": BOT, "agent": agent}})
    assert event.type == "bot.updated"
    assert event.data.bot == {
        "id": BOT,
        "sessions": [{"lastActivityAtMs": "5", "name": 6}],
        "retryMs": None,
        "isMs": True,
    }


@pytest.mark.requirement("WA-20")
def test_counters_and_generations_in_what_is_passed_on_look_as_everywhere_outside() -> None:
    agent = {"id": BOT, "seq": 9007199254740993, "last": [{"updatedSeq": 5, "seqs": 6}], "generation": "7", "x": "7"}
    [event] = fresh().decode({"rosterChanged": {"agentId": BOT, "agent": agent}})
    assert event.type == "bot.updated"
    assert event.data.bot == {
        "id": BOT,
        "seq": "9007199254740993",
        "last": [{"updatedSeq": "5", "seqs": 6}],
        "generation": 7,
        "x": "7",
    }
    for other in ("new", "007", "-1", "9007199254740993", None, True, [1]):
        [event] = fresh().decode({"rosterChanged": {"agentId": BOT, "agent": {"generation": other}}})
        assert event.type == "bot.updated"
        assert event.data.bot == {"generation": other}


@pytest.mark.requirement("WA-20")
@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("1778070896789", "1778070896789"),
        ("18446744073709551615", "18446744073709551615"),
        ("5.0", "5"),
        ("1e3", "1000"),
        ("-7", "-7"),
        ("1.5", "1.5"),
        ("1e-7", "0.0000001"),
        ('"5"', "5"),
        ("1e400", None),
        ('[1,2.0,[3],"4",null]', ["1", "2", ["3"], "4", None]),
        ('{"n":1,"atMs":2}', {"n": 1, "atMs": "2"}),
    ],
)
@pytest.mark.parametrize(
    ("frame", "event_type"),
    [
        ('{"rosterChanged":{"agentId":"%s","agent":{"sinceMs":%s}}}', "bot.updated"),
        ('{"agentState":{"live":[{"agentId":"%s","sessionId":"%s","sinceMs":%s}]}}', "agent.state"),
        ('{"agentState":{"client":[{"agentId":"%s","sinceMs":%s}]}}', "agent.state"),
        ('{"boxState":{"state":{"agentId":"%s","sinceMs":%s}}}', "box.state"),
    ],
)
def test_every_time_in_what_is_passed_on_is_a_string_however_it_was_written(
    frame: str, event_type: str, written: str, told: object
) -> None:
    names = (BOT, SESSION)[: frame.count("%s") - 1]
    known = parse_frame((frame % (*names, written)).encode())
    assert known is not None
    [event] = fresh().decode(known)
    assert event.type == event_type
    data = json.loads(json.dumps(msgspec.to_builtins(event.data)))
    [passed] = [data["bot"]] if "bot" in data else data["live"] + data["client"] if "live" in data else [data["state"]]
    assert passed["sinceMs"] == told


@pytest.mark.requirement("WA-06", "WA-51")
def test_an_empty_hash_is_none() -> None:
    for fields in ({"blobHash": ""}, {"blobHash": None}, {}):
        [event] = fresh().decode(rows({"seq": 1, "updatedSeq": 1, "bodyOmitted": True, **fields}))
        assert event.type == "entry.unavailable"
        assert event.data.blob_hash is msgspec.UNSET


def test_a_frame_may_be_a_value_as_well() -> None:
    [event] = fresh().decode(Heartbeat(server_time_ms=3))
    assert event.type == "heartbeat"
    assert event.data.server_time_ms == "3"


@pytest.mark.requirement("WA-52")
def test_a_bad_frame_leaves_the_decoder_where_it_was() -> None:
    decoder = resumed(5)
    with pytest.raises(WatchError):
        decoder.decode(rows(said(6), {"seq": "x"}))
    assert told(decoder, rows(said(6))) == [("message", "e6")]
