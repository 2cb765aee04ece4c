"""The nine shapes: what each takes, what it refuses, and how the envelope is written."""

from __future__ import annotations

import json

import msgspec
import pytest

from bubble.protocol.errors import InvalidRequest
from bubble.protocol.events import (
    APPENDABLE_TYPES,
    EVENT_TYPES,
    SERVER_EMITTED_TYPES,
    EncodedEvent,
    MessagePart,
    ParticipantJoined,
    RunFinished,
    RunStarted,
    ThreadTitleUpdated,
    ToolCallApproval,
    check_event,
    decode_event,
    encode_event,
    encoded,
    raw,
)
from bubble.protocol.jsontext import JSONValue
from tests.protocol.shapes import SHAPES, part_event, wire

OPTIONAL = {
    "run_started": {"kind", "snapshotSeq"},
    "run_finished": {"outcome"},
    "tool_call_approval": {"reason"},
}
REQUIRED = [
    (kind, member)
    for kind, event in SHAPES.items()
    for member in event
    if member != "type" and member not in OPTIONAL.get(kind, set())
]
IDS = [(kind, member) for kind, member in REQUIRED if member.endswith("Id")]
WRONG: dict[str, JSONValue] = {
    "principalId": 7,
    "byPrincipalId": None,
    "runId": ["run-001"],
    "toolCallId": {},
    "kind": "chat",
    "snapshotSeq": "17",
    "outcome": "fine",
    "version": "ai-sdk-v7",
    "approved": "yes",
    "reason": 1,
    "title": None,
}


def without(kind: str, member: str) -> bytes:
    return wire({name: value for name, value in SHAPES[kind].items() if name != member})


def changed(kind: str, /, **members: JSONValue) -> bytes:
    return wire({**SHAPES[kind], **members})


@pytest.mark.requirement("EV-09", "PR-1-01")
def test_the_union_has_the_nine_members_and_no_other() -> None:
    assert set(SHAPES) == set(EVENT_TYPES)
    assert set(EVENT_TYPES) == set(APPENDABLE_TYPES) | SERVER_EMITTED_TYPES
    assert len(EVENT_TYPES) == 9


@pytest.mark.requirement("EV-10", "EV-14", "EV-17", "EV-20", "EV-25", "EV-29", "EV-37", "PR-1-01", "PR-1-42", "PR-1-05")
@pytest.mark.parametrize("kind", SHAPES)
def test_every_shape_is_taken_and_written_member_by_member(kind: str) -> None:
    decoded = decode_event(wire(SHAPES[kind]))
    assert json.loads(decoded.text) == SHAPES[kind]
    assert decoded.event.__struct_config__.tag == kind


@pytest.mark.requirement("EV-14", "EV-15", "EV-16", "EV-26", "PR-1-42")
@pytest.mark.parametrize(
    ("kind", "member"), [(kind, member) for kind, names in OPTIONAL.items() for member in sorted(names)]
)
def test_an_optional_member_may_be_left_out_and_is_then_not_written(kind: str, member: str) -> None:
    decoded = decode_event(without(kind, member))
    assert member not in json.loads(decoded.text)


@pytest.mark.requirement("EV-10", "EV-29", "PR-3-13")
@pytest.mark.parametrize(("kind", "member"), REQUIRED)
def test_a_missing_member_is_named(kind: str, member: str) -> None:
    with pytest.raises(InvalidRequest, match=member):
        decode_event(without(kind, member))


@pytest.mark.requirement("PR-3-04", "PR-3-13", "EV-14", "PR-1-07", "PR-1-42")
@pytest.mark.parametrize(
    ("kind", "member"), [(kind, member) for kind, event in SHAPES.items() for member in event if member in WRONG]
)
def test_a_member_of_the_wrong_type_is_named_by_its_path(kind: str, member: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        decode_event(changed(kind, **{member: WRONG[member]}), path="$.events[3]")
    assert f"`$.events[3].{member}`" in caught.value.message


@pytest.mark.requirement("PR-2-01", "PR-2-03", "PR-3-13")
@pytest.mark.parametrize(("kind", "member"), IDS)
@pytest.mark.parametrize("name", ["", "a\u0007b", "x" * 257])
def test_an_id_that_is_none_is_named_by_its_path(kind: str, member: str, name: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        decode_event(changed(kind, **{member: name}), path="$.event")
    assert f"`$.event.{member}`" in caught.value.message


@pytest.mark.requirement("PR-2-04")
def test_a_run_id_with_a_tilde_is_refused_and_a_tool_call_id_with_one_is_not() -> None:
    with pytest.raises(InvalidRequest, match=r"\$\.runId"):
        decode_event(changed("run_started", runId="run~1"))
    decode_event(changed("tool_call_result", toolCallId="call~1"))


@pytest.mark.requirement("EV-09")
@pytest.mark.parametrize("kind", ["run_paused", "", "RUN_STARTED", 7, None])
def test_a_shape_outside_of_the_union_is_refused(kind: JSONValue) -> None:
    with pytest.raises(InvalidRequest, match=r"\$\.type"):
        decode_event(wire({**SHAPES["run_started"], "type": kind}))


@pytest.mark.requirement("EV-09", "PR-3-04")
@pytest.mark.parametrize("text", [b"", b"null", b"[]", b'"run_started"', b"7", b"{}", b"{", b"{}{}", b"\xef\xbb\xbf{}"])
def test_what_is_no_event_object_is_refused(text: bytes) -> None:
    with pytest.raises(InvalidRequest):
        decode_event(text)


@pytest.mark.requirement("EV-14", "EV-16")
@pytest.mark.parametrize("seq", [0, 1, 2**53 - 1])
def test_a_snapshot_may_be_any_seq_and_the_empty_thread(seq: int) -> None:
    decode_event(changed("run_started", snapshotSeq=seq))


@pytest.mark.parametrize("seq", [b"-1", b"9007199254740992", b"1.5", b"1e3", b"true", b'"1"', b"null"])
def test_a_snapshot_that_is_no_seq_is_refused(seq: bytes) -> None:
    text = wire(SHAPES["run_started"]).replace(b"17", seq)
    with pytest.raises(InvalidRequest, match="snapshotSeq"):
        decode_event(text)


@pytest.mark.requirement("EV-27", "PR-1-29")
def test_an_approval_with_a_reason_is_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"\$\.reason"):
        decode_event(changed("tool_call_approval", approved=True))


@pytest.mark.requirement("EV-27")
@pytest.mark.parametrize("reason", ["", None])
def test_an_approval_with_an_empty_reason_is_refused_as_well(reason: JSONValue) -> None:
    with pytest.raises(InvalidRequest, match=r"\$\.reason"):
        decode_event(changed("tool_call_approval", approved=True, reason=reason))


@pytest.mark.requirement("EV-25", "EV-26")
def test_an_approval_and_a_rejection_without_a_reason_are_taken() -> None:
    for approved in (True, False):
        event = {**SHAPES["tool_call_approval"], "approved": approved}
        del event["reason"]
        assert json.loads(decode_event(wire(event)).text) == event


@pytest.mark.requirement("PR-1-09")
@pytest.mark.parametrize("kind", SHAPES)
def test_an_unknown_member_is_refused_and_named(kind: str) -> None:
    with pytest.raises(InvalidRequest, match="mood"):
        decode_event(changed(kind, mood="good"))


@pytest.mark.requirement("PR-1-11")
@pytest.mark.parametrize("member", ["seq", "createdAt"])
def test_seq_and_created_at_are_not_the_producers_to_give(member: str) -> None:
    with pytest.raises(InvalidRequest, match=member):
        decode_event(changed("message_part", **{member: 1}))


@pytest.mark.requirement("PR-1-10")
@pytest.mark.parametrize("kind", SHAPES)
def test_each_member_given_twice_is_refused_and_named(kind: str) -> None:
    for member, value in SHAPES[kind].items():
        again = b',"%s":%s}' % (member.encode(), json.dumps(value).encode())
        with pytest.raises(InvalidRequest, match=member):
            decode_event(wire(SHAPES[kind])[:-1] + again)


@pytest.mark.requirement("PR-1-10")
@pytest.mark.parametrize(
    "text",
    [
        # the second runId is spelt with an escape
        rb'{"type":"run_finished","principalId":"a","runId":"r","run\u0049d":"r"}',
        # a colon is saved by an escape in a value, so that the number of colons is what it would be without the double
        rb'{"type":"run_finished","principalId":"a","runId":"r\u003ar","runId":"r\u003ar"}',
        rb'{"type":"tool_call_approval","principalId":"a","runId":"r","runId":"r","toolCallId":"c","approved":true}',
        # the type itself
        rb'{"type":"run_finished","principalId":"a","runId":"r","\u0074ype":"run_finished"}',
        # a payload, small in the one and large in the other
        rb'{"type":"message_part","principalId":"a","runId":"r","version":"ai-sdk-v6","part":{},"part":{"type":"x"}}',
        rb'{"type":"message_part","principalId":"a","runId":"r","version":"ai-sdk-v6","part":"\ud83d","part":{"type":"x"}}',
        # white space where the double would be too short to see
        rb'{ "type" : "run_finished" , "principalId" : "a" , "runId" : "r" , "runId" : "" }',
    ],
)
def test_no_spelling_hides_a_member_given_twice(text: bytes) -> None:
    with pytest.raises(InvalidRequest, match="twice"):
        decode_event(text)


@pytest.mark.requirement("PR-1-08")
def test_white_space_escapes_and_order_of_the_envelope_are_the_servers() -> None:
    text = b'\n{ "runId":"r" , "principalId" : "\\u0061nn",\t"type":"run_started"\r\n}\n'
    assert decode_event(text).text == b'{"type":"run_started","principalId":"ann","runId":"r"}'


@pytest.mark.requirement("PR-1-12")
@pytest.mark.parametrize("bad", [b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xe2\x82"])
def test_bytes_that_are_no_utf8_are_refused_wherever_they_stand(bad: bytes) -> None:
    for text in (
        part_event(b'{"type":"x","delta":"' + bad + b'"}'),
        wire(SHAPES["run_started"]).replace(b"run-001", bad),
        wire(SHAPES["tool_call_result"]).replace(b"customer", bad),
    ):
        with pytest.raises(InvalidRequest, match="UTF-8"):
            decode_event(text)


@pytest.mark.requirement("PR-1-13")
@pytest.mark.parametrize(
    "word",
    [
        *(b"NaN", b"Infinity", b"-Infinity", b"undefined", b"True", b"nul", b"'x'", b"01", b"+1", b".5", b"1.", b"1e"),
        *(
            b"-",
            b"0x1",
            b"1_0",
            b"[1,]",
            b"[,1]",
            b'{"a":1,}',
            b'{"a"}',
            b"{1:2}",
            b'"\x01"',
            b'"\n"',
            b'"\\x"',
            b'"\\u12"',
        ),
        *(b"/**/1", b"[}", b'"', b"1 1"),
    ],
)
def test_what_json_does_not_know_is_refused_wherever_it_stands(word: bytes) -> None:
    result = wire(SHAPES["tool_call_result"])
    for text in (
        part_event(b'{"type":"x","n":%s}' % word),
        part_event(b'{"type":"x","n":[[%s]]}' % word),
        result.replace(b"null", word),
        wire(SHAPES["run_started"]).replace(b"17", word),
    ):
        with pytest.raises(InvalidRequest):
            decode_event(text)


@pytest.mark.requirement("PR-1-14")
@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_512_levels_are_taken_and_one_more_is_not(opening: bytes, closing: bytes) -> None:
    def nested(levels: int) -> bytes:
        return wire(SHAPES["tool_call_result"]).replace(b"null", opening * levels + b"1" + closing * levels)

    decode_event(nested(511))  # the event itself is the first level
    with pytest.raises(InvalidRequest, match="nested deeper than 512"):
        decode_event(nested(512))
    with pytest.raises(InvalidRequest, match="nested deeper than 512"):
        decode_event(nested(100_000))


@pytest.mark.requirement("PR-1-14")
def test_brackets_within_strings_and_side_by_side_do_not_count_as_levels() -> None:
    many = json.dumps({"type": "x", "text": "[{" * 2000, "list": [[]] * 2000, 'q"[': '\\"[' * 600}).encode()
    assert decode_event(part_event(many)).text == part_event(many)


@pytest.mark.requirement("PR-1-05", "PR-1-06")
@pytest.mark.parametrize(("version", "name", "other"), [("ai-sdk-v6", "type", "kind"), ("bubble-v1", "kind", "type")])
def test_the_part_must_be_an_object_with_its_versions_discriminator(version: str, name: str, other: str) -> None:
    decode_event(part_event(b'{"%s":"x"}' % name.encode(), version=version))
    for part in (
        *(b"null", b"[]", b"1", b'"x"', b"{}", b'{"%s":"x"}' % other.encode()),
        *(b'{"%s":%s}' % (name.encode(), value) for value in (b"1", b"null", b'["x"]', b"{}")),
        *(b'{"%s":"x","%s":1}' % (name.encode(), name.encode()), b'[{"%s":"x"}]' % name.encode()),
        b'{"\\ud83d":1,"%s":7}' % name.encode(),
    ):
        with pytest.raises(InvalidRequest) as caught:
            decode_event(part_event(part, version=version), path="$.e")
        assert "`$.e.part`" in caught.value.message
        assert f"string `{name}`" in caught.value.message


@pytest.mark.requirement("PR-1-07")
@pytest.mark.parametrize("version", ["", "ai-sdk-v5", "bubble-v2", "AI-SDK-V6"])
def test_another_version_is_refused(version: str) -> None:
    with pytest.raises(InvalidRequest, match=r"\$\.version"):
        decode_event(part_event(b'{"type":"x","kind":"x"}', version=version))


@pytest.mark.requirement("PR-1-17", "PR-1-21")
@pytest.mark.parametrize(
    ("part", "version"),
    [(b'{"type":"not-yet-invented","x":[1]}', "ai-sdk-v6"), (b'{"kind":"not-yet-invented"}', "bubble-v1")],
)
def test_a_part_newer_than_this_code_is_taken(part: bytes, version: str) -> None:
    assert decode_event(part_event(part, version=version)).text == part_event(part, version=version)


@pytest.mark.requirement("EV-21")
def test_the_version_of_the_part_changes_nothing_in_the_envelope() -> None:
    part = b'{"type":"x","kind":"x"}'
    one, other = (decode_event(part_event(part, version=version)).text for version in ("ai-sdk-v6", "bubble-v1"))
    assert one.replace(b"ai-sdk-v6", b"bubble-v1") == other


def test_an_empty_or_long_title_is_a_title() -> None:
    for title in ("", "x" * 10_000, "\u0000\ud7ff\U0010ffff"):
        event = decode_event(wire({**SHAPES["thread_title_updated"], "title": title})).event
        assert isinstance(event, ThreadTitleUpdated)
        assert event.title == title


@pytest.mark.parametrize("kind", ["run_started", "tool_call_approval", "thread_title_updated"])
def test_a_lone_surrogate_outside_of_a_payload_is_refused(kind: str) -> None:
    member = {"run_started": "runId", "tool_call_approval": "reason", "thread_title_updated": "title"}[kind]
    value = json.dumps(SHAPES[kind][member]).encode()
    with pytest.raises(InvalidRequest, match="lone surrogate"):
        decode_event(wire(SHAPES[kind]).replace(value, b'"\\udc00"'))


# --- from Python ------------------------------------------------------------------------------------------------------------------


def test_a_struct_a_mapping_and_an_encoded_event_are_the_same_event() -> None:
    struct = MessagePart(principal_id="bot", run_id="r", part=raw({"type": "x"}), version="ai-sdk-v6")
    mapping = {
        "type": "message_part",
        "principalId": "bot",
        "runId": "r",
        "part": {"type": "x"},
        "version": "ai-sdk-v6",
    }
    texts = {encoded(struct).text, encoded(mapping).text, encoded(encoded(mapping)).text, encode_event(struct)}
    assert texts == {part_event(b'{"type":"x"}')}


@pytest.mark.parametrize(
    "event",
    [
        RunStarted(principal_id="", run_id="r"),
        RunFinished(principal_id="a", run_id="r~"),
        ToolCallApproval(principal_id="a", run_id="r", tool_call_id="", approved=True),
        ToolCallApproval(principal_id="a", run_id="r", tool_call_id="c", approved=True, reason="because"),
        MessagePart(principal_id="a", run_id="r", part=msgspec.Raw(b'{"type":1}'), version="ai-sdk-v6"),
        MessagePart(principal_id="a", run_id="r", part=msgspec.Raw(b"{"), version="ai-sdk-v6"),
        ThreadTitleUpdated(by_principal_id="a", title="\ud800"),
        {"type": "run_started", "principalId": "a", "runId": "r", "kind": float("nan")},
        {"type": "run_started", "principalId": "a", "runId": object()},
        {"type": "message_part", "principalId": "a", "runId": "r", "part": {1, 2}, "version": "ai-sdk-v6"},
    ],
)
def test_an_event_from_python_is_held_to_the_same_rules(event: RunStarted | dict[str, object]) -> None:
    with pytest.raises(InvalidRequest):
        encoded(event)


def test_an_event_that_is_checked_alone_names_the_path_it_was_given() -> None:
    with pytest.raises(InvalidRequest, match=r"`\$\.x\.byPrincipalId`"):
        check_event(ParticipantJoined(by_principal_id="?", principal_id="a"), path="$.x")


def test_what_is_encoded_is_what_was_decoded() -> None:
    decoded = decode_event(wire(SHAPES["tool_call_result"]))
    assert EncodedEvent(decoded.event, encode_event(decoded.event)) == decoded
