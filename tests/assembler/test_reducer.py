"""What the reducer promises beyond being like the original: sharing, all or nothing, and the seams for who folds several messages."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from itertools import zip_longest
from random import Random
from typing import Any

import pytest
from msgspec import UNSET

from bubble.assembler.reducer import MessageReducer, ReducerError
from bubble.protocol.errors import InvalidRequest
from bubble.protocol.jsontext import JSONValue
from tests.interop.ai_sdk.scripts import random_chunk, random_chunks, random_value

Chunk = Mapping[str, object]

START: Chunk = {"type": "tool-input-start", "toolCallId": "c", "toolName": "get"}
TEXT: Chunk = {"type": "text-start", "id": "t"}


def delta(text: str) -> Chunk:
    return {"type": "tool-input-delta", "toolCallId": "c", "inputTextDelta": text}


def word(text: str) -> Chunk:
    return {"type": "text-delta", "id": "t", "delta": text}


def reduced(*chunks: Chunk, message: Chunk | None = None) -> MessageReducer:
    reducer = MessageReducer(message)
    for chunk in chunks:
        reducer.apply(chunk)
    return reducer


def snapshot_of(reducer: MessageReducer) -> Any:  # noqa: ANN401 - plain data, to be looked into
    snapshot = reducer.snapshot()
    assert snapshot is not None
    return snapshot


def test_there_is_no_snapshot_before_the_first_emission() -> None:
    reducer = reduced({"type": "start-step"}, {"type": "finish"})
    assert reducer.snapshot() is None
    assert list(reducer.parts()) == [{"type": "step-start"}]


def test_a_snapshot_shows_the_present_state_also_between_emissions() -> None:
    reducer = reduced({"type": "start", "messageId": "m"}, {"type": "start-step"})
    assert reducer.snapshot() == {"id": "m", "role": "assistant", "parts": [{"type": "step-start"}]}


@pytest.mark.requirement("TA-R-09")
def test_nothing_that_was_handed_out_is_changed_afterwards() -> None:
    random = Random(3)  # noqa: S311 - a test's dice
    for _ in range(200):
        reducer = MessageReducer()
        handed_out: list[tuple[object, object]] = []
        for chunk in random_chunks(random, 30, failing=0):
            reducer.apply(chunk)
            given = (reducer.snapshot(), reducer.parts(), reducer.tool("c1"), reducer.metadata)
            handed_out.append((given, copy.deepcopy(given)))
        assert all(given == then for given, then in handed_out)


@pytest.mark.requirement("TA-R-09")
def test_parts_that_have_not_changed_are_shared() -> None:
    reducer = reduced(TEXT, word("a"), START, delta('{"city":{"name":"Oslo"},"n":[1'))
    before = snapshot_of(reducer)
    reducer.apply(delta(",2"))
    after = snapshot_of(reducer)
    assert after["parts"][0] is before["parts"][0]
    assert after["parts"][1]["input"]["city"] is before["parts"][1]["input"]["city"]
    assert (before["parts"][1]["input"]["n"], after["parts"][1]["input"]["n"]) == ([1], [1, 2])
    assert reducer.snapshot() is after


@pytest.mark.requirement("TA-R-12")
def test_chunks_and_the_first_message_are_not_changed() -> None:
    message = {
        "id": "m",
        "role": "assistant",
        "parts": [{"type": "data-x", "id": "1", "data": {"n": [0]}}],
        "own": {"k": 1},
    }
    chunks = [{"type": "data-x", "id": id_, "data": {"n": n}} for n, id_ in enumerate("1212")]
    before = copy.deepcopy((message, chunks))
    reducer = reduced(*chunks, message=message)
    assert (message, chunks) == before
    message["own"]["k"] = 2  # type: ignore[index]
    message["parts"].clear()  # type: ignore[attr-defined]
    assert reducer.snapshot() == {**before[0], "parts": [{"type": "data-x", "id": "1", "data": {"n": 2}}, chunks[3]]}


@pytest.mark.requirement("TA-R-02", "TA-R-10")
def test_a_chunk_that_fails_changes_nothing() -> None:
    random = Random(5)  # noqa: S311 - a test's dice
    failures = 0
    for _ in range(300):
        reducer = (
            reduced(*random_chunks(random, 20, failing=0))
            if random.random() < 0.5
            else reduced({"type": "start", "messageId": "m"})
        )
        before = copy.deepcopy(state_of(reducer))
        for _ in range(20):
            chunk = spoiled(random, random_chunk(random, {}))
            try:
                reducer.apply(chunk)
            except ReducerError:
                failures += 1
                assert state_of(reducer) == before, chunk
            before = copy.deepcopy(state_of(reducer))
    assert failures > 1_000


def state_of(reducer: MessageReducer) -> tuple[object, ...]:
    return reducer.snapshot(), list(reducer.parts()), reducer.metadata


def spoiled(random: Random, chunk: dict[str, JSONValue]) -> dict[str, JSONValue]:
    name = random.choice(list(chunk))
    if random.random() < 0.3:
        return {other: value for other, value in chunk.items() if other != name}
    return chunk | {name: random_value(random)}


@pytest.mark.requirement("TA-R-10")
@pytest.mark.parametrize(
    "chunk",
    [
        None,
        [],
        "text-start",
        {},
        {"type": None},
        {"type": ["text-start"]},
        {"type": "text-start"},
        {"type": "text-start", "id": 1},
        {"type": "text-start", "id": []},
        {"type": "text-delta", "id": "t", "delta": 5},
        {"type": "start", "messageId": 5},
        {"type": "data-x", "id": {}, "data": 1},
        {"type": "tool-input-start", "toolCallId": "c"},
        {"type": "tool-input-delta", "toolCallId": "c", "inputTextDelta": None},
        {"type": "tool-output-available", "toolCallId": 7, "output": 1},
    ],
    ids=str,
)
def test_a_chunk_that_cannot_be_worked_with_is_refused(chunk: Any) -> None:  # noqa: ANN401
    reducer = reduced(TEXT, START)
    before = reducer.snapshot()
    with pytest.raises(ReducerError):
        reducer.apply(chunk)
    assert reducer.snapshot() == before


@pytest.mark.requirement("TA-R-02")
def test_an_error_of_the_reducer_is_a_bad_request_that_says_what_was_looked_for() -> None:
    with pytest.raises(InvalidRequest) as refused:
        reduced({"type": "tool-output-denied", "toolCallId": "c"})
    error = refused.value
    assert isinstance(error, ReducerError)
    assert (error.code, error.chunk_type, error.chunk_id) == ("invalid_request", "tool-invocation", "c")
    assert str(error) == 'No tool invocation found for tool call ID "c".'


@pytest.mark.requirement("TA-R-02")
def test_metadata_that_cannot_be_merged_leaves_the_metadata() -> None:
    reducer = reduced({"type": "start", "messageId": "m", "messageMetadata": "note"})
    with pytest.raises(ReducerError) as refused:
        reducer.apply({"type": "finish", "messageMetadata": {"k": 1}})
    assert (refused.value.chunk_type, refused.value.chunk_id) == ("finish", None)
    assert reducer.metadata == "note"


@pytest.mark.requirement("TA-R-01")
@pytest.mark.parametrize(
    ("base", "over", "merged"),
    [
        ({"a": {"b": 1, "c": [1]}}, {"a": {"c": [2], "d": None}}, {"a": {"b": 1, "c": [2], "d": None}}),
        ({"a": 1}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        ({"a": 1}, {"__proto__": 1, "constructor": {"x": 1}, "prototype": 2}, {"a": 1}),
        ({"a": {}}, {"a": {"constructor": 1, "ok": 2}}, {"a": {"ok": 2}}),
        ({}, {"a": {"constructor": 1}}, {"a": {"constructor": 1}}),
        (["x", "y"], {"1": "z"}, {"0": "x", "1": "z"}),
        ({"a": 1}, ["x"], {"a": 1, "0": "x"}),
        ({"a": 1}, "é😀", {"a": 1, "0": "é", "1": "\ud83d", "2": "\ude00"}),
        ("ab", {}, {"0": "a", "1": "b"}),
        (5, 6, {}),
        (False, [], {}),
        ([{"k": 1}], {"0": {"l": 2}, "00": 3}, {"0": {"k": 1, "l": 2}, "00": 3}),
    ],
)
def test_metadata_is_merged_as_javascript_does_it(base: object, over: object, merged: object) -> None:
    reducer = reduced(
        {"type": "message-metadata", "messageMetadata": base}, {"type": "message-metadata", "messageMetadata": over}
    )
    assert reducer.metadata == merged


@pytest.mark.requirement("TA-R-11")
def test_metadata_of_any_depth_is_merged() -> None:
    def nested(leaf: str) -> dict[str, Any]:
        value: dict[str, Any] = {leaf: 1}
        for _ in range(50_000):
            value = {"k": value}
        return value

    reducer = reduced(*({"type": "message-metadata", "messageMetadata": nested(leaf)} for leaf in "ab"))
    value: Any = reducer.metadata
    while "k" in value:
        value = value["k"]
    assert value == {"a": 1, "b": 1}


@pytest.mark.requirement("TA-R-03")
@pytest.mark.parametrize("parts", [None, "x", [1], {}])
def test_a_message_without_parts_cannot_be_gone_on_with(parts: object) -> None:
    with pytest.raises(InvalidRequest):
        MessageReducer({"id": "m", "role": "assistant", "parts": parts})


@pytest.mark.requirement("TA-R-07")
def test_halves_of_a_character_in_two_deltas_become_one() -> None:
    reducer = reduced(TEXT, word("a\ud83d"))
    assert snapshot_of(reducer)["parts"][0]["text"] == "a\ud83d"
    reducer.apply(word(""))
    reducer.apply(word("\ude00\ud83d"))
    assert snapshot_of(reducer)["parts"][0]["text"] == "a😀\ud83d"
    reducer.apply(word("\ud83d\ude00\ude00"))
    assert snapshot_of(reducer)["parts"][0]["text"] == "a😀\ud83d😀\ude00"


@pytest.mark.requirement("TA-R-07")
@pytest.mark.parametrize("encoding", ["json", "text"])
def test_so_do_halves_in_the_input_of_a_tool(encoding: str) -> None:
    reducer = reduced({**START, "inputEncoding": encoding}, delta('"\ud83d'), delta('\ude00"'))
    part = snapshot_of(reducer)["parts"][0]
    assert (part["rawInput"], part["input"]) == ('"😀"', "😀" if encoding == "json" else '"😀"')


@pytest.mark.requirement("TA-R-01")
@pytest.mark.parametrize("looks", [False, True], ids=["unseen", "seen"])
def test_a_late_delta_makes_a_second_part_in_a_new_step(*, looks: bool) -> None:
    reducer = MessageReducer()
    for chunk in (START, delta('{"a'), delta('":1'), {"type": "start-step"}, delta("}"), delta(" ")):
        reducer.apply(chunk)
        if looks:
            reducer.snapshot()
    first, _, second = snapshot_of(reducer)["parts"]
    assert (first["rawInput"], first["input"]) == ('{"a":1', {"a": 1})
    assert (second["rawInput"], second["input"]) == ('{"a":1} ', {"a": 1})


@pytest.mark.requirement("TA-R-11")
def test_ten_million_characters_come_through() -> None:
    long = "0123456789" * 1_000_000
    reducer = reduced(
        TEXT, word(long), word(long), START, delta('{"text":"'), delta(long), delta('","n":[1,'), delta("2]}")
    )
    text, call = snapshot_of(reducer)["parts"]
    assert text["text"] == long + long
    assert call["input"] == {"text": long, "n": [1, 2]}


@pytest.mark.requirement("TA-R-11")
def test_an_input_that_is_nested_too_deep_is_kept_as_text() -> None:
    reducer = reduced(START, *(delta("[") for _ in range(10_000)))
    part = snapshot_of(reducer)["parts"][0]
    assert part["rawInput"] == "[" * 10_000
    assert "input" not in part


@pytest.mark.requirement("TA-R-13")
def test_the_part_of_a_call_is_found_as_an_outcome_would_find_it() -> None:
    done: Chunk = {"type": "tool-input-available", "toolCallId": "c", "toolName": "get", "input": 1}
    reducer = reduced(done, {**done, "dynamic": True, "input": 2})
    assert reducer.tool("c") == snapshot_of(reducer)["parts"][0]
    reducer.apply({"type": "start-step"})
    assert reducer.tool("c") == snapshot_of(reducer)["parts"][1]
    assert reducer.tool("other") is None


@pytest.mark.requirement("TA-R-13")
def test_whether_a_chunk_would_change_a_part_is_known_beforehand() -> None:
    random = Random(11)  # noqa: S311 - a test's dice
    seen: set[tuple[str, bool]] = set()
    for _ in range(400):
        reducer = reduced(*random_chunks(random, random.randrange(12), failing=0))
        for _ in range(10):
            chunk = random_chunk(random, {})
            kind = str(chunk["type"])
            if not kind.startswith(("tool-", "data-")):
                continue
            before, expected = len(reducer.parts()), reducer.would_update(chunk)
            try:
                emits = reducer.apply(chunk)
            except ReducerError:
                emits = False
            assert (emits and len(reducer.parts()) == before) == expected, chunk
            seen.add((kind, expected))
    assert len(seen) == 2 * 10


@pytest.mark.requirement("TA-R-13")
def test_the_part_that_a_chunk_changes_is_known_afterwards() -> None:
    random = Random(13)  # noqa: S311 - a test's dice
    for _ in range(300):
        reducer = MessageReducer()
        assert reducer.changed_part == -1
        for chunk in random_chunks(random, 25, failing=0):
            before = reducer.parts()
            reducer.apply(chunk)
            after = reducer.parts()
            pairs = enumerate(zip_longest(before, after)) if chunk["type"] != "start" else ()
            assert {place for place, (old, new) in pairs if old != new} <= {reducer.changed_part}


@pytest.mark.requirement("TA-R-13")
def test_a_call_can_be_amended_and_goes_on() -> None:
    reducer = reduced(START, delta('{"a":1'))
    before = snapshot_of(reducer)
    reducer.amend_tool("c", state="approval-responded", approval={"id": "c", "approved": True})
    part = snapshot_of(reducer)["parts"][0]
    assert before["parts"][0]["state"] == "input-streaming"
    assert part == {**before["parts"][0], "state": "approval-responded", "approval": {"id": "c", "approved": True}}
    reducer.apply(delta("}"))
    assert snapshot_of(reducer)["parts"][0]["rawInput"] == '{"a":1}'
    with pytest.raises(ReducerError):
        reducer.amend_tool("other", state="x")


@pytest.mark.requirement("TA-R-13")
def test_the_newest_part_can_be_amended() -> None:
    reducer = MessageReducer()
    with pytest.raises(ReducerError):
        reducer.amend_last_part(filename="a.txt")
    reducer.apply({"type": "file", "mediaType": "text/plain", "url": "data:,a", "filename": "dropped"})
    assert "filename" not in snapshot_of(reducer)["parts"][0]
    reducer.amend_last_part(filename="a.txt")
    assert snapshot_of(reducer)["parts"][0]["filename"] == "a.txt"


def test_metadata_is_unset_until_there_is_some() -> None:
    assert MessageReducer().metadata is UNSET
    assert reduced({"type": "message-metadata", "messageMetadata": 0}).metadata == 0


@pytest.mark.requirement("TA-R-09")
def test_metadata_that_was_given_or_seen_stays_as_it_was_whatever_is_laid_upon_it() -> None:
    given: list[Any] = [{"usage": {"in": 1, "by": {"model": {"a": 1}}}}, {"usage": {"by": {"model": {"b": 2}}}, "n": 1}]
    texts = [json.dumps(one) for one in given]
    reducer = reduced(*({"type": "message-metadata", "messageMetadata": one} for one in given))
    first = reducer.metadata
    as_it_was = json.dumps(first)
    for number in range(3):
        reducer.apply({"type": "message-metadata", "messageMetadata": {"usage": {"by": {"model": {"c": number}}}}})
    assert reducer.metadata == {"usage": {"in": 1, "by": {"model": {"a": 1, "b": 2, "c": 2}}}, "n": 1}
    assert [json.dumps(one) for one in (*given, first)] == [*texts, as_it_was]
