"""What people decide and do: in the state of a call, as a fact, or as a message of the thread's own."""

from __future__ import annotations

from typing import Any

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
    left,
    native,
    numbered,
    parts,
    reaction,
    result,
    said,
    start,
    started,
    titled,
    tool,
)
from tests.assembler.threads import applied, apply, assembled, run

CALL = [started(), tool()]


def the_call(log: list[Event], grouping: Grouping = "speaker") -> dict[str, Any]:
    """The part of the one call in a log."""
    [part] = [part for message in assembled(log, grouping) for part in parts(message, "tool-search")]
    return part


@pytest.mark.requirement("TA-63")
def test_an_approval_answers_the_call_and_says_who_gave_it() -> None:
    log = [*CALL, approval()]
    assert the_call(log)["state"] == "approval-responded"
    assert the_call(log)["approval"] == {"id": "c", "approved": True}
    assert assembled(log)[1]["parts"] == [
        {"type": "data-bubble-approval", "data": {"toolCallId": "c", "approved": True, "principalId": "ann"}}
    ]


ASKED = chunk("tool-approval-request", toolCallId="c", approvalId="q-1")
STREAMED = [chunk("tool-input-start", toolCallId="c", toolName="search"), tool()]


@pytest.mark.requirement("TA-63")
@pytest.mark.parametrize("grouping", ["speaker", "run"])
@pytest.mark.parametrize(
    "log",
    [
        [started(), approval(), tool(), ASKED],
        [started(), tool(), approval(), ASKED],
        [started(), approval(), *STREAMED, ASKED],
        [started(), approval(), *STREAMED],
        [started(), STREAMED[0], approval(), tool(), tool()],
        [started(), approval(), tool(who="ann"), tool(), ASKED],
    ],
)
def test_a_decision_that_came_before_the_calls_own_chunks_still_holds(log: list[Event], grouping: Grouping) -> None:
    calls = [
        part
        for message in assembled(log, grouping)
        for part in parts(message, "tool-search")
        if bubble(message)["principalId"] == "bot"
    ]
    assert [(call["state"], call["approval"]["approved"]) for call in calls] == [("approval-responded", True)]


@pytest.mark.requirement("TA-64")
def test_a_result_that_came_before_the_calls_own_chunks_still_holds() -> None:
    for log in ([started(), result(), *STREAMED], [*CALL, result(), ASKED], [*CALL, result(), tool()]):
        call = the_call(log)
        assert (call["state"], call["output"]) == ("output-available", "found")


@pytest.mark.requirement("TA-64")
@pytest.mark.parametrize("grouping", ["speaker", "run"])
@pytest.mark.parametrize(
    "log",
    [
        [*CALL, result(output=1), result(who="bob", output=2)],
        [*CALL[:1], result(output=1), result(who="bob", output=2), *CALL[1:]],
    ],
    ids=["after the call", "before the call"],
)
def test_of_two_results_the_first_one_counts_and_both_are_told(log: list[Event], grouping: Grouping) -> None:
    assert the_call(log, grouping)["output"] == 1
    told = [data for message in assembled(log, grouping) for data in data_of(message)]
    assert [(data["principalId"], data["output"]) for data in told] == [("ann", 1), ("bob", 2)]


@pytest.mark.requirement("TA-64")
def test_a_call_of_the_same_id_in_a_later_step_has_a_first_result_of_its_own() -> None:
    log = [*CALL, result(output=1), chunk("start-step"), tool(), result(output=2), result(output=3)]
    outputs = [part["output"] for message in assembled(log) for part in parts(message, "tool-search")]
    assert outputs == [1, 2]


def test_a_call_is_asked_for_again_in_a_later_step_where_nothing_was_decided_on_it() -> None:
    again = [chunk("start-step"), tool(), ASKED]
    log = [*CALL, result(), *again]
    assert [part["state"] for message in assembled(log) for part in parts(message, "tool-search")] == [
        "output-available",
        "approval-requested",
    ]


@pytest.mark.requirement("TA-63")
def test_a_rejection_tells_its_reason_and_keeps_what_was_asked() -> None:
    asked = chunk("tool-approval-request", toolCallId="c", approvalId="q-1", signature="s")
    log = [*CALL, asked, approval(approved=False, reason="no")]
    assert the_call(log)["approval"] == {"id": "q-1", "signature": "s", "approved": False, "reason": "no"}
    assert data_of(assembled(log)[1]) == [{"toolCallId": "c", "approved": False, "reason": "no", "principalId": "ann"}]


@pytest.mark.requirement("TA-63")
@pytest.mark.parametrize(
    "outcome",
    [
        chunk("tool-output-available", toolCallId="c", output=1),
        chunk("tool-output-error", toolCallId="c", errorText="e"),
        chunk("tool-output-denied", toolCallId="c"),
    ],
)
def test_an_approval_that_comes_after_the_outcome_is_told_and_changes_no_state(outcome: Event) -> None:
    settled = [*CALL, outcome]
    assert the_call([*settled, approval()]) == the_call(settled)
    assert len(assembled([*settled, approval()])) == 2


@pytest.mark.requirement("TA-64")
def test_a_result_settles_the_call_and_says_whose_it_is() -> None:
    log = [*CALL, result(output=[7])]
    assert the_call(log) == {
        "type": "tool-search",
        "toolCallId": "c",
        "state": "output-available",
        "input": {"q": 1},
        "output": [7],
    }
    assert data_of(assembled(log)[1]) == [{"toolCallId": "c", "input": {"q": 2}, "output": [7], "principalId": "ann"}]


@pytest.mark.requirement("TA-64")
@pytest.mark.parametrize(
    "begun",
    [
        [chunk("tool-input-available", toolCallId="c", toolName="search")],
        [chunk("tool-input-start", toolCallId="c", toolName="search")],
        [
            chunk("tool-input-start", toolCallId="c", toolName="search"),
            chunk("tool-input-delta", toolCallId="c", inputTextDelta='{"q'),
        ],
        [
            chunk("tool-input-start", toolCallId="c", toolName="search"),
            chunk("tool-input-delta", toolCallId="c", inputTextDelta='{"q":1,'),
            ASKED,
            approval(),
        ],
    ],
    ids=["no input ever", "no input yet", "half an input", "half an input that is asked about"],
)
@pytest.mark.parametrize("looks", [False, True], ids=["at the end", "after each"])
def test_a_result_brings_the_input_where_the_call_has_none_yet(begun: list[Event], *, looks: bool) -> None:
    thread = applied([])
    for seq, event in enumerate([started(), *begun, result()], 1):
        run(thread.apply(numbered([event], first=seq)))
        if looks:
            run(thread.snapshot())
    [part] = parts(run(thread.snapshot()).messages[0], "tool-search")
    assert (part["input"], part["output"], part["state"]) == ({"q": 2}, "found", "output-available")
    assert "rawInput" not in part


@pytest.mark.requirement("TA-63", "TA-64", "TA-69")
@pytest.mark.parametrize("grouping", ["speaker", "run"])
def test_decisions_find_the_call_whoever_made_it_and_wherever_it_is(grouping: Grouping) -> None:
    log = [started(), tool(who="ann"), *said("a"), approval(who="bob"), result(who="bob")]
    assert the_call(log, grouping)["state"] == "output-available"


@pytest.mark.requirement("TA-70")
@pytest.mark.parametrize("grouping", ["speaker", "run"])
def test_decisions_on_a_call_that_is_not_known_yet_show_nothing_until_it_is(grouping: Grouping) -> None:
    early = [started(), approval(), result()]
    thread = applied(early, grouping)
    assert run(thread.snapshot()).messages == ()
    assert apply(thread, tool()) is True
    messages = run(thread.snapshot()).messages
    assert [part["type"] for message in messages for part in message["parts"]] == [
        "tool-search",
        "data-bubble-approval",
        "data-bubble-tool-result",
    ]
    assert {bubble(message)["firstSeq"] for message in messages} == {4}
    assert parts(messages[0], "tool-search")[0]["state"] == "output-available"


@pytest.mark.requirement("TA-70")
def test_a_decision_that_waited_is_told_once() -> None:
    log = [started(), approval(), chunk("tool-input-start", toolCallId="c", toolName="search"), tool()]
    assert [len(message["parts"]) for message in assembled(log)] == [1, 1]


@pytest.mark.requirement("TA-70")
def test_a_call_in_another_run_is_not_the_call_that_a_decision_waits_for() -> None:
    assert len(assembled([approval(), tool(run="s")])) == 1


@pytest.mark.requirement("TA-65")
def test_an_interrupt_is_told_by_whoever_asked_for_it() -> None:
    _, message = assembled([started(), *said("a"), interrupt()])
    assert message["parts"] == [{"type": "data-bubble-interrupt", "data": {"principalId": "ann"}}]
    assert (message["role"], bubble(message)["principalId"], bubble(message)["runId"]) == ("user", "ann", "r")


@pytest.mark.requirement("TA-67")
@pytest.mark.parametrize("grouping", ["speaker", "run"])
def test_comings_goings_and_titles_are_messages_of_their_own(grouping: Grouping) -> None:
    messages = assembled([joined("ann", by="bob"), left("ann", by="ann"), titled("Lunch", by="bob")], grouping)
    assert [message["id"] for message in messages] == ["~1", "~2", "~3"]
    assert [message["parts"] for message in messages] == [
        [
            {
                "type": "data-bubble-participant",
                "data": {"action": "joined", "principalId": "ann", "byPrincipalId": "bob"},
            }
        ],
        [{"type": "data-bubble-participant", "data": {"action": "left", "principalId": "ann", "byPrincipalId": "ann"}}],
        [{"type": "data-bubble-title", "data": {"title": "Lunch", "byPrincipalId": "bob"}}],
    ]
    assert {message["role"] for message in messages} == {"system"}


@pytest.mark.requirement("TA-55", "TA-68")
def test_reactions_are_listed_on_the_message_that_holds_their_target_in_order() -> None:
    log = [started(), *said("a"), reaction(3), reaction(2, who="bob"), reaction(4, emoji="🫧"), reaction(3)]
    [message] = assembled(log)
    assert bubble(message)["reactions"] == {"👍": ["ann", "bob"], "🫧": ["ann"]}


@pytest.mark.requirement("TA-55", "TA-68")
def test_a_reaction_can_be_taken_away_and_leaves_no_trace() -> None:
    log = [started(), *said("a"), reaction(3), reaction(3, who="bob"), reaction(3, op="remove")]
    assert bubble(assembled(log)[0])["reactions"] == {"👍": ["bob"]}
    [message] = assembled([*log, reaction(3, who="bob", op="remove"), reaction(3, op="remove")])
    assert "reactions" not in bubble(message)


@pytest.mark.requirement("TA-68", "TA-06")
@pytest.mark.parametrize(
    "idle",
    [reaction(3), reaction(3, who="bob", op="remove"), *(reaction(target, emoji="🫧") for target in (99, 8, 1, 5))],
    ids=["again", "never added", "no such event", "a reaction", "an event of no message", "one amid a message"],
)
def test_a_reaction_that_makes_no_difference_changes_nothing(idle: Event) -> None:
    thread = applied([chunk("novel"), start(), delta("a"), delta("b"), chunk("novel"), delta("c"), end(), reaction(3)])
    assert apply(thread, idle) is False


@pytest.mark.requirement("TA-68")
@pytest.mark.parametrize("target", [1, 2, 3], ids=["run_started", "metadata", "an approval of a call to come"])
def test_a_reaction_on_an_event_whose_message_is_still_to_come_waits_for_it(target: int) -> None:
    early = [started(), chunk("start", messageId="m"), approval(), reaction(target)]
    assert assembled(early) == []
    reacted = [message for message in assembled([*early, tool()]) if "reactions" in bubble(message)]
    assert [message["id"] for message in reacted] == ["r~1" if target == 3 else "r"]


@pytest.mark.requirement("TA-68")
def test_every_kind_of_event_can_be_reacted_to() -> None:
    log = [*CALL, approval(), result(), interrupt(), joined(), *said("a"), finished()]
    for target in range(1, len(log) + 1):
        reacted = [one for one in assembled([*log, reaction(target)]) if "reactions" in bubble(one)]
        assert len(reacted) == 1, target


@pytest.mark.requirement("TA-39", "TA-98")
@pytest.mark.parametrize(
    "wrong",
    [
        {"targetSeq": "3", "emoji": "👍", "op": "add"},
        {"targetSeq": 3, "emoji": "", "op": "add"},
        {"targetSeq": 3, "emoji": "👍", "op": "\ud83d"},
        {"targetSeq": 0, "emoji": "👍", "op": "add"},
        {},
    ],
)
def test_a_reaction_of_the_wrong_shape_is_shown_as_it_is(wrong: dict[str, object]) -> None:
    messages = assembled([*said("a"), native("reaction", who="ann", run="q", **wrong)])
    assert messages[1]["parts"] == [{"type": "data-bubble-extension", "data": {"kind": "reaction", **wrong}}]
    assert "reactions" not in bubble(messages[0])
