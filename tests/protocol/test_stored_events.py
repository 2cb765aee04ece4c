"""The envelope around a stored event, written and read (spec 1, "The Sequencing Envelope")."""

from __future__ import annotations

import json

import pytest

from bubble.protocol.errors import InvalidRequest
from bubble.protocol.events import RunFinished, SequencedEvent, decode_event, sequence, sequence_prefix
from tests.protocol.shapes import SHAPES, wire


def stored(kind: str, *, seq: int = 3) -> SequencedEvent:
    text = sequence(decode_event(wire(SHAPES[kind])).text, seq=seq, created_at="2026-05-06T12:34:56.789Z")
    return SequencedEvent.from_stored(text)


@pytest.mark.requirement("EV-02", "EV-07")
@pytest.mark.parametrize("kind", SHAPES)
def test_a_stored_event_is_the_event_with_seq_and_created_at_in_front(kind: str) -> None:
    one = stored(kind)
    assert one.to_dict() == {"seq": 3, "createdAt": "2026-05-06T12:34:56.789Z", **SHAPES[kind]}
    assert (one.seq, one.created_at, one.type) == (3, "2026-05-06T12:34:56.789Z", kind)
    assert one.event == decode_event(wire(SHAPES[kind])).event


@pytest.mark.parametrize("kind", SHAPES)
def test_a_stored_event_is_read_from_text_with_its_members_in_any_order(kind: str) -> None:
    members = list(stored(kind).to_dict().items())
    text = json.dumps(dict(reversed(members)), indent=2).encode()
    assert SequencedEvent.from_text(text).to_dict() == dict(members)


@pytest.mark.parametrize("kind", SHAPES)
def test_reading_the_text_of_a_stored_event_gives_it_back_byte_for_byte(kind: str) -> None:
    one = stored(kind)
    assert SequencedEvent.from_text(one.text) == one


@pytest.mark.parametrize(
    "text",
    [
        wire(SHAPES["run_started"]),
        b'{"seq":0,"createdAt":"2026-05-06T12:34:56.789Z",' + wire(SHAPES["run_started"])[1:],
        b'{"seq":9007199254740992,"createdAt":"2026-05-06T12:34:56.789Z",' + wire(SHAPES["run_started"])[1:],
        b'{"seq":1.5,"createdAt":"2026-05-06T12:34:56.789Z",' + wire(SHAPES["run_started"])[1:],
        b'{"seq":1,"createdAt":"2026-05-06",' + wire(SHAPES["run_started"])[1:],
        b'{"seq":1,"createdAt":"2026-05-06T12:34:56.789+02:00",' + wire(SHAPES["run_started"])[1:],
        b'{"seq":1,"createdAt":"2026-13-06T12:34:56.789Z",' + wire(SHAPES["run_started"])[1:],
        b'{"seq":1,"seq":1,"createdAt":"2026-05-06T12:34:56.789Z",' + wire(SHAPES["run_started"])[1:],
        b'{"seq":1,"createdAt":"2026-05-06T12:34:56.789Z"}',
        b'{"seq":1,"createdAt":"2026-05-06T12:34:56.789Z","type":"x"}',
        b'{"seq":1,"createdAt":"2026-05-06T12:34:56.789Z","mood":1,' + wire(SHAPES["run_started"])[1:],
        *(b"", b"[]", b"null", b"{}", b"\xff"),
    ],
)
def test_a_text_that_is_no_stored_event_is_refused(text: bytes) -> None:
    with pytest.raises(InvalidRequest):
        SequencedEvent.from_text(text)


def test_the_text_of_a_stored_event_begins_with_its_envelope() -> None:
    assert stored("run_finished").text.startswith(sequence_prefix(seq=3, created_at="2026-05-06T12:34:56.789Z"))


@pytest.mark.requirement("PR-1-18")
def test_members_that_a_newer_server_added_are_left_out_and_kept_in_the_text() -> None:
    text = (
        b'{"seq":7,"createdAt":"2026-05-06T12:34:56.789Z","type":"run_finished","principalId":"a","runId":"r",'
        b'"cost":{"cents":3},"outcome":"success"}'
    )
    event = SequencedEvent.from_stored(text)
    assert event.event == RunFinished(principal_id="a", run_id="r", outcome="success")
    assert event.to_dict()["cost"] == {"cents": 3}


@pytest.mark.requirement("PR-1-18")
def test_the_type_of_an_event_that_this_version_does_not_know_can_still_be_read() -> None:
    text = b'{"seq":7,"createdAt":"2026-05-06T12:34:56.789Z","type":"thread_archived","by":"\\ud83d"}'
    event = SequencedEvent.from_stored(text)
    assert event.type == "thread_archived"
    with pytest.raises(InvalidRequest):
        _ = event.event
