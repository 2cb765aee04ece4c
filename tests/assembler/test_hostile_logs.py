"""Whatever anybody writes into a thread: it stays readable, and loses nothing but what is wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bubble.assembler import Grouping
from bubble.assembler.equality import equal
from bubble.protocol.events import SequencedEvent
from tests.assembler.logs import (
    Event,
    bubble,
    chunk,
    data_of,
    delta,
    finished,
    native,
    numbered,
    parts,
    reaction,
    result,
    said,
    shown,
    start,
    started,
    texts,
    tool,
)
from tests.assembler.threads import ASSEMBLER, applied, apply, assembled, run

TYPES = (
    "start",
    "finish",
    "error",
    "message-metadata",
    "text-start",
    "text-delta",
    "text-end",
    "reasoning-start",
    "reasoning-delta",
    "reasoning-end",
    "file",
    "source-url",
    "source-document",
    "data-x",
    "tool-input-start",
    "tool-input-delta",
    "tool-input-available",
    "tool-input-error",
    "tool-approval-request",
    "tool-output-available",
    "tool-output-error",
    "tool-output-denied",
)
FIELDS = (
    "id",
    "delta",
    "toolCallId",
    "toolName",
    "inputTextDelta",
    "url",
    "data",
    "messageId",
    "errorText",
    "filename",
)
WRONG: tuple[Any, ...] = (None, 7, 1.5, True, [], ["a"], {}, {"a": 1}, "")


@pytest.mark.requirement("TA-98")
@pytest.mark.parametrize("grouping", ["speaker", "run"])
@pytest.mark.parametrize("type_", TYPES)
def test_a_chunk_with_fields_of_any_type_breaks_nothing(type_: str, grouping: Grouping) -> None:
    hostile = [chunk(type_, who="ann", **dict.fromkeys(FIELDS, value)) for value in WRONG]
    hostile += [chunk(type_, who="ann", **{**_right(), field: value}) for field in FIELDS for value in WRONG]
    messages = assembled([started(), start(), delta("a"), *hostile, delta("b"), finished()], grouping)
    assert "".join(texts(message) for message in messages if bubble(message)["principalId"] == "bot") == "ab"


def _right() -> dict[str, Any]:
    return {
        "id": "1",
        "delta": "x",
        "toolCallId": "c",
        "toolName": "t",
        "inputTextDelta": "1",
        "url": "data:,x",
        "data": 1,
    }


@pytest.mark.requirement("TA-98")
@pytest.mark.parametrize("part", [{}, {"type": 7}, {"type": None}, {"type": ["text-start"]}, {"kind": "x"}])
def test_a_part_without_a_type_shows_nothing(part: dict[str, object]) -> None:
    event: Event = {"type": "message_part", "principalId": "bot", "runId": "r", "part": part, "version": "ai-sdk-v6"}
    assert shown(assembled([*said("a"), event, *said("b")])) == [("r", "ab")]


@pytest.mark.requirement("TA-98")
def test_a_vocabulary_that_this_version_does_not_know_shows_nothing() -> None:
    event: Event = {**said("x")[0], "version": "ai-sdk-v9"}
    assert shown(assembled([*said("a"), event])) == [("r", "a")]


@pytest.mark.requirement("TA-98")
@pytest.mark.parametrize("name", ["__proto__", "constructor", "prototype", "hasOwnProperty", "\0", "~1", ""])
def test_names_that_mean_something_elsewhere_are_names_like_any_other(name: str) -> None:
    log = [
        started("r" + name.replace("\0", "").replace("~", "")),
        start(block=name),
        delta("a", block=name),
        tool(name),
        result(name),
        chunk("data-x", id=name, data={name: name}),
        chunk(f"data-{name}", id=name, data=1),
        native("artifact", artifactId=name, op="create", text="t"),
        reaction(3, emoji=name or "x"),
        delta("b", block=name),
    ]
    messages = assembled(log)
    assert "".join(map(texts, messages)) == "ab"
    assert [data for message in messages for data in data_of(message)] == [
        {"toolCallId": name, "input": {"q": 2}, "output": "found", "principalId": "ann"},
        {name: name},
        1,
        {"artifactId": name, "text": "t"},
    ]
    assert bubble(messages[0])["reactions"] == {name or "x": ["ann"]}


@pytest.mark.requirement("TA-98")
def test_halves_of_a_character_become_one_and_lone_halves_and_nul_stay() -> None:
    log = [started(), start(), *map(delta, ("\ud83e", "\udee7", "\0", "\ude00", "\ud83d", ""))]
    [message] = assembled(log)
    assert texts(message) == "🫧\0\ude00\ud83d"


@pytest.mark.requirement("TA-98")
def test_ten_megabytes_of_text_are_a_text() -> None:
    thread = applied([started(), start(), delta("x" * 10_000_000)])
    apply(thread, delta("y"))
    assert len(texts(run(thread.snapshot()).messages[0])) == 10_000_001
    run(thread.clear_window(3))
    assert shown(run(thread.window()).messages) == [("r", "y")]


DEEP = 10_000


@pytest.mark.requirement("TA-98")
def test_an_input_that_nests_ten_thousand_levels_deep_breaks_nothing() -> None:
    log = [started(), chunk("tool-input-start", toolCallId="c", toolName="search")]
    log += [chunk("tool-input-delta", toolCallId="c", inputTextDelta="[" * 500)] * (DEEP // 500)
    thread = applied([*log, *said("a")], first=5)
    [message] = run(thread.snapshot()).messages
    assert (len(str(parts(message, "tool-search")[0]["rawInput"])), texts(message)) == (DEEP, "a")
    assert run(thread.prepend(numbered([finished("s")]))).changed is False


@pytest.mark.requirement("TA-98")
@pytest.mark.parametrize("grouping", ["speaker", "run"])
def test_an_input_that_goes_on_in_later_steps_is_shown_in_each_of_them_up_to_a_size(grouping: Grouping) -> None:
    def shown(size: int) -> list[int]:
        late = [chunk("start-step"), chunk("tool-input-delta", toolCallId="c", inputTextDelta="b")]
        log = [
            started(),
            chunk("tool-input-start", toolCallId="c", toolName="search"),
            chunk("tool-input-delta", toolCallId="c", inputTextDelta="a" * size),
            *late,
            *late,
            *late,
        ]
        [message] = assembled(log, grouping)
        return [len(part["rawInput"]) for part in parts(message, "tool-search")]

    assert shown(1) == [1, 2, 3, 4]
    assert shown(30_000) == [30_000, 30_001, 30_002]
    assert shown(70_000) == [70_000]


@pytest.mark.requirement("TA-98")
def test_an_event_that_nests_too_deep_is_passed_over() -> None:
    text = b'{"seq":1,"createdAt":"2026-05-06T12:34:56.789Z","type":"message_part","principalId":"bot","runId":"r","part":%s}'
    deep = b'{"type":"data-x","data":' + b"[" * DEEP + b"]" * DEEP + b'},"version":"ai-sdk-v6"'
    thread = ASSEMBLER.open()
    run(thread.apply([SequencedEvent(1, "2026-05-06T12:34:56.789Z", text % deep), *numbered(said("a"), first=2)]))
    assert shown(run(thread.snapshot()).messages) == [("r", "a")]


@pytest.mark.requirement("TA-98")
def test_numbers_beyond_all_doubles_keep_the_rest_of_their_part() -> None:
    event = numbered([chunk("data-x", data="NUMBERS")])[0]
    numbers = SequencedEvent(
        1, event.created_at, event.text.replace(b'"NUMBERS"', b"[1e400,123456789012345678901234567890]")
    )
    for given in (numbers, numbers.to_dict()):
        [message] = run(ASSEMBLER.assemble([given])).messages
        assert data_of(message) == [[float("inf"), 123456789012345678901234567890]]


@pytest.mark.requirement("TA-15")
def test_what_a_caller_does_to_its_events_afterwards_changes_nothing() -> None:
    event: Event = {"seq": 1, "createdAt": "2026-05-06T12:34:56.789Z", **chunk("data-x", data={"a": [1]})}
    thread = ASSEMBLER.open()
    run(thread.apply([event]))
    event["part"]["data"]["a"].append(2)
    assert data_of(run(thread.snapshot()).messages[0]) == [{"a": [1]}]


def nested(depth: int, inner: object) -> object:
    for _ in range(depth):
        inner = {"a": [inner]}
    return inner


@pytest.mark.requirement("TA-15")
@pytest.mark.parametrize("depth", [1, DEEP])
def test_equality_of_data_does_not_depend_on_its_depth(depth: int) -> None:
    assert equal(nested(depth, 1), nested(depth, 1))
    for other in (2, [1], {"b": 1}, None):
        assert not equal(nested(depth, 1), nested(depth, other))
    assert not equal(nested(depth, {"a": 1}), nested(depth, {"a": 1, "b": 2}))
    assert not equal(nested(depth, [1]), nested(depth, [1, 2]))


@pytest.mark.requirement("TA-15")
def test_numbers_and_flags_that_python_takes_for_each_other_are_different_data() -> None:
    for group in ([1, True, 1.0], [0, False, 0.0, -0.0]):
        for place, one in enumerate(group):
            assert [equal({"a": [one]}, {"a": [other]}) for other in group] == [n == place for n in range(len(group))]


@pytest.mark.requirement("TA-98")
def test_a_message_can_be_written_as_json_whatever_was_said() -> None:
    log = [*said("\ud83d\0"), native("novel", x="\ude00"), tool("c", input={"__proto__": ["\ud83d"]})]
    [message] = assembled(log)
    assert json.loads(json.dumps(message)) == message
