"""The frames: what a client may send, and how the server's are written."""

from __future__ import annotations

import json
from typing import get_args

import msgspec
import pytest

from bubble.protocol.errors import ERROR_CODES, InvalidRequest
from bubble.protocol.events import decode_event, sequence
from bubble.protocol.frames import (
    AuthRefresh,
    ClientFrame,
    ErrorFrame,
    GrantsChanged,
    GrantsSnapshot,
    GrantsSubscribe,
    GrantsUnsubscribe,
    ServerFrame,
    SubscriptionClosed,
    SubscriptionOpened,
    ThreadAppend,
    ThreadEvent,
    ThreadSubscribe,
    ThreadUnsubscribe,
    encode_frame,
    thread_event_prefix,
)
from bubble.protocol.resources import Grant, PrincipalSummary
from bubble.protocol.strict import decode_strictly
from tests.protocol.shapes import SHAPES, part_event, wire

_client_frames: msgspec.json.Decoder[ClientFrame] = msgspec.json.Decoder(ClientFrame)
_server_frames: msgspec.json.Decoder[ServerFrame] = msgspec.json.Decoder(ServerFrame)

GRANT = Grant(
    thread_id="t",
    principal_id="bot",
    role="participant",
    granted_by="ann",
    created_at="2026-05-06T12:34:56.789Z",
    principal=PrincipalSummary(principal_id="bot", kind="bot", display_name="Bot"),
)
STORED = sequence(decode_event(wire(SHAPES["message_part"])).text, seq=18, created_at="2026-05-06T12:34:56.789Z")


def taken(text: bytes) -> ClientFrame:
    return decode_strictly(text, _client_frames, raw_members=("event",))


@pytest.mark.requirement("WS-09")
@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        ({"type": "thread.subscribe", "threadId": "t"}, ThreadSubscribe(thread_id="t", from_seq=1)),
        ({"type": "thread.subscribe", "threadId": "t", "fromSeq": 18}, ThreadSubscribe(thread_id="t", from_seq=18)),
        ({"type": "thread.unsubscribe", "threadId": "t"}, ThreadUnsubscribe(thread_id="t")),
        ({"type": "grants.subscribe"}, GrantsSubscribe()),
        ({"type": "grants.unsubscribe"}, GrantsUnsubscribe()),
        ({"type": "auth.refresh", "token": "secret"}, AuthRefresh(token="secret")),
    ],
    ids=lambda value: value["type"] if isinstance(value, dict) else "",
)
def test_a_client_frame_is_read_and_written(frame: dict[str, object], expected: ClientFrame) -> None:
    assert taken(json.dumps(frame).encode()) == expected
    assert taken(encode_frame(expected)) == expected


@pytest.mark.requirement("WS-09", "PR-7-01", "PR-7-02")
def test_an_append_frame_keeps_the_bytes_of_its_event() -> None:
    event = part_event(rb'{ "type" : "\ud83d", "n": 1e400 }')
    frame = taken(b'{"type":"thread.append","ref":"7","idempotencyKey":"k","threadId":"t","event":%s}' % event)
    assert frame == ThreadAppend(thread_id="t", event=msgspec.Raw(event), idempotency_key="k", ref="7")


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (b'{"type":"thread.subscribe"}', "threadId"),
        (b'{"type":"thread.subscribe","threadId":7}', r"\$\.threadId"),
        (b'{"type":"thread.unsubscribe"}', "threadId"),
        (b'{"type":"thread.append","threadId":"t"}', "event"),
        (b'{"type":"thread.append","event":{}}', "threadId"),
        (b'{"type":"auth.refresh"}', "token"),
        (b'{"type":"thread.read","threadId":"t"}', r"\$\.type"),
        (b'{"type":"thread.event","threadId":"t","event":{}}', r"\$\.type"),
        (b'{"threadId":"t"}', "type"),
        (b'{"type":"grants.subscribe","threadId":"t"}', "threadId"),
        (b'{"type":"thread.subscribe","threadId":"t","threadId":"t"}', "threadId"),
        (b'{"type":"thread.subscribe","threadId":"t","fromSeq":1,"fromSeq":1}', "fromSeq"),
        (b'{"type":"thread.append","threadId":"t","event":{},"event":{}}', "event"),
        (b'{"type":"thread.append","threadId":"\\ud800","event":{}}', "surrogate"),
        (b"[]", r"\$"),
        (b"null", r"\$"),
        (b"{", r"\$"),
        (b"", r"\$"),
    ],
)
def test_a_frame_that_is_none_is_refused_by_name(text: bytes, where: str) -> None:
    with pytest.raises(InvalidRequest, match=where):
        taken(text)


@pytest.mark.requirement("PR-2-14")
@pytest.mark.parametrize(
    "seq", [b"0", b"-1", b"9007199254740992", b"1.0", b"1e3", b'"1"', b"null", b"true", b"1" * 400]
)
def test_a_from_seq_that_is_no_seq_is_refused(seq: bytes) -> None:
    with pytest.raises(InvalidRequest, match=r"\$\.fromSeq"):
        taken(b'{"type":"thread.subscribe","threadId":"t","fromSeq":%s}' % seq)


@pytest.mark.requirement("PR-8-10", "PR-6-47", "PR-8-13")
@pytest.mark.parametrize(
    ("member", "value"),
    [
        *(("idempotencyKey", value) for value in ('""', f'"{"k" * 129}"', "7", "null")),
        *(("ref", value) for value in (f'"{"r" * 65}"', "7", "null", "{}")),
    ],
)
def test_a_key_or_a_ref_out_of_bounds_is_refused(member: str, value: str) -> None:
    with pytest.raises(InvalidRequest, match=rf"\$\.{member}"):
        taken(f'{{"type":"thread.append","threadId":"t","event":{{}},"{member}":{value}}}'.encode())


@pytest.mark.requirement("PR-6-47", "PR-7-02")
@pytest.mark.parametrize(
    ("member", "length"), [("idempotencyKey", 1), ("idempotencyKey", 128), ("ref", 0), ("ref", 64)]
)
def test_a_key_or_a_ref_at_its_bounds_is_taken(member: str, length: int) -> None:
    taken(f'{{"type":"thread.append","threadId":"t","event":{{}},"{member}":"{"x" * length}"}}'.encode())


@pytest.mark.requirement("WS-10", "WS-31", "WS-49", "PR-3-15")
@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (
            SubscriptionOpened(thread_id="t", through_seq=42),
            {"type": "thread.subscription_opened", "threadId": "t", "throughSeq": 42},
        ),
        (
            SubscriptionOpened(thread_id="t", through_seq=0),
            {"type": "thread.subscription_opened", "threadId": "t", "throughSeq": 0},
        ),
        (
            ThreadEvent(thread_id="t", event=msgspec.Raw(STORED)),
            {"type": "thread.event", "threadId": "t", "event": json.loads(STORED)},
        ),
        (
            SubscriptionClosed(thread_id="t", reason="not_found"),
            {"type": "thread.subscription_closed", "threadId": "t", "reason": "not_found"},
        ),
        (
            ErrorFrame(code="internal", message="Ours."),
            {"type": "error", "code": "internal", "message": "Ours."},
        ),
        (
            ErrorFrame(code="conflict", message="No.", thread_id="t", ref="7", details={"headSeq": 7}),
            {
                "type": "error",
                "code": "conflict",
                "message": "No.",
                "threadId": "t",
                "ref": "7",
                "details": {"headSeq": 7},
            },
        ),
        (GrantsSnapshot(grants=[]), {"type": "grants.snapshot", "grants": []}),
        (
            GrantsChanged(change="revoked", grant=GRANT),
            {
                "type": "grants.changed",
                "change": "revoked",
                "grant": {
                    "threadId": "t",
                    "principalId": "bot",
                    "role": "participant",
                    "grantedBy": "ann",
                    "createdAt": "2026-05-06T12:34:56.789Z",
                    "principal": {"principalId": "bot", "kind": "bot", "displayName": "Bot"},
                },
            },
        ),
    ],
    ids=lambda value: "" if isinstance(value, dict) else type(value).__name__,
)
def test_a_server_frame_is_written_as_the_page_shows_it(frame: ServerFrame, expected: dict[str, object]) -> None:
    assert json.loads(encode_frame(frame)) == expected
    assert _server_frames.decode(encode_frame(frame)) == frame


@pytest.mark.requirement("WS-10")
def test_an_event_frame_put_together_from_its_parts_is_the_same_frame() -> None:
    whole = encode_frame(ThreadEvent(thread_id="t:1", event=msgspec.Raw(STORED)))
    assert thread_event_prefix("t:1") + STORED + b"}" == whole


def test_an_error_frame_about_a_lone_surrogate_can_be_written() -> None:
    frame = ErrorFrame(code="conflict", message="No.", details={"runId": "\ud83d"})
    assert json.loads(encode_frame(frame))["details"] == {"runId": "\ud83d"}


@pytest.mark.requirement("WS-31", "WS-49", "PR-3-01")
def test_reasons_and_codes_are_of_the_one_closed_set() -> None:
    for code in ERROR_CODES:
        _server_frames.decode(encode_frame(SubscriptionClosed(thread_id="t", reason=code)))
        _server_frames.decode(encode_frame(ErrorFrame(code=code, message="x")))
    with pytest.raises(msgspec.ValidationError, match=r"\$\.code"):
        _server_frames.decode(b'{"type":"error","code":"teapot","message":"x"}')


@pytest.mark.requirement("WS-06")
@pytest.mark.parametrize("frame", [*get_args(ClientFrame), *get_args(ServerFrame)])
def test_every_frame_about_a_thread_names_it(frame: type[msgspec.Struct]) -> None:
    tag = str(frame.__struct_config__.tag)
    fields = {field.encode_name: field.required for field in msgspec.structs.fields(frame)}
    if tag.startswith("thread."):
        assert fields["threadId"] is True
    else:
        assert fields.get("threadId", False) is False


@pytest.mark.requirement("PR-3-14")
def test_a_bearer_does_not_show_when_its_frame_is_printed() -> None:
    assert "secret" not in repr(AuthRefresh(token="secret"))
