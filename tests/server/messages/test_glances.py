"""What is seen of a stored event without decoding it."""

from __future__ import annotations

import pytest
from msgspec import Raw

from bubble.protocol.events import MessagePart, PartVersion, encoded, sequence
from bubble.server.messages.glances import Glance, Survey, glance

RUN = {"principalId": "ann", "runId": "r"}


def stored(event: object, seq: int = 7) -> bytes:
    return sequence(encoded(event).text, seq=seq, created_at="2026-05-06T12:34:56.789Z")  # type: ignore[arg-type]


def part(text: bytes, *, version: PartVersion = "bubble-v1") -> bytes:
    return stored(MessagePart(principal_id="ann", run_id="r", part=Raw(text), version=version))


@pytest.mark.parametrize(
    ("event", "does"),
    [
        ({"type": "run_started", **RUN}, "starts"),
        ({"type": "run_finished", **RUN, "outcome": "lost"}, "finishes"),
        ({"type": "tool_call_approval", **RUN, "toolCallId": "c", "approved": True}, "talks"),
        ({"type": "tool_call_result", **RUN, "toolCallId": "c", "input": 1, "output": 2}, "talks"),
        ({"type": "run_interrupt_requested", **RUN}, "talks"),
        ({"type": "message_part", **RUN, "version": "ai-sdk-v6", "part": {"type": "x"}}, "talks"),
        ({"type": "message_part", **RUN, "version": "bubble-v1", "part": {"kind": "x"}}, "talks"),
        ({"type": "participant_joined", "principalId": "ann", "byPrincipalId": "ann"}, ""),
        ({"type": "participant_left", "principalId": "ann", "byPrincipalId": "ann"}, ""),
        ({"type": "thread_title_updated", "byPrincipalId": "ann", "title": 'a "runId":"x"'}, ""),
    ],
)
def test_every_event_is_seen_for_what_it_does(event: dict[str, object], does: str) -> None:
    seen = glance(stored(event))
    assert (seen.seq, seen.run_id, seen.target) == (7, "r" if does else None, None)
    assert [name for name in ("starts", "finishes", "talks") if getattr(seen, name)] == [does] * bool(does)


@pytest.mark.parametrize("run_id", ['a"b', "a\\", '\\"', "a\\u0022", "läuft", "\U0001f3c3", 'x","runId":"y'])
def test_a_run_is_seen_by_its_id_whatever_characters_that_has(run_id: str) -> None:
    assert glance(stored({"type": "run_started", "principalId": "ann", "runId": run_id})).run_id == run_id


@pytest.mark.parametrize(
    ("text", "target"),
    [
        (b'{"kind":"reaction","targetSeq":3,"emoji":"x","op":"add"}', 3),
        (b'{ "op" : "remove", "emoji":"\\ud83d", "targetSeq":4, "kind" : "reaction", "more": 1 }', 4),
        (b'{"kind":"\\u0072eaction","targetSeq":5,"emoji":"x","op":"add"}', 5),
        (b'{"kind":"reaction","targetSeq":0,"emoji":"x","op":"add"}', None),
        (b'{"kind":"reaction","targetSeq":"3","emoji":"x","op":"add"}', None),
        (b'{"kind":"reaction"}', None),
        (b'{"kind":"x","of":{"kind":"reaction","targetSeq":3,"emoji":"x","op":"add"}}', None),
    ],
)
def test_a_reaction_is_seen_with_its_target_and_what_is_none_talks(text: bytes, target: int | None) -> None:
    seen = glance(part(text))
    assert (seen.target, seen.talks) == (target, target is None)


def test_only_a_native_part_can_be_a_reaction() -> None:
    text = b'{"type":"x","kind":"reaction","targetSeq":3,"emoji":"x","op":"add","version":"bubble-v1"}'
    assert glance(part(text, version="ai-sdk-v6")).target is None


def test_what_is_no_stored_event_is_refused() -> None:
    with pytest.raises(ValueError, match="stored"):
        glance(b'{"type":"run_started"}')


def test_a_survey_is_what_was_seen_of_all() -> None:
    survey = Survey()
    for seen in (
        Glance(1, "a", starts=True, finishes=False, talks=False, target=None),
        Glance(2, "a", starts=False, finishes=False, talks=True, target=None),
        Glance(3, "b", starts=False, finishes=False, talks=False, target=2),
        Glance(4, None, starts=False, finishes=False, talks=False, target=None),
        Glance(5, "a", starts=False, finishes=True, talks=False, target=None),
    ):
        survey.add(seen)
    assert (survey.starters, survey.talkers, survey.finishers, survey.targets) == ({"a"}, {"a"}, {"a"}, {2})
    assert survey.last_of == {"a": 5, "b": 3}
