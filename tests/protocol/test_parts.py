"""The core kinds of native parts, as a consumer reads them."""

from __future__ import annotations

import pytest
from msgspec import UNSET, Raw

from bubble.protocol.events import MessagePart, decode_event
from bubble.protocol.parts import AgentEventPart, ReactionPart, decode_native_part
from tests.protocol.shapes import part_event


@pytest.mark.requirement("PR-1-19", "PR-1-20")
@pytest.mark.parametrize(
    ("text", "part"),
    [
        (b'{"kind":"agent_event","name":"empty"}', AgentEventPart(name="empty")),
        (
            rb'{"kind":"agent_event","name":"mood","data":{"n":1e400,"s":"x"},"id":"7"}',
            AgentEventPart(name="mood", data=Raw(b'{"n":1e400,"s":"x"}'), id="7"),
        ),
        (
            '{"kind":"reaction","targetSeq":7,"emoji":"👍","op":"add"}'.encode(),
            ReactionPart(target_seq=7, emoji="👍", op="add"),
        ),
        (  # half a character is JSON, too, wherever it stands
            rb'{"kind":"agent_event","name":"mood","data":{"s":"\ud83d","n":1e400},"id":"\ud83d"}',
            AgentEventPart(name="mood", data=Raw(rb'{"s":"\ud83d","n":1e400}'), id="\ud83d"),
        ),
        (
            rb'{"kind":"agent_event","name":"mood","later":"\ude00"}',
            AgentEventPart(name="mood"),
        ),
        (
            rb'{"kind":"reaction","targetSeq":7,"emoji":"\ud83d","op":"add"}',
            ReactionPart(target_seq=7, emoji="\ud83d", op="add"),
        ),
        (
            '{"kind":"reaction","targetSeq":7,"emoji":"👍","op":"remove"}'.encode(),
            ReactionPart(target_seq=7, emoji="👍", op="remove"),
        ),
    ],
)
def test_a_core_part_is_read(text: bytes, part: AgentEventPart | ReactionPart) -> None:
    event = decode_event(part_event(text, version="bubble-v1")).event
    assert isinstance(event, MessagePart)
    assert decode_native_part(event.part) == part


@pytest.mark.requirement("PR-1-19", "PR-1-20", "PR-1-21")
@pytest.mark.parametrize(
    "text",
    [
        b'{"kind":"not-yet-invented"}',
        b'{"kind":"agent_event"}',
        b'{"kind":"agent_event","name":""}',
        b'{"kind":"agent_event","name":"empty","data":{}}',
        rb'{"kind":"agent_event","name":"empty","data":"\ud83d"}',
        rb'{"kind":"agent_event","later":"\ud83d"}',
        b'{"kind":"reaction","targetSeq":0,"emoji":"x","op":"add"}',
        b'{"kind":"reaction","targetSeq":1,"emoji":"","op":"add"}',
        b'{"kind":"reaction","targetSeq":1,"emoji":"x","op":"toggle"}',
        b'{"kind":"reaction","emoji":"x","op":"add"}',
    ],
)
def test_a_part_of_another_kind_or_shape_is_stored_and_skipped(text: bytes) -> None:
    assert decode_event(part_event(text, version="bubble-v1")).text == part_event(text, version="bubble-v1")
    assert decode_native_part(text) is None


def test_a_core_part_may_have_members_of_a_later_version() -> None:
    part = decode_native_part(b'{"kind":"agent_event","name":"mood","later":1}')
    assert isinstance(part, AgentEventPart)
    assert part.data is UNSET
