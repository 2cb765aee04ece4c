"""Server-sent events: what the encoder writes, and that the decoder finds the same events however the bytes are cut."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubble.protocol.sse import KEEP_ALIVE, SseDecoder, SseEvent, SseOverflow, encode_sse


def decoded(*chunks: bytes) -> list[SseEvent]:
    decoder = SseDecoder()
    return [event for chunk in chunks for event in decoder.feed(chunk)]


# --- the encoder ------------------------------------------------------------------------------------------------------------------


def test_an_event_is_its_name_then_its_id_then_one_line_of_data() -> None:
    assert encode_sse("message", {"a": 1, "b": "x"}, id="7") == b'event: message\nid: 7\ndata: {"a":1,"b":"x"}\n\n'


def test_an_event_without_an_id_has_no_id_line() -> None:
    assert encode_sse("stream.closed", {}) == b"event: stream.closed\ndata: {}\n\n"


@pytest.mark.parametrize(
    "text", ["line\nline", "\r\n", "\u2028\u2029", "\x85", "\ud83d", "é 😀", "data: x\n\nevent: y"]
)
def test_no_text_breaks_out_of_its_line(text: str) -> None:
    encoded = encode_sse("message", {"text": text})
    assert encoded.isascii()
    assert encoded.count(b"\n") == 3
    [event] = decoded(encoded)
    assert json.loads(event.data) == {"text": text}


@pytest.mark.parametrize("name", ["", "Message", "1a", "a b", "a\nb", "a" * 62, "é"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="cannot name"):
        encode_sse(name, {})


@pytest.mark.parametrize("bad", ["a\rb", "a\nb", "a\0b", "x" * 2_049])
def test_an_id_that_cannot_be_one_is_refused(bad: str) -> None:
    with pytest.raises(ValueError, match="an id has"):
        encode_sse("message", {}, id=bad)


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        encode_sse("message", float("nan"))


# --- the decoder, after the standard ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: one\n\n", [SseEvent("message", "one")]),
        (b"data: one\ndata: two\n\n", [SseEvent("message", "one\ntwo")]),
        (b"data\n\n", [SseEvent("message", "")]),
        (b"data:\ndata:\n\n", [SseEvent("message", "\n")]),
        (b"data:one\n\ndata:  two\n\n", [SseEvent("message", "one"), SseEvent("message", " two")]),
        (b"event: tick\ndata: 1\n\ndata: 2\n\n", [SseEvent("tick", "1"), SseEvent("message", "2")]),
        (b"event: tick\n\ndata: 2\n\n", [SseEvent("message", "2")]),
        (b"id: 1\ndata: a\n\ndata: b\n\n", [SseEvent("message", "a", "1"), SseEvent("message", "b", "1")]),
        (b"id: 1\ndata: a\n\nid\ndata: b\n\n", [SseEvent("message", "a", "1"), SseEvent("message", "b", "")]),
        (b"id: 1\0\ndata: a\n\n", [SseEvent("message", "a", "")]),
        (b": comment\n\n: another\ndata: a\n\n", [SseEvent("message", "a")]),
        (b"unknown: x\nDATA: y\n\n", []),
        (b"data: half", []),
        (b"data: whole\n\ndata: half\n", [SseEvent("message", "whole")]),
        (b"data: a\rdata: b\r\r", [SseEvent("message", "a\nb")]),
        (b"data: a\r\ndata: b\r\n\r\n", [SseEvent("message", "a\nb")]),
        (b"data: a\n\rdata: b\r\n\n", [SseEvent("message", "a"), SseEvent("message", "b")]),
        (b"\xef\xbb\xbfdata: a\n\n", [SseEvent("message", "a")]),
        (b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n", []),
        ("data: a\u2028b\x85c\n\n".encode(), [SseEvent("message", "a\u2028b\x85c")]),
        (b"data: \xff\xe2\x82\n\n", [SseEvent("message", "\ufffd\ufffd")]),
    ],
)
def test_a_stream_means_what_the_standard_says(stream: bytes, expected: list[SseEvent]) -> None:
    assert decoded(stream) == expected
    assert decoded(*(stream[index : index + 1] for index in range(len(stream)))) == expected


def test_a_keep_alive_is_no_event_even_after_an_id_was_seen() -> None:
    assert decoded(b"id: 5\ndata: a\n\n", KEEP_ALIVE, KEEP_ALIVE) == [SseEvent("message", "a", "5")]


def test_the_id_to_resume_from_is_that_of_the_last_finished_block() -> None:
    decoder = SseDecoder()
    decoder.feed(b"id: 1\ndata: a\n\nid: 2\n")
    assert decoder.last_event_id == "1"
    decoder.feed(b"\n")
    assert decoder.last_event_id == "2"


@pytest.mark.parametrize(
    ("line", "expected"), [(b"2500", 2500), (b"2.5", None), (b"-1", None), (b"", None), ("٣".encode(), None)]
)
def test_the_stream_may_ask_for_a_reconnection_time(line: bytes, expected: int | None) -> None:
    decoder = SseDecoder()
    decoder.feed(b"retry: " + line + b"\n")
    assert decoder.retry_ms == expected


@pytest.mark.parametrize("chunk", [b"data: " + b"x" * 101, b"data: " + b"x" * 60 + b"\n"])
def test_an_event_without_an_end_is_not_held_without_a_bound(chunk: bytes) -> None:
    decoder = SseDecoder(max_bytes=100)
    with pytest.raises(SseOverflow):
        decoder.feed(chunk * 3)


def test_events_below_the_bound_may_go_on_for_ever() -> None:
    decoder = SseDecoder(max_bytes=100)
    for _ in range(100):
        assert decoder.feed(b"data: " + b"x" * 60 + b"\n\n") == [SseEvent("message", "x" * 60)]


@pytest.mark.parametrize(
    ("fits", "too_long"),
    [
        (b"data: 4567890\n\n", b"data: 45678901\n\n"),
        (b"data: 45\ndata:\n\n", b"data: 45\ndata: \n\n"),
        (b": 34567890123\n", b": 345678901234\n"),
        (b"data:6\n: 34567\n\n", b"data:6\n: 345678\n\n"),
        (b"event: 890123\ndata: 4567890\n\n", b"event: 8901234\n"),
        (b"\xef\xbb\xbfdata: 4567890\n\n", b"\xef\xbb\xbfdata: 45678901\n\n"),
    ],
)
def test_the_bound_is_of_the_data_and_the_line_after_it_and_the_same_for_every_cut(
    fits: bytes, too_long: bytes
) -> None:
    for stream, is_held in ((fits, True), (too_long, False)):
        found = {outcome(stream, range(0, len(stream), size)) for size in range(1, len(stream) + 1)}
        assert len(found) == 1
        assert found.pop()[1] is is_held


def outcome(stream: bytes, cuts: Iterable[int]) -> tuple[tuple[SseEvent, ...], bool]:
    """The events of a stream that is cut there, and whether all of it could be held."""
    bounds = sorted({0, *cuts, len(stream)})
    decoder, events = SseDecoder(max_bytes=13), list[SseEvent]()
    try:
        for first, last in pairwise(bounds):
            events.extend(decoder.decode(stream[first:last]))
    except SseOverflow:
        return tuple(events), False
    return tuple(events), True


# --- any chunking -----------------------------------------------------------------------------------------------------------------

_LINES = st.lists(
    st.sampled_from(
        ["data: a", "data", "data:b:c", "id: 7", "id", "event: tick", ": c", "", "", "retry: 1", "zzz", "data: é😀"]
    ),
    max_size=20,
)
_ENDS = st.sampled_from(["\n", "\r", "\r\n"])


@given(
    _LINES.flatmap(lambda lines: st.tuples(st.just(lines), st.lists(_ENDS, min_size=len(lines), max_size=len(lines)))),
    st.data(),
)
def test_the_events_are_the_same_however_the_bytes_are_cut(
    drawn: tuple[list[str], list[str]], data: st.DataObject
) -> None:
    lines, ends = drawn
    stream = "".join(line + end for line, end in zip(lines, ends, strict=True)).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    pieces = [stream[first:last] for first, last in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert decoded(*pieces) == decoded(stream)


@given(
    st.lists(
        st.sampled_from(["data: 456789", "data: 4567890", "data: 45678901", "data", ": 4", "id: 1", "", ""]),
        max_size=12,
    ),
    _ENDS,
    st.data(),
)
def test_at_the_bound_the_bytes_alone_decide_which_events_come_and_whether_it_is_passed(
    lines: list[str], end: str, data: st.DataObject
) -> None:
    stream = "".join(line + end for line in lines).encode()
    whole = outcome(stream, [])
    assert outcome(stream, data.draw(st.lists(st.integers(0, len(stream)), max_size=8))) == whole
    assert outcome(stream, range(len(stream))) == whole


@given(
    st.lists(
        st.tuples(
            st.from_regex(r"[a-z][a-z0-9._-]{0,60}", fullmatch=True),
            st.dictionaries(st.text(max_size=5), st.text(max_size=10), max_size=3),
            st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"]), max_size=20),
        ),
        max_size=5,
    ),
    st.integers(1, 40),
)
def test_what_was_encoded_is_decoded(events: list[tuple[str, dict[str, str], str]], size: int) -> None:
    stream = b"".join(encode_sse(name, dict(data), id=id) for name, data, id in events)
    found = decoded(*(stream[index : index + size] for index in range(0, len(stream), size)))
    assert [(event.event, json.loads(event.data), event.id) for event in found] == events
