"""Reading what a server sends, to the byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubble.client.wire import decode_events, decode_page, decode_resource, is_known, read_frame, stored_event
from bubble.protocol.errors import InternalError
from bubble.protocol.events import MessagePart, sequence
from bubble.protocol.frames import ErrorFrame, SubscriptionOpened, ThreadEvent
from bubble.protocol.jsontext import dump_json
from bubble.protocol.resources import Thread

WHEN = "2026-05-06T12:34:56.789Z"

PAYLOADS = [
    b'{"type":"text-delta","id":"1","delta":"\\ud83d"}',
    b'{"type":"data-x","n":[1e400,-0,123456789012345678901234567890],"z":1,"a":2}',
    b'{"type":"text-delta","id":"1","delta":"\\u0000 \\\\ud83d \\udE00"}',
    b'{ "type" : "text-delta",\n"id":"1",  "delta":"},{" }',
    '{"type":"text-delta","id":"1","delta":"ü \U0001f600"}'.encode(),
]


def stored(seq: int, payload: bytes) -> bytes:
    text = b'{"type":"message_part","principalId":"bot","runId":"r","part":%s,"version":"ai-sdk-v6"}' % payload
    return sequence(text, seq=seq, created_at=WHEN)


def test_a_page_keeps_every_byte_of_its_events() -> None:
    texts = [stored(seq, payload) for seq, payload in enumerate(PAYLOADS, start=1)]
    page = decode_page(b'{"events":[%s],"nextSeq":6}' % b",".join(texts))
    assert [bytes(event) for event in page.events] == texts
    assert page.next_seq == 6


def test_a_page_is_found_whatever_the_order_and_the_white_space() -> None:
    texts = [stored(seq, payload) for seq, payload in enumerate(PAYLOADS, start=1)]
    page = decode_page(b'{ "nextSeq": null , "events" : [ %s ] }' % b" ,\n ".join(texts))
    assert [bytes(event) for event in page.events] == texts
    assert page.next_seq is None


@given(
    st.lists(st.recursive(st.text() | st.integers() | st.none(), st.lists, max_leaves=5), max_size=5), st.integers(0, 4)
)
def test_any_payload_comes_out_of_a_batch_as_it_went_in(values: list[object], where: int) -> None:
    payloads = [dump_json({"type": "data-x", "value": value}) for value in values]
    payloads.insert(where, PAYLOADS[0])
    texts = [stored(seq, payload) for seq, payload in enumerate(payloads, start=1)]
    events = decode_events(b'{"events":[%s]}' % b",".join(texts))
    assert [event.text for event in events] == texts
    part = events[0].event
    assert isinstance(part, MessagePart)
    assert bytes(part.part) == payloads[0]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_an_event_frame_keeps_every_byte_of_its_event(payload: bytes) -> None:
    text = stored(7, payload)
    frame = read_frame(b'{"type":"thread.event","threadId":"t","event":%s}' % text)
    assert isinstance(frame, ThreadEvent)
    assert bytes(frame.event) == text
    event = stored_event(bytes(frame.event))
    assert (event.seq, event.created_at, event.text) == (7, WHEN, text)


def test_an_event_whose_envelope_stands_elsewhere_is_read_too() -> None:
    event = stored_event(
        b'{"type":"run_finished","principalId":"bot","createdAt":"%s","runId":"r","seq":3}' % WHEN.encode()
    )
    assert (event.seq, event.created_at, event.type) == (3, WHEN, "run_finished")


def test_other_frames_are_read_as_what_they_are() -> None:
    assert read_frame(b'{"type":"thread.subscription_opened","threadId":"t","throughSeq":4,"new":1}') == (
        SubscriptionOpened(thread_id="t", through_seq=4)
    )
    assert read_frame(b'{"type":"error","code":"conflict","message":"\\ud83d"}') == ErrorFrame(
        code="conflict", message=" "
    )


def test_a_frame_of_a_kind_that_is_newer_than_this_version_is_passed_over() -> None:
    assert read_frame(b'{"type":"thread.presence","threadId":"t"}') is None


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"{}", b'{"type":"error"}', b'{"type":"thread.event","threadId":"t"}', b"\xff"]
)
def test_a_broken_frame_is_an_error(text: bytes) -> None:
    with pytest.raises(InternalError):
        read_frame(text)


@pytest.mark.parametrize("text", [b"", b"<html>", b'{"events":1,"nextSeq":null}', b'{"events":["\\ud800"'])
def test_an_answer_that_is_no_page_is_an_error(text: bytes) -> None:
    with pytest.raises(InternalError):
        decode_page(text)


def test_a_resource_with_a_lone_surrogate_in_its_metadata_can_be_read() -> None:
    text = (
        b'{"threadId":"t","joinPolicy":"open","createdAt":"x","lastActivityAt":"x","headSeq":0,'
        b'"metadata":{"half":"\\ud83d"}}'
    )
    assert decode_resource(text, Thread).metadata == {"half": "\ud83d"}


def test_an_event_type_of_the_future_is_told_from_those_of_today() -> None:
    assert is_known(stored_event(stored(1, PAYLOADS[0])))
    assert not is_known(stored_event(sequence(b'{"type":"run_paused","runId":"r"}', seq=1, created_at=WHEN)))
