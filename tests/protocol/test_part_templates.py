"""A text that is like an earlier one says exactly what it would have said on its own."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bubble.protocol import events
from bubble.protocol.errors import InvalidRequest
from bubble.protocol.events import EncodedEvent, decode_event
from bubble.protocol.limits import Limits
from bubble.protocol.part_templates import TextTemplates
from bubble.server.websocket import session
from bubble.server.websocket.session import Append, Refusal, read_intent

ENVELOPES = [
    b'{"type":"message_part","principalId":"ann","runId":"r","part":%b,"version":"ai-sdk-v6"}',
    b'{"type": "message_part", "principalId": "ann", "runId": "r", "part": %b, "version": "ai-sdk-v6"}',
    b'{"version":"bubble-v1","part":%b,"type":"message_part","principalId":"ann","runId":"r"}',
    b'{"part":%b  ,"version":"ai-sdk-v6","type":"message_part","principalId":"a\\u006en","runId":"\\"part\\":"}',
]
FIRST = b'{"type":"text-delta","kind":"k","delta":"x"}'

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
OBJECTS = st.dictionaries(st.sampled_from(["type", "kind", "part", "version", "runId"]) | st.text(), JSON).map(
    json.dumps
)
FRAGMENTS = st.lists(
    st.sampled_from(
        [
            '{"type":"x"}',
            '{"kind":"x"}',
            "{",
            "}",
            '"part":',
            ',"runId":"other"',
            '"',
            "\\",
            "]",
            "[",
            " ",
            ",",
            '"version":"bubble-v1"',
            "\\ud83d",
            "é",
            "NaN",
        ]
    )
).map("".join)
PARTS = OBJECTS | FRAGMENTS | st.text()


@pytest.fixture(autouse=True)
def _nothing_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "_parts", TextTemplates(b'"part":'))
    monkeypatch.setattr(session, "_appends", TextTemplates(b'"event":'))


def outcome(text: bytes) -> tuple[bytes, bytes] | str:
    try:
        event = decode_event(text)
    except InvalidRequest as error:
        return error.message
    assert isinstance(event, EncodedEvent)
    return event.text, events.encode_event(event.event)


def alone(text: bytes) -> tuple[bytes, bytes] | str:
    learned, events._parts = events._parts, TextTemplates(b'"part":')
    try:
        return outcome(text)
    finally:
        events._parts = learned


@pytest.mark.parametrize("envelope", ENVELOPES)
@given(part=PARTS)
@example(part='{"type":"x"},"runId":"other","part":{"type":"x"}')
@example(part='{"type":"x"} ')
@example(part=' {"type":"x"}')
@example(part='{"type":"x"}}')
@example(part='{"type":"x","s":"\\ud83d"}')
@example(part='{"type":1}')
@example(part='{"type":"x","v":' + "[" * 510 + "]" * 510 + "}")
@example(part='{"type":"x","v":' + "[" * 511 + "]" * 511 + "}")
def test_what_was_learned_changes_no_answer(envelope: bytes, part: str) -> None:
    assert not isinstance(outcome(envelope % FIRST), str)
    text = envelope % part.encode("utf-8", "surrogatepass")
    assert outcome(text) == alone(text)


@given(
    event=st.sampled_from(ENVELOPES).flatmap(
        lambda envelope: PARTS.map(lambda part: envelope % part.encode("utf-8", "replace"))
    )
    | PARTS.map(str.encode)
)
def test_nor_does_it_change_what_a_frame_asks_for(event: bytes) -> None:
    frame = b'{"type":"thread.append","threadId":"t","event":%b}'
    read_intent(frame % (ENVELOPES[0] % FIRST), Limits())
    read_intent(frame % (ENVELOPES[0] % FIRST), Limits())
    learned = read_intent(frame % event, Limits())
    session._appends, events._parts = TextTemplates(b'"event":'), TextTemplates(b'"part":')
    fresh = read_intent(frame % event, Limits())
    assert type(learned) is type(fresh)
    if isinstance(learned, Append) and isinstance(fresh, Append):
        assert (learned.thread_id, learned.event.text, learned.digest_source) == (
            fresh.thread_id,
            fresh.event.text,
            fresh.digest_source,
        )
    if isinstance(learned, Refusal) and isinstance(fresh, Refusal):
        assert (learned.error.message, learned.thread_id) == (fresh.error.message, fresh.thread_id)


def test_an_ordinary_stream_is_recognised() -> None:
    assert events._part_like_others(ENVELOPES[0] % FIRST) is None
    decode_event(ENVELOPES[0] % FIRST)
    again = events._part_like_others(ENVELOPES[0] % b'{"type":"finish"}')
    assert again is not None
    assert again.text == ENVELOPES[0] % b'{"type":"finish"}'


def test_templates_are_bounded() -> None:
    templates: TextTemplates[int] = TextTemplates(b'"part":')
    for number in range(5_000):
        templates.learn(b'{"n":%d,"part":{}}' % number, b"{}", number)
    assert len(templates._templates) <= 1_024
    templates.learn(b'{"n":"%b","part":{}}' % (b"x" * 2_000), b"{}", 0)
    assert templates.find(b'{"n":"%b","part":{}}' % (b"x" * 2_000)) is None
