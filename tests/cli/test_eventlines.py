"""One readable line per event, whatever is in it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from bubble.cli.eventlines import event_line
from bubble.protocol.events import SequencedEvent, encoded, sequence

TIME = "2026-05-06T12:34:56.789Z"
RUN = {"principalId": "ada", "runId": "r1"}


def line(event: Mapping[str, object]) -> str:
    text = sequence(encoded(event).text, seq=7, created_at=TIME)
    return event_line(SequencedEvent.from_stored(text))


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ({"type": "run_started", **RUN, "kind": "user_input"}, "starts run r1 (user_input)"),
        ({"type": "run_finished", **RUN, "outcome": "failed"}, "finishes run r1: failed"),
        ({"type": "run_interrupt_requested", **RUN}, "asks run r1 to stop"),
        ({"type": "tool_call_approval", **RUN, "toolCallId": "c", "approved": True}, "approves call c of run r1"),
        (
            {"type": "tool_call_approval", **RUN, "toolCallId": "c", "approved": False, "reason": "no"},
            "rejects call c of run r1: no",
        ),
        (
            {"type": "tool_call_result", **RUN, "toolCallId": "c", "input": 1, "output": {"a": [2]}},
            'gives the result of call c: {"a":[2]}',
        ),
        (
            {
                "type": "message_part",
                **RUN,
                "version": "ai-sdk-v6",
                "part": {"type": "text-delta", "id": "1", "delta": "a\n\x1b[31m"},
            },
            r"text-delta 'a\n\x1b[31m'",
        ),
        (
            {"type": "message_part", **RUN, "version": "bubble-v1", "part": {"kind": "reaction", "emoji": "👍"}},
            'reaction {"emoji":"👍"}',
        ),
        ({"type": "participant_joined", "principalId": "ada", "byPrincipalId": "ada"}, "joins"),
        ({"type": "participant_joined", "principalId": "ada", "byPrincipalId": "eve"}, "is added by eve"),
        ({"type": "participant_left", "principalId": "ada", "byPrincipalId": "ada"}, "leaves"),
        ({"type": "participant_left", "principalId": "ada", "byPrincipalId": "eve"}, "is removed by eve"),
    ],
)
def test_each_event_says_who_did_what(event: Mapping[str, object], said: str) -> None:
    assert line(event) == f"     7  12:34:56.789  ada  {said}"


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (
            b'{"type":"message_part","principalId":"ada","runId":"r1","version":"ai-sdk-v6","part":{"type":"data-x","data":1e400}}',
            '{"type":"data-x","data":1e400}',
        ),
        (
            b'{"type":"tool_call_result","principalId":"ada","runId":"r1","toolCallId":"c","input":-1e400,"output":[1e400,  2]}',
            r"gives the result of call c: [1e400,  2]",
        ),
        (b'{"type":"novel","principalId":"ada","x":1e400}', '{"seq":"7","createdAt":"2026-05-06T12:34:56.789Z"'),
    ],
)
def test_what_python_has_no_json_for_is_shown_as_it_was_written(event: bytes, said: str) -> None:
    shown = event_line(SequencedEvent.from_stored(sequence(event, seq=7, created_at=TIME)))
    assert shown.startswith(f"     7  12:34:56.789  ada  {said}")


def test_a_title_is_shown_with_the_one_who_gave_it() -> None:
    event = {"type": "thread_title_updated", "byPrincipalId": "eve", "title": "A \u202etitle"}
    assert line(event) == "     7  12:34:56.789  eve  calls the thread 'A \\u202etitle'"


def test_a_long_payload_is_shortened() -> None:
    part = {"type": "text-delta", "id": "1", "delta": "x" * 5_000}
    said = line({"type": "message_part", **RUN, "version": "ai-sdk-v6", "part": part})
    assert len(said) < 300
    assert "5000 characters" in said
