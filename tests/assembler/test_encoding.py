"""From a message to event parts and back."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubble.assembler import EventPart, MessagePart, NativePart, create_assembler, validate_chunk
from bubble.extensions.artifacts import ArtifactHandler
from bubble.protocol.errors import InvalidRequest
from tests.assembler.logs import Event, numbered
from tests.assembler.test_handlers import Given, Mentions
from tests.assembler.threads import run

ASSEMBLER = create_assembler(part_handlers=[ArtifactHandler(), Mentions()])


def encoded(*parts: Any) -> list[EventPart]:  # noqa: ANN401 - wrong ones, too
    return run(ASSEMBLER.encode({"id": "m", "role": "user", "parts": list(parts)}))


def assembled(parts: list[EventPart]) -> list[MessagePart]:
    log: list[Event] = [
        {"type": "message_part", "principalId": "ann", "runId": "r", "part": part.part, "version": part.version}
        for part in parts
    ]
    [message] = run(ASSEMBLER.assemble(numbered(log))).messages
    return message["parts"]


@pytest.mark.requirement("TA-27")
def test_text_is_encoded_as_its_start_its_delta_and_its_end() -> None:
    assert encoded({"type": "text", "text": "hi"}, {"type": "text", "text": ""}) == [
        EventPart("ai-sdk-v6", {"type": "text-start", "id": "text-1"}),
        EventPart("ai-sdk-v6", {"type": "text-delta", "id": "text-1", "delta": "hi"}),
        EventPart("ai-sdk-v6", {"type": "text-end", "id": "text-1"}),
        EventPart("ai-sdk-v6", {"type": "text-start", "id": "text-2"}),
        EventPart("ai-sdk-v6", {"type": "text-delta", "id": "text-2", "delta": ""}),
        EventPart("ai-sdk-v6", {"type": "text-end", "id": "text-2"}),
    ]


@pytest.mark.requirement("TA-27")
def test_reasoning_keeps_its_id_and_what_its_provider_said() -> None:
    part = {"type": "reasoning", "id": "rs-1", "text": "hm", "providerMetadata": {"p": {"k": 1}}}
    assert [one.part for one in encoded(part)] == [
        {"type": "reasoning-start", "id": "rs-1", "providerMetadata": {"p": {"k": 1}}},
        {"type": "reasoning-delta", "id": "rs-1", "delta": "hm"},
        {"type": "reasoning-end", "id": "rs-1"},
    ]


@pytest.mark.requirement("TA-28", "TA-58")
def test_files_and_starts_of_steps_are_chunks() -> None:
    file = {"type": "file", "url": "data:,x", "mediaType": "text/plain", "filename": "x.txt"}
    assert [one.part for one in encoded({"type": "step-start"}, file)] == [{"type": "start-step"}, file]


@pytest.mark.requirement("TA-29")
def test_a_part_that_a_handler_recognises_becomes_its_native_part() -> None:
    part = {"type": "data-app-mention", "id": "mention:ann", "data": {"principalId": "ann"}}
    assert encoded(part) == [EventPart("bubble-v1", {"kind": "mention", "principalId": "ann"})]


@pytest.mark.requirement("TA-30", "TA-03")
def test_parts_of_the_core_become_what_they_came_from() -> None:
    payload: Any = {"kind": "novel", "x": [1, None]}
    event = {"type": "data-bubble-agent-event", "id": "e", "data": {"name": "thinking", "data": 1}}
    assert encoded({"type": "data-bubble-extension", "data": payload}, event) == [
        EventPart("bubble-v1", payload),
        EventPart("bubble-v1", {"kind": "agent_event", "name": "thinking", "data": 1, "id": "e"}),
    ]


@pytest.mark.requirement("TA-32")
@pytest.mark.parametrize(
    ("part", "reason"),
    [
        ({"type": "tool-search", "toolCallId": "c"}, "tool-search"),
        ({"type": "data-bubble-approval", "data": {}}, "data-bubble-approval"),
        ({"type": "source-url", "url": "x"}, "source-url"),
        ({"type": "text"}, "`text` must be a string"),
        ({"type": "file", "url": "x"}, "`mediaType` must be a string"),
        ({"type": "data-bubble-extension", "data": 7}, "must be an object"),
        ({"type": "data-bubble-extension", "data": {"kind": 7}}, "no string `kind`"),
        ({"type": "data-bubble-extension", "data": {"kind": "x", "y": float("inf")}}, "not JSON"),
        ({"type": "text", "text": "a", "providerMetadata": {"p": {"k": float("nan")}}}, "not JSON"),
        ({"type": "data-bubble-agent-event", "data": {"data": 1}}, "needs a `name`"),
        ({"type": "data-bubble-agent-event", "data": {"name": "empty", "data": 1}}, '"empty" has no data'),
        ({"type": "data-bubble-agent-event", "id": 7, "data": {"name": "x"}}, "`id` must be a string"),
        ({"type": "data-bubble-agent-event", "data": {"name": "x", "more": 1}}, "only `name` and `data`"),
        ({"type": "data-bubble-extension", "id": "e", "data": {"kind": "x"}}, "has no `id`"),
        ({"type": "data-bubble-extension", "data": {"kind": "agent_event", "name": "x"}}, "shows as something else"),
        ({"type": "data-bubble-extension", "data": {"kind": "mention", "principalId": "a"}}, "shows as something else"),
        (
            {
                "type": "data-bubble-extension",
                "data": {"kind": "reaction", "targetSeq": 1, "emoji": "x", "op": "add"},
            },
            "shows as something else",
        ),
        ({"type": "file", "url": "x", "mediaType": "y", "filename": 5}, "`filename` must be a string"),
        ({"type": "reasoning", "id": 5, "text": "x"}, "`id` must be a string"),
        ({"type": "data-app-mention"}, "the handler of 'mention' stumbles over it (KeyError: 'data')"),
        ({"text": "no type"}, "object with a string `type`"),
        (7, "object with a string `type`"),
    ],
)
def test_what_nobody_knows_how_to_say_is_refused_by_its_place(part: object, reason: str) -> None:
    with pytest.raises(InvalidRequest, match=r"`\$\.parts\[1\]`") as refused:
        encoded({"type": "text", "text": "a"}, part)
    assert reason in str(refused.value)


@pytest.mark.requirement("TA-32")
@pytest.mark.parametrize("message", [{}, {"parts": "text"}, {"parts": {"0": 1}}, 5])
def test_a_message_without_a_list_of_parts_is_refused(message: Any) -> None:  # noqa: ANN401 - wrong ones
    with pytest.raises(InvalidRequest, match=r"`\$\.parts` must be a list"):
        run(ASSEMBLER.encode(message))


@pytest.mark.requirement("TA-36")
def test_a_part_that_two_handlers_claim_is_refused() -> None:
    class Rival(Given):
        def from_ui_part(self, part: MessagePart) -> NativePart | None:
            return {"kind": "given"} if part["type"] == "data-app-mention" else None

    assembler = create_assembler(part_handlers=[Mentions(), Rival()])
    part = {"type": "data-app-mention", "data": {"principalId": "ann"}}
    with pytest.raises(InvalidRequest, match="'mention' and 'given' both claim it"):
        run(assembler.encode({"parts": [part]}))


def test_the_data_of_an_agent_event_does_not_make_something_else_of_it() -> None:
    reaction: Any = {"kind": "reaction", "targetSeq": 1, "emoji": "x", "op": "add"}
    part = {"type": "data-bubble-agent-event", "data": {"name": "mood", **reaction}}
    with pytest.raises(InvalidRequest, match="only `name` and `data`"):
        encoded(part)
    event = {"type": "data-bubble-agent-event", "data": {"name": "mood", "data": reaction}}
    assert encoded(event) == [EventPart("bubble-v1", {"kind": "agent_event", "name": "mood", "data": reaction})]


@pytest.mark.requirement("TA-32")
def test_an_extension_part_of_a_known_kind_that_shows_as_it_is_can_be_sent() -> None:
    part = {"type": "data-bubble-extension", "data": {"kind": "artifact", "op": "novel"}}
    assert assembled(encoded(part)) == [part]


@pytest.mark.requirement("TA-32")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            {"type": "data-bubble-artifact", "id": "a", "data": {"artifactId": "a", "text": "1"}},
            {"type": "data-bubble-artifact", "data": {"artifactId": "a", "text": "2"}},
        ),
        (
            {"type": "data-bubble-agent-event", "id": "e", "data": {"name": "x"}},
            {"type": "data-bubble-agent-event", "id": "e", "data": {"name": "y"}},
        ),
    ],
)
def test_a_part_that_would_take_the_place_of_another_is_refused(one: object, other: object) -> None:
    with pytest.raises(InvalidRequest, match=r"`\$\.parts\[2\]`.*takes the place of `\$\.parts\[0\]`"):
        encoded(one, {"type": "text", "text": "a"}, other)


@pytest.mark.requirement("TA-32")
def test_steps_alone_show_nothing_and_are_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"`\$\.parts` .*start of a step"):
        encoded({"type": "step-start"}, {"type": "step-start"})


@pytest.mark.requirement("TA-32")
def test_a_part_whose_own_handler_does_not_know_what_it_makes_of_it_is_refused() -> None:
    class Forgetful(Given):
        def from_ui_part(self, part: MessagePart) -> NativePart | None:
            return {"kind": "given"} if part["type"] == "data-given" else None

    with pytest.raises(InvalidRequest, match="shows as something else"):
        run(create_assembler(part_handlers=[Forgetful()]).encode({"parts": [{"type": "data-given", "data": 1}]}))


@pytest.mark.requirement("TA-29")
@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        ({"kind": "mention"}, "'given' makes a native part of kind 'mention'"),
        ({}, "'given' makes a native part of kind None"),
        ("given", "'given' stumbles over it"),
    ],
)
def test_a_handler_cannot_make_a_part_of_anothers_kind(claim: Any, reason: str) -> None:  # noqa: ANN401 - wrong ones
    class Straying(Given):
        def from_ui_part(self, _: MessagePart) -> NativePart | None:
            return cast("NativePart", claim)

    assembler = create_assembler(part_handlers=[Straying()])
    with pytest.raises(InvalidRequest, match=rf"`\$\.parts\[0\]`.*{reason}"):
        run(assembler.encode({"parts": [{"type": "data-app-thing"}]}))


def test_what_a_handler_stumbled_over_is_kept_as_the_cause() -> None:
    with pytest.raises(InvalidRequest) as refused:
        encoded({"type": "data-app-mention"})
    assert isinstance(refused.value.__cause__, KeyError)


WORDS = st.text(st.characters(), max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=5,
)
NATIVES = st.dictionaries(WORDS, JSON, max_size=3).map(lambda payload: {**payload, "kind": "novel"})
PARTS = st.one_of(
    st.fixed_dictionaries({"type": st.just("text"), "text": WORDS, "state": st.just("done")}),
    st.fixed_dictionaries(
        {"type": st.just("reasoning"), "id": WORDS, "text": WORDS, "state": st.just("done")},
        optional={"providerMetadata": st.just({"p": {"k": 1}})},
    ),
    st.fixed_dictionaries({"type": st.just("file"), "url": WORDS, "mediaType": WORDS}, optional={"filename": WORDS}),
    st.fixed_dictionaries({"type": st.just("data-bubble-extension"), "data": NATIVES}),
    st.fixed_dictionaries({"type": st.just("step-start")}),
    WORDS.filter(bool).map(
        lambda who: {"type": "data-app-mention", "id": f"mention:{who}", "data": {"principalId": who}}
    ),
)


@pytest.mark.requirement("TA-97", "TA-31")
@given(st.lists(PARTS, max_size=6, unique_by=lambda part: part.get("id", id(part))))
def test_a_message_that_is_encoded_and_assembled_has_the_same_parts(parts: list[dict[str, object]]) -> None:
    wanted = [*parts, {"type": "text", "text": "last", "state": "done"}]
    events = encoded(*wanted)
    assert assembled(events) == wanted
    for event in events:
        if event.version == "ai-sdk-v6":
            validate_chunk(event.part)
