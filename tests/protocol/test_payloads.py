"""Payloads belong to their producer: whatever JSON they are, they come back byte for byte."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bubble.protocol.errors import InvalidRequest
from bubble.protocol.events import SequencedEvent, decode_event, sequence
from bubble.protocol.jsontext import load_json
from tests.protocol.shapes import SHAPES, part_event, wire

MIB = 1024 * 1024

CHUNKS = [
    {"type": "start", "messageId": "m", "messageMetadata": {"model": "x"}},
    {"type": "start-step"},
    {"type": "text-start", "id": "t"},
    {"type": "text-delta", "id": "t", "delta": "Grüße, 世界 \U0001f600 \u2028 \u0000"},
    {"type": "text-end", "id": "t", "providerMetadata": {"p": {"k": None}}},
    {"type": "reasoning-start", "id": "r"},
    {"type": "reasoning-delta", "id": "r", "delta": "hm"},
    {"type": "reasoning-end", "id": "r"},
    {"type": "tool-input-start", "toolCallId": "c", "toolName": "search"},
    {"type": "tool-input-delta", "toolCallId": "c", "inputTextDelta": '{"q":'},
    {"type": "tool-input-available", "toolCallId": "c", "toolName": "search", "input": {"q": "x"}},
    {"type": "tool-input-error", "toolCallId": "c", "toolName": "search", "input": None, "errorText": "no"},
    {"type": "tool-approval-request", "approvalId": "a", "toolCallId": "c"},
    {"type": "tool-output-available", "toolCallId": "c", "output": [1.5, True]},
    {"type": "tool-output-error", "toolCallId": "c", "errorText": "no"},
    {"type": "source-url", "sourceId": "s", "url": "https://example.org/"},
    {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,iVBORw0KGgo="},
    {"type": "data-weather", "id": "w", "data": {"c": -0.5}, "transient": True},
    {"type": "message-metadata", "messageMetadata": {"tokens": 7}},
    {"type": "finish-step"},
    {"type": "error", "errorText": "overloaded"},
    {"type": "abort"},
    {"type": "finish"},
]


def result_event(value: bytes) -> bytes:
    return wire(SHAPES["tool_call_result"]).replace(b'{"customer":7}', value).replace(b"null", value)


def assert_lossless(text: bytes) -> None:
    """The event comes back byte for byte, from decoding and from the stored text."""
    decoded = decode_event(text)
    assert decoded.text == text
    kept = sequence(decoded.text, seq=1, created_at="2026-05-06T12:34:56.789Z")
    assert SequencedEvent.from_text(kept).text == kept
    assert SequencedEvent.from_stored(kept).event == decoded.event


@pytest.mark.requirement("EV-24")
@pytest.mark.parametrize("chunk", CHUNKS, ids=lambda chunk: chunk["type"])
def test_every_kind_of_chunk_comes_back(chunk: dict[str, object]) -> None:
    assert_lossless(part_event(json.dumps(chunk, ensure_ascii=False, separators=(",", ":")).encode()))


@pytest.mark.requirement("EV-30", "PR-1-15")
@pytest.mark.parametrize(
    "value",
    [
        *(b"null", b"true", b"false", b'""', b"[]", b"{}", b"0", b"-0", b"-0.0", b"0.10", b"1E5", b"1e+05", b"1e400"),
        *(b"-1e-400", b"123456789012345678901234567890", b"0.1000000000000000055511151231257827", b"9" * 5000),
        *(b'{"b":1,"a":2}', b'{"a":1,"a":2}', b'{"":{"":{}}}', b"[ 1 , 2\n]", b'{ "a" : [ ] }'),
        *(
            b'"\\u0000"',
            b'"\\/\\b\\f"',
            b'"/"',
            b'"\\u00e9"',
            '"é\u2028\u2029\x7f\ufeff\uffff"'.encode(),
            b'"\\uD83D\\uDE00"',
        ),
        *(b'"\\\\ud83d"', b'"\\\\\\\\u0041"', b'"a:b\\u003a\\"}"', b'"},{"', b'"\\\\"'),
    ],
    ids=lambda value: value[:40].decode(errors="replace"),
)
def test_a_value_that_others_would_change_comes_back_as_it_was(value: bytes) -> None:
    assert_lossless(result_event(value))
    assert_lossless(part_event(b'{"type":"x","v":%s}' % value))


@pytest.mark.requirement("PR-1-16")
@pytest.mark.parametrize(
    "value",
    [
        *(
            rb'"\ud83d"',
            rb'"\uD83D tail"',
            rb'"\ude00"',
            rb'"\ud83d\ud83d\ude00"',
            rb'"\ude00\ud83d"',
            rb'"\uDFFF\uDBFF"',
        ),
        *(
            rb'"\ud83d\n"',
            rb'"\ud83d\\ude00"',
            rb'"\\\ud83d"',
            rb'"\ud83d\u0041"',
            rb'{"\ud83d":"\ud83d"}',
            rb'["\ud83d","\ude00"]',
        ),
        *(rb'{"a":"\ud800","a":"\ud800"}', rb'{"a": "\ud800" , "b":{"c":["\udfff"]}}', rb'"\ud83d:\u003a"'),
    ],
    ids=repr,
)
def test_a_lone_surrogate_comes_back_wherever_it_stands_in_a_payload(value: bytes) -> None:
    assert_lossless(result_event(value))
    assert_lossless(part_event(b'{"type":"x","v":%s}' % value))
    assert_lossless(part_event(b'{"v":%s,"type":"x"}' % value))


@pytest.mark.requirement("PR-1-16")
def test_a_lone_surrogate_may_stand_in_the_discriminator_of_a_part() -> None:
    assert_lossless(part_event(rb'{"type":"\ud83d"}'))


@pytest.mark.requirement("PR-1-08", "PR-1-16")
def test_beside_a_lone_surrogate_the_envelope_is_still_the_servers() -> None:
    text = rb'{ "version":"ai-sdk-v6", "part" : {"type":"\ud83d"} ,"runId":"r","principalId":"\u0062ot","type":"message_part"}'
    assert decode_event(text).text == part_event(rb'{"type":"\ud83d"}')


@pytest.mark.requirement("PR-1-09", "PR-1-10", "PR-1-13")
@pytest.mark.parametrize(
    "text",
    [
        part_event(rb'{"type":"\ud83d"}').replace(b'"runId":"r"', b'"runId":"r","mood":1'),
        part_event(rb'{"type":"\ud83d"}').replace(b'"runId":"r"', b'"runId":"r","runId":"r"'),
        part_event(rb'{"type":"\ud83d"}').replace(b'"runId":"r"', rb'"runId":"\ud83d"'),
        part_event(rb'{"type":"\ud83d"}').replace(b'"runId"', rb'"run\ud83dId"'),
        part_event(rb'{"type":"\ud83d","n":NaN}'),
        part_event(rb'{"type":"\ud83d"'),
        part_event(rb'{"type":7,"v":"\ud83d"}'),
        part_event(rb'{"type":"x","v":"\ud83"}'),
        part_event(rb'{"type":"x","v":"\ud83g"}'),
    ],
    ids=repr,
)
def test_a_lone_surrogate_lets_nothing_else_through(text: bytes) -> None:
    with pytest.raises(InvalidRequest):
        decode_event(text)


@pytest.mark.requirement("PR-1-15")
@pytest.mark.parametrize("size", [MIB - 1, MIB, MIB + 1])
@pytest.mark.parametrize("fill", [b"x", b"[", b"\\n", "é".encode()])
def test_the_shape_itself_has_no_size(size: int, fill: bytes) -> None:
    room = size - len(part_event(b'{"type":"x","v":""}'))
    filled = fill * (room // len(fill)) + b"x" * (room % len(fill))
    text = part_event(b'{"type":"x","v":"%s"}' % filled)
    assert len(text) == size
    assert_lossless(text)


HALF = MIB // 2
HOSTILE = {
    "one string without an end": b'{"type":"x","v":["' + b"[" * 600 + rb"\"" * HALF,
    "quotes only": b'"' * MIB + b"[" * 600,
    "backslashes": b'{"type":"x","v":"' + b"[" * 600 + rb"\\" * HALF + b'"}',
    "opened and never closed": b"[" * MIB,
    "side by side": b'{"type":"x","v":[' + b"[]," * (MIB // 3) + b"[]]}",
    "side by side, beside a surrogate": rb'{"type":"\ud800","v":[' + b"[]," * (MIB // 3) + b"[]]}",
    "surrogates": b'{"type":"' + rb"\ud800" * (MIB // 6) + b'"}',
    "space, beside a surrogate": rb'{"type":"\ud800",' + b" " * MIB + b'"v":1}',
    "a number, beside a surrogate": rb'{"type":"\ud800","v":' + b"9" * MIB + b"}",
    "keys": b'{"type":"x"' + b"".join(b',"%d":1' % number for number in range(MIB // 12)) + b"}",
}


@pytest.mark.parametrize("part", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_megabyte_is_judged_in_one_pass(part: bytes) -> None:
    # More than one pass over half a million of anything would not end before the suite's time is over.
    text = part_event(part)
    try:
        json.loads(text.decode())
    except (ValueError, RecursionError) as error:
        is_json = "integer string conversion" in str(error)
    else:
        is_json = True
    if is_json:
        assert decode_event(text).text == text
    else:
        with pytest.raises(InvalidRequest):
            decode_event(text)


# --- any JSON whatever ------------------------------------------------------------------------------------------------------------

SPACES = st.sampled_from(["", "", "", " ", "\n", "\t\r "])
DIGITS = st.from_regex(r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,4})?", fullmatch=True)
CHARACTERS = st.one_of(
    st.characters(exclude_categories=["Cs"], exclude_characters='"\\', min_codepoint=0x20),
    st.sampled_from(['\\"', "\\\\", "\\/", "\\b", "\\f", "\\n", "\\r", "\\t", "[", "{", ":", ","]),
    st.integers(0, 0xFFFF).map(lambda unit: f"\\u{unit:04x}"),
    st.integers(0xD800, 0xDFFF).map(lambda unit: f"\\u{unit:04X}"),
)
STRINGS = st.lists(CHARACTERS, max_size=8).map(lambda pieces: '"' + "".join(pieces) + '"')


@st.composite
def lists(draw: st.DrawFn, items: st.SearchStrategy[str]) -> str:
    return "[" + draw(SPACES) + ",".join(draw(st.lists(items, max_size=4))) + draw(SPACES) + "]"


@st.composite
def objects(draw: st.DrawFn, items: st.SearchStrategy[str]) -> str:
    members = draw(st.lists(st.tuples(STRINGS, SPACES, items), max_size=4))
    return "{" + ",".join(f"{name}{space}:{space}{value}" for name, space, value in members) + "}"


JSON_TEXTS = st.recursive(
    st.one_of(st.sampled_from(["null", "true", "false"]), DIGITS, STRINGS),
    lambda items: st.one_of(lists(items), objects(items)),
    max_leaves=12,
)


@pytest.mark.requirement("PR-1-15", "PR-1-16", "EV-30")
@given(value=JSON_TEXTS)
@example(value='{"a":"\\ud800","part":{"part":1}}')
def test_any_json_text_comes_back_byte_for_byte(value: str) -> None:
    assert_lossless(result_event(value.encode()))
    assert_lossless(part_event(b'{"type":"x","v":%s}' % value.encode()))


@given(text=JSON_TEXTS, cut=st.integers(0, 200), put=st.binary(max_size=3))
def test_what_is_taken_is_json_by_another_readers_judgement(text: str, cut: int, put: bytes) -> None:
    damaged = text.encode()[:cut] + put + text.encode()[cut:]
    try:
        kept = decode_event(result_event(damaged)).text
    except InvalidRequest:
        return
    value = json.loads(kept, parse_constant=pytest.fail)
    assert set(value) == {"type", "principalId", "runId", "toolCallId", "input", "output"}
    assert len(re.findall(rb'"output":', kept)) >= 1


def test_the_value_of_a_payload_keeps_every_digit_and_every_surrogate() -> None:
    assert load_json(b"123456789012345678901234567890") == 123456789012345678901234567890
    assert load_json(rb'"\ud83d"') == "\ud83d"
    assert load_json(b"9" * 5000) == float("inf")
