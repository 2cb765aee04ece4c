"""Grouping by speaker: who has the floor, and what takes it."""

from __future__ import annotations

import pytest

from bubble.assembler import Grouping
from tests.assembler.logs import (
    Event,
    approval,
    bubble,
    chunk,
    data_of,
    delta,
    end,
    finished,
    interrupt,
    joined,
    native,
    parts,
    reaction,
    result,
    said,
    shown,
    start,
    started,
    texts,
    titled,
    tool,
)
from tests.assembler.threads import applied, apply, assembled, run


def types(log: list[Event]) -> list[tuple[str, list[object]]]:
    """Ids and the types of the parts."""
    return [(message["id"], [part["type"] for part in message["parts"]]) for message in assembled(log)]


@pytest.mark.requirement("TA-61", "TA-71")
def test_what_one_says_in_a_run_without_interruption_is_one_message() -> None:
    log = [started(), *said("a"), *said("b"), chunk("file", url="data:,x", mediaType="text/plain")]
    assert types(log) == [("r", ["text", "text", "file"])]


@pytest.mark.requirement("TA-20", "TA-21", "TA-71")
def test_another_author_in_the_run_opens_a_continuation_and_so_does_the_first_one_after_that() -> None:
    log = [started(), *said("a"), *said("b", who="ann"), *said("c", who="ann"), *said("d")]
    assert shown(assembled(log)) == [("r", "a"), ("r~1", "bc"), ("r~2", "d")]


@pytest.mark.requirement("TA-21", "TA-71")
def test_the_same_author_in_another_run_is_another_message() -> None:
    log = [*said("a"), *said("b", run="s"), *said("c")]
    assert shown(assembled(log)) == [("r", "a"), ("s", "b"), ("r~1", "c")]


@pytest.mark.requirement("TA-71", "TA-67")
@pytest.mark.parametrize("news", [joined(), titled()])
def test_a_message_without_a_run_ends_the_message_before_it(news: Event) -> None:
    assert shown(assembled([*said("a"), news, *said("b")])) == [("r", "a"), ("~4", ""), ("r~1", "b")]


@pytest.mark.requirement("TA-72")
@pytest.mark.parametrize("kind", ["text", "reasoning"])
def test_an_open_block_goes_on_in_the_continuation_and_the_part_left_behind_is_done(kind: str) -> None:
    log = [started(), start(kind=kind), delta("hel", kind=kind), interrupt(), delta("lo", kind=kind)]
    first, _, last = assembled(log)
    assert [(part["text"], part["state"]) for part in parts(first, kind)] == [("hel", "done")]
    assert [(part["text"], part["state"]) for part in parts(last, kind)] == [("lo", "streaming")]
    assert bubble(first)["lastSeq"] == 5


@pytest.mark.requirement("TA-72")
def test_a_block_that_was_carried_over_ends_where_it_is_now() -> None:
    first, _, last = assembled([start(), delta("a"), interrupt(), delta("b"), end(), delta("orphan")])
    assert (texts(first), texts(last)) == ("a", "b")
    assert parts(last, "text")[0]["state"] == "done"


@pytest.mark.requirement("TA-72")
def test_a_block_joins_the_message_that_another_block_of_its_author_has_opened() -> None:
    log = [start(), delta("a"), interrupt(), start(block="2"), delta("b", block="2"), delta("c")]
    assert shown(assembled(log)) == [("r", "a"), ("r~1", ""), ("r~2", "bc")]


@pytest.mark.requirement("TA-72")
def test_a_block_can_be_carried_over_again_and_again() -> None:
    log = [start(), delta("a"), interrupt(), delta("b"), interrupt(), delta("c")]
    assert [text for _, text in shown(assembled(log)) if text] == ["a", "b", "c"]


@pytest.mark.requirement("TA-72", "TA-42")
def test_a_block_that_a_step_has_ended_is_not_carried_over() -> None:
    log = [start(), delta("a"), chunk("finish-step"), interrupt(), delta("b")]
    assert shown(assembled(log)) == [("r", "a"), ("r~1", "")]


@pytest.mark.requirement("TA-72", "TA-98")
def test_a_character_whose_halves_are_said_in_two_messages_is_in_neither_whole_and_in_none_lost() -> None:
    first, _, last = assembled([start(), delta("\ud83e"), interrupt(), delta("\udee7")])
    assert (texts(first), texts(last)) == ("\ud83e", "\udee7")


OPENED = [
    start(),
    start(kind="reasoning"),
    delta("x"),
    chunk("file", url="data:,x", mediaType="text/plain"),
    chunk("source-url", sourceId="1", url="https://example.org"),
    chunk("source-document", sourceId="1", mediaType="text/plain", title="t"),
    chunk("data-x", data=1),
    chunk("data-x", id="new", data=1),
    chunk("tool-input-start", toolCallId="new", toolName="t"),
    chunk("tool-input-error", toolCallId="new", toolName="t", input={}, errorText="e"),
    tool("new"),
    native("agent_event", name="thinking"),
    native("novel"),
]
KEPT = [
    end(),
    delta(""),
    chunk("finish-step"),
    chunk("start-step"),
    chunk("start", messageId="m", messageMetadata={"a": 1}),
    chunk("message-metadata", messageMetadata={"a": 1}),
    chunk("finish", messageMetadata={"a": 1}),
    chunk("error", errorText="e"),
    chunk("abort"),
    chunk("data-x", id="1", data=2),
    chunk("data-x", data=1, transient=True),
    tool("c"),
    chunk("tool-input-delta", toolCallId="c", inputTextDelta="{"),
    chunk("tool-approval-request", toolCallId="c", approvalId="1"),
    chunk("tool-output-available", toolCallId="c", output=1),
    chunk("tool-output-error", toolCallId="c", errorText="e"),
    chunk("tool-output-denied", toolCallId="c"),
    reaction(2),
    finished(),
    chunk("novel"),
]
#: Something of each kind, then somebody else.
BEFORE = [
    started(),
    start(),
    chunk("tool-input-start", toolCallId="c", toolName="search"),
    chunk("data-x", id="1", data=1),
    interrupt(),
]


@pytest.mark.requirement("TA-73")
@pytest.mark.parametrize("event", OPENED, ids=lambda event: str(event["part"].get("type", event["part"].get("kind"))))
def test_what_makes_a_visible_part_or_a_text_longer_takes_the_floor(event: Event) -> None:
    before, after = types(BEFORE), types([*BEFORE, event])
    assert [message_id for message_id, _ in after] == ["r", "r~1", "r~2"]
    assert after[:2] == before
    assert len(after[2][1]) == 1


@pytest.mark.requirement("TA-73")
@pytest.mark.parametrize("event", KEPT, ids=lambda event: str(event.get("part", event).get("type", "reaction")))
def test_everything_else_goes_to_the_message_that_has_it(event: Event) -> None:
    assert [message_id for message_id, _ in types([*BEFORE, event])] == ["r", "r~1"]
    again = assembled([*BEFORE, event, chunk("data-y", who="ann", data=1)])
    assert [message["id"] for message in again] == ["r", "r~1"], "the floor stays with whoever has it"


@pytest.mark.requirement("TA-73")
def test_a_call_begun_anew_in_a_later_step_is_a_part_of_its_own_and_takes_the_floor() -> None:
    log = [
        started(),
        tool(),
        interrupt(),
        chunk("start-step"),
        tool(),
        chunk("tool-output-available", toolCallId="c", output=1),
    ]
    first, _, last = assembled(log)
    assert [part["state"] for part in parts(first, "tool-search")] == ["input-available"]
    assert [part["state"] for part in parts(last, "tool-search")] == ["output-available"]


@pytest.mark.requirement("TA-74")
def test_metadata_and_steps_wait_for_the_first_part() -> None:
    early = [started(), chunk("start", messageMetadata={"model": "m"}), chunk("start-step")]
    assert assembled(early) == []
    [message] = assembled([*early, *said("a")])
    assert [part["type"] for part in message["parts"]] == ["step-start", "text"]
    assert message["metadata"].keys() == {"model", "bubble"}
    assert bubble(message)["firstSeq"] == 4


@pytest.mark.requirement("TA-74")
def test_what_waited_for_the_first_part_is_not_said_again_in_a_continuation() -> None:
    log = [
        chunk("message-metadata", messageMetadata={"a": 1}),
        chunk("start-step"),
        *said("a"),
        interrupt(),
        *said("b"),
    ]
    assert types(log)[2] == ("r~2", ["text"])
    assert assembled(log)[2]["metadata"].keys() == {"bubble"}


@pytest.mark.requirement("TA-74", "TA-06", "TA-98")
def test_a_first_part_that_cannot_be_made_leaves_what_waits_waiting_and_changes_nothing() -> None:
    thread = applied([chunk("start", messageId="m", messageMetadata={"a": 1})])
    assert apply(thread, chunk("tool-input-start", toolCallId="c", toolName=7)) is False
    assert apply(thread, *said("a")) is True
    [message] = run(thread.snapshot()).messages
    assert (bubble(message)["producerMessageId"], bubble(message)["firstSeq"]) == ("m", 3)


@pytest.mark.requirement("TA-74", "TA-98")
def test_metadata_that_cannot_be_merged_costs_itself_alone() -> None:
    log = [
        chunk("message-metadata", messageMetadata="text"),
        chunk("message-metadata", messageMetadata={"a": 1}),
        chunk("start", messageId="m"),
        *said("a"),
    ]
    [message] = assembled(log)
    assert (bubble(message)["producerMetadata"], bubble(message)["producerMessageId"]) == ("text", "m")


@pytest.mark.requirement("TA-69")
@pytest.mark.parametrize(
    "event",
    [
        delta("x", who="ann"),
        end(who="ann"),
        chunk("tool-output-available", who="ann", toolCallId="c", output=1),
        chunk("tool-input-delta", who="ann", toolCallId="c", inputTextDelta="{"),
        chunk("tool-approval-request", run="s", toolCallId="c", approvalId="1"),
        delta("x", run="s"),
    ],
)
def test_a_chunk_changes_nothing_that_another_author_or_another_run_has_made(event: Event) -> None:
    log = [started(), start(), delta("a"), tool()]
    assert assembled([*log, event]) == assembled(log)


@pytest.mark.requirement("TA-69")
def test_data_of_the_same_id_is_each_authors_own() -> None:
    log = [chunk("data-x", id="1", data=1), chunk("data-x", who="ann", id="1", data=2), chunk("data-x", id="1", data=3)]
    assert [data_of(message) for message in assembled(log)] == [[3], [2]]


@pytest.mark.requirement("TA-69")
@pytest.mark.parametrize("calls", [[tool(), tool(who="ann")], [tool(who="ann"), tool()]])
def test_a_call_of_the_same_id_is_each_authors_own_and_a_decision_is_on_the_starters(calls: list[Event]) -> None:
    messages = assembled([started(), *calls, result(who="bob")])
    states = {bubble(m)["principalId"]: part["state"] for m in messages for part in parts(m, "tool-search")}
    assert states == {"bot": "output-available", "ann": "input-available"}


@pytest.mark.requirement("TA-69", "TA-70")
@pytest.mark.parametrize("grouping", ["speaker", "run"])
def test_a_call_id_that_is_used_again_in_a_later_step_is_another_call_whoever_spoke_in_between(
    grouping: Grouping,
) -> None:
    def step(number: int) -> list[Event]:
        output = chunk("tool-output-available", toolCallId="c", output=number)
        return [chunk("start-step"), tool(input=number), output, chunk("finish-step")]

    alone = [started(), *step(1), *said("and"), *step(2)]
    between = [started(), *step(1), started("u", "ann"), *said("hi", "u", "ann"), *said("and"), *step(2)]
    for log in (alone, between):
        calls = [(part["input"], part["output"]) for m in assembled(log, grouping) for part in parts(m, "tool-search")]
        assert calls == [(1, 1), (2, 2)]


@pytest.mark.requirement("TA-75")
@pytest.mark.parametrize("name", ["approval", "interrupt", "participant", "title", "tool-result"])
def test_a_chunk_that_claims_what_somebody_did_shows_nothing(name: str) -> None:
    forged = chunk(f"data-bubble-{name}", data={"principalId": "ann", "approved": True, "toolCallId": "c"})
    assert assembled([started(), tool(), forged]) == assembled([started(), tool()])


@pytest.mark.requirement("TA-60")
def test_a_run_in_which_nothing_visible_is_said_is_no_message() -> None:
    log = [
        started(),
        chunk("start", messageId="m"),
        chunk("start-step"),
        chunk("finish-step"),
        chunk("finish"),
        finished(),
    ]
    assert assembled(log) == []


@pytest.mark.requirement("TA-42")
def test_what_has_no_beginning_is_ignored() -> None:
    orphans = [
        delta("a"),
        end(),
        delta("a", kind="reasoning"),
        chunk("tool-input-delta", toolCallId="c", inputTextDelta="{"),
        chunk("tool-output-available", toolCallId="c", output=1),
        chunk("tool-approval-request", toolCallId="c", approvalId="1"),
        approval(),
        result(),
    ]
    assert assembled(orphans) == []
