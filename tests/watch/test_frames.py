"""Frames as protobuf writes them in JSON: what is taken, what is passed over, and what is refused."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest

from bubble.watch import WatchError, decode_frame, parse_frame
from bubble.watch.frames import AgentStateChanged, BoxPins, BoxState, Cleared, Connected, Entry, Heartbeat, Rows
from tests.watch.catalogue import CATALOGUE

BODY = bytes(range(256))


def entry_of(**fields: object) -> Entry:
    frame = decode_frame({"rows": {"agentId": "b", "entries": [fields]}})
    assert isinstance(frame, Rows)
    [entry] = frame.entries
    assert isinstance(entry, Entry)
    return entry


@pytest.mark.requirement("WA-51")
@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (22, 22),
        ("22", 22),
        (22.0, 22),
        (1e3, 1000),
        ("0", 0),
        (None, 0),
        ("9007199254740993", 9007199254740993),
        (9007199254740993, 9007199254740993),
        ("18446744073709551615", 18446744073709551615),
    ],
)
def test_a_counter_is_a_number_or_a_string(written: object, meant: int) -> None:
    assert entry_of(seq=written).seq == meant


@pytest.mark.requirement("WA-52")
@pytest.mark.parametrize(
    "written",
    [
        *(-1, "-1", "-0", 1.5, "1.5", "1e3", "", " 1", "01", "x", True, [], {}, "٢", 2**64, str(2**64)),
        *(2.0**53, 1e19, float("inf"), float("nan")),  # of a double this large nobody knows which integer was meant
    ],
)
def test_anything_else_is_no_counter(written: object) -> None:
    with pytest.raises(WatchError, match=r"\$\.rows\.entries\[0\]\.seq") as refused:
        entry_of(seq=written)
    assert refused.value.code == "protocol_error"


@pytest.mark.requirement("WA-51")
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
@pytest.mark.parametrize("length", range(253, 257))
def test_bytes_are_base64_of_either_alphabet_with_or_without_padding(
    encode: Callable[[bytes], bytes], length: int
) -> None:
    text = encode(BODY[:length]).decode()
    assert entry_of(body=text).body == entry_of(body=text.rstrip("=")).body == BODY[:length]


@pytest.mark.requirement("WA-52")
@pytest.mark.parametrize(
    "written",
    [
        *("a", "a b=", "é", 1, [], "ab===", "a=bc", "=", "ab=", "abc==", "abcd=", "abcd====", "ab\n"),
        *("ab", "abd"),  # the last letter says more than the bytes
        "+/-_",
    ],
)
def test_anything_else_is_no_body(written: object) -> None:
    with pytest.raises(WatchError, match=r"`\$\.rows\.entries\[0\]\.body`"):
        entry_of(body=written)


@pytest.mark.requirement("WA-51")
def test_what_is_left_out_has_its_default() -> None:
    assert decode_frame({"connected": {}}) == Connected(stream_id="", server_time_ms=0, absolute_lifetime_ms=0)
    assert entry_of() == Entry(
        seq=0, updated_seq=0, entry_kind="", entry_id=None, body=None, blob_hash=None, body_omitted=False
    )
    assert entry_of(body="").body is None
    assert decode_frame({"cleared": {"agentId": "b", "newGeneration": None}}) == Cleared(agent_id="b")


@pytest.mark.requirement("WA-51")
def test_an_enum_is_a_name_or_a_number() -> None:
    frame = decode_frame({"agentStateChanged": {"agentId": "b", "families": ["A", 2]}})
    assert frame == AgentStateChanged(agent_id="b", families=("A", 2))


@pytest.mark.requirement("WA-52")
@pytest.mark.parametrize(
    "frame", [{}, {"somethingNew": {"a": 1}}, {"rows": None}, {"rows": None, "somethingNew": [], "cleared": None}]
)
def test_a_frame_that_says_nothing_known_is_passed_over(frame: dict[str, object]) -> None:
    assert decode_frame(frame) is None


@pytest.mark.requirement("WA-52")
def test_unknown_members_are_passed_over() -> None:
    assert decode_frame({"heartbeat": {"serverTimeMs": 1, "mood": "good"}, "somethingNew": 1}) == Heartbeat(
        server_time_ms=1
    )


NUMBERS = {
    "1e400": "beyond a double",
    "-1e400": "beyond a double",
    "9" * 5_000: "more digits than an integer may have",
    "18446744073709551616": "2^64",
    "9007199254740993.0": "an integer that no double is",
    "1.00000000000000000001": "a fraction that no double is",
    "1e-400": "a fraction that no double is",
    "0.5": "a fraction",
    "-1": "negative",
}


@pytest.mark.requirement("WA-51", "WA-52")
@pytest.mark.parametrize("digits", NUMBERS, ids=NUMBERS.values())
@pytest.mark.parametrize(
    "frame",
    [
        '{"rows":{"agentId":"b","entries":[{"seq":1,"updatedSeq":%s}]}}',
        '{"rows":{"agentId":"b","generation":%s}}',
        '{"heartbeat":{"serverTimeMs":%s}}',
        '{"computerActions":{"actions":[{"count":%s}]}}',
    ],
)
def test_a_counter_on_the_wire_is_exactly_an_integer_in_its_range(frame: str, digits: str) -> None:
    assert parse_frame((frame % "1").encode()) == parse_frame((frame % "1.0").encode())
    with pytest.raises(WatchError, match=r"`\$\.[^`]*` must be an integer from 0 to ") as refused:
        parse_frame((frame % digits).encode())
    assert refused.value.code == "protocol_error"


@pytest.mark.requirement("WA-52")
@pytest.mark.parametrize("member", ["streamId", "agentId", "snapshot", "x", "kind", "body", "entries", "agent"])
@pytest.mark.parametrize("digits", ["1e400", "9" * 5_000])
def test_a_number_that_cannot_be_told_is_not_taken_for_a_member_that_is_not_there(member: str, digits: str) -> None:
    frame = {
        "streamId": '{"connected":{"streamId":%s}}',
        "agentId": '{"cleared":{"agentId":%s}}',
        "snapshot": '{"agentState":{"snapshot":%s}}',
        "x": '{"computerActions":{"actions":[{"x":%s}]}}',
        "kind": '{"rosterChanged":{"kind":%s}}',
        "body": '{"rows":{"entries":[{"body":%s}]}}',
        "entries": '{"rows":{"entries":%s}}',
        "agent": '{"rosterChanged":{"agent":%s}}',
    }[member]
    with pytest.raises(WatchError, match=rf"{member}` must be ") as refused:
        parse_frame((frame % digits).encode())
    assert refused.value.code == "protocol_error"


@pytest.mark.requirement("WA-52")
@pytest.mark.parametrize(
    "text",
    [
        '{"heartbeat":{},"heartbeat":{}}',
        '{"heartbeat":{"serverTimeMs":1,"serverTimeMs":1}}',
        '{"rows":{"entries":[{"seq":1,"updatedSeq":1,"seq":1}]}}',
        '{"rosterChanged":{"agent":{"id":"a","i\\u0064":"b"}}}',
        '{"somethingNew":{"a":1,"a":2}}',
    ],
)
def test_a_member_that_is_given_twice_is_against_the_protocol(text: str) -> None:
    with pytest.raises(WatchError, match="given twice") as refused:
        parse_frame(text.encode())
    assert refused.value.code == "protocol_error"


@pytest.mark.requirement("WA-52")
def test_two_things_at_once_are_against_the_protocol() -> None:
    with pytest.raises(WatchError, match="heartbeat and cleared at once") as refused:
        decode_frame({"heartbeat": {}, "cleared": {}})
    assert refused.value.code == "protocol_error"


@pytest.mark.requirement("WA-52")
@pytest.mark.parametrize(
    "text", [b"", b"x", b"[]", b"null", b"1", b'{"heartbeat":1}', b"\xff", b"[" * 600, b'{"a":NaN}']
)
def test_what_is_no_frame_is_against_the_protocol(text: bytes) -> None:
    with pytest.raises(WatchError) as refused:
        parse_frame(text)
    assert refused.value.code == "protocol_error"


MALFORMED: list[dict[str, Any]] = [
    {"connected": {"streamId": 1}},
    {"rows": {"agentId": 1}},
    {"rows": {"generation": 2**53}},
    {"rows": {"replay": "true"}},
    {"rows": {"entries": {}}},
    {"rows": {"entries": "ab"}},
    {"rows": {"entries": [1]}},
    {"rows": {"deletes": [None]}},
    {"rows": {"entries": [{"bodyOmitted": 1}]}},
    {"cleared": {"newGeneration": -1}},
    {"cursorTooOld": {"generation": "x"}},
    {"turnFailed": {"code": 1.5}},
    {"turnFailed": {"code": 2**31}},
    {"turnFailed": {"code": -(2**31) - 1}},
    {"agentStateChanged": {"families": [True]}},
    {"rosterChanged": {"agent": "x"}},
    {"rosterChanged": {"changedFields": [1]}},
    {"agentState": {"live": [1]}},
    {"agentState": {"snapshot": 1}},
    {"computerActions": {"actions": [{"x": "3"}]}},
    {"computerActions": {"actions": [{"y": float("nan")}]}},
    {"computerActions": {"actions": [{"y": float("inf")}]}},
    {"computerActions": {"actions": [{"y": 10**400}]}},
    {"boxState": {"state": []}},
    {"boxState": {"state": {"imageTag": 1}}},
    {"boxState": {"staticSnapshotMatchesPin": "no"}},
    {"pageTitleChanged": {"title": 1}},
]


@pytest.mark.requirement("WA-52")
@pytest.mark.parametrize("frame", MALFORMED, ids=str)
def test_a_known_member_must_be_what_it_says(frame: dict[str, Any]) -> None:
    [name] = frame
    with pytest.raises(WatchError, match=rf"`\$\.{name}") as refused:
        decode_frame(frame)
    assert refused.value.code == "protocol_error"


@pytest.mark.requirement("WA-15")
def test_the_pins_of_a_box_are_read_from_its_state_or_beside_it() -> None:
    pins = {"imageTag": "t", "staticSnapshotPath": "p", "imageGitSha": "g", "staticSnapshotPin": "n"}
    inside = decode_frame({"boxState": {"state": {**pins, "staticSnapshotMatchesPin": True}}})
    beside = decode_frame({"boxState": {**pins, "staticSnapshotMatchesPin": True}})
    assert inside is not None
    assert beside is not None
    assert inside.pins == beside.pins  # type: ignore[union-attr]
    assert inside.pins.static_snapshot_matches_pin is True  # type: ignore[union-attr]


@pytest.mark.requirement("WA-15", "WA-51")
def test_a_pin_that_is_empty_in_one_place_is_what_it_is_in_the_other() -> None:
    pins = {"imageTag": "t", "staticSnapshotPath": "p", "staticSnapshotMatchesPin": True}
    empty = {"imageTag": "", "staticSnapshotPath": None, "staticSnapshotMatchesPin": False}
    for frame in ({"state": {**empty}, **pins}, {"state": {**pins}, **empty}):
        box = decode_frame({"boxState": frame})
        assert isinstance(box, BoxState)
        assert box.pins == BoxPins(image_tag="t", static_snapshot_path="p", static_snapshot_matches_pin=True)
    box = decode_frame({"boxState": {"state": {"imageTag": ""}, "staticSnapshotMatchesPin": False}})
    assert isinstance(box, BoxState)
    assert box.pins == BoxPins(static_snapshot_matches_pin=False)


@pytest.mark.requirement("WA-51")
def test_every_frame_of_the_catalogue_is_known() -> None:
    assert all(decode_frame(line.frame) is not None for line in CATALOGUE)
