"""What is told of a thread, when, and in which order."""

from __future__ import annotations

import pytest

from bubble.assembler import Grouping
from tests.assembler.logs import (
    approval,
    chunk,
    delta,
    end,
    finished,
    interrupt,
    joined,
    left,
    native,
    numbered,
    reaction,
    result,
    said,
    start,
    started,
    titled,
    tool,
)
from tests.cli.conversation.telling import Told, tell, told

pytestmark = pytest.mark.anyio


def question(text: str = "Why?", run: str = "q", who: str = "ann") -> list[dict[str, object]]:
    return [started(run, who, "user_input"), *said(text, run, who), finished(run, who)]


def test_a_message_stands_below_its_time_and_author() -> None:
    assert told(question("Is anybody there?")) == ["", "12:34:58  ann", "          Is anybody there?"]


def test_the_day_stands_above_and_says_that_times_are_utc() -> None:
    assert tell(numbered(question())).splitlines()[0] == "── 2026-05-06 (UTC) ──"


def test_who_comes_and_goes_and_what_the_thread_is_called_are_lines_that_stand_together() -> None:
    assert told(joined("bob"), joined("ann"), titled("Lunch"), left("ann"), left("bob"), question()) == [
        "12:34:57  bob joins",
        "12:34:58  bob adds ann",
        "12:34:59  bob calls the thread “Lunch”",
        "12:35:00  bob removes ann",
        "12:35:01  bob leaves",
        "",
        "12:35:03  ann",
        "          Why?",
    ]


def test_reasoning_has_a_mark() -> None:
    thought = [start(kind="reasoning"), delta("Hm.\nWell.", kind="reasoning"), end(kind="reasoning")]
    assert told(started(), thought, said("Because."), finished()) == [
        "",
        "12:34:58  bot",
        "          ┆ Hm.",
        "          ┆ Well.",
        "          Because.",
    ]


def test_a_tool_call_is_a_card_with_input_and_output() -> None:
    log = (started(), tool(input={"q": "Paris"}), chunk("tool-output-available", toolCallId="c", output={"t": 20}))
    assert told(*log, finished())[2:] == [
        "          ▸ search  done",
        '          │ {"q":"Paris"}',
        '          → {"t":20}',
    ]


@pytest.mark.parametrize(
    ("outcome", "lines"),
    [
        (chunk("tool-output-error", toolCallId="c", errorText="no network"), ["▸ search  failed", "✗ no network"]),
        (chunk("tool-output-available", toolCallId="c", output="a\nb"), ["▸ search  done", "→ a", "  b"]),
        (
            chunk("tool-output-available", toolCallId="c", output=1, preliminary=True),
            ["▸ search  so far", "→ 1"],
        ),
        (chunk("tool-approval-request", toolCallId="c", approvalId="c"), ["▸ search  waits for approval"]),
    ],
)
def test_a_card_says_how_the_call_is_going(outcome: dict[str, object], lines: list[str]) -> None:
    shown = told(started(), tool(), outcome)[2:]
    assert [line.strip() for line in shown if "│" not in line] == [line.strip() for line in lines]


def test_a_call_that_its_run_left_without_an_outcome_is_told_so() -> None:
    asked = chunk("tool-approval-request", toolCallId="c", approvalId="c")
    assert told(started(), tool(), asked, finished())[2] == "          ▸ search  has no outcome"


def test_a_decision_is_told_when_it_is_made_and_the_outcome_when_it_comes() -> None:
    asked = [tool(), chunk("tool-approval-request", toolCallId="c", approvalId="c")]
    outcome = [chunk("tool-output-available", toolCallId="c", output="found"), *said("Here it is.", block="2")]
    assert told(started(), asked, approval(), outcome, finished()) == [
        "",
        "12:34:58  bot",
        "          ▸ search  approved",
        '          │ {"q":1}',
        "",
        "12:35:00  ann approves search",
        "",
        "12:35:01  bot goes on",
        "          ▸ search  done",
        "          → found",
        "",
        "12:35:02  bot goes on",
        "          Here it is.",
    ]


def test_by_run_a_decision_stands_within_the_message_that_it_is_about() -> None:
    asked = [tool(), chunk("tool-approval-request", toolCallId="c", approvalId="c")]
    decided = approval(approved=False, reason="too dear")
    denied = chunk("tool-output-denied", toolCallId="c")
    assert told(started(), asked, decided, denied, said("Then not.", block="2"), finished(), grouping="run") == [
        "",
        "12:34:58  bot",
        "          ▸ search  was not allowed",
        '          │ {"q":1}',
        "          ann rejects search: too dear",
        "          Then not.",
    ]


def test_a_result_from_elsewhere_is_told_with_who_gave_it() -> None:
    lines = told(started(), tool(), result(output="42"), finished())
    assert "12:34:59  ann gives the result of search" in lines
    assert "          → 42" in lines


def test_a_request_to_stop_and_an_end_that_was_not_well_are_told() -> None:
    lines = told(started(), said("One, two"), interrupt(), finished(outcome="interrupted"))
    assert lines[3:] == ["", "12:35:01  ann asks bot to stop", "12:35:02  the run of bot was stopped"]


@pytest.mark.parametrize(("outcome", "words"), [("failed", "failed"), ("lost", "was lost")])
def test_an_end_is_told_once_per_run_however_many_messages_it_has(outcome: str, words: str) -> None:
    split = [*said("One"), *question(), *said("Two", block="2")]
    lines = told(started(), split, finished(outcome=outcome))
    assert sum(line.endswith(f"the run of bot {words}") for line in lines) == 1


def test_an_end_that_comes_with_what_follows_stands_below_its_run() -> None:
    log = (started(), said("One"), finished(outcome="failed"), question())
    assert told(*log, at_once=100) == [
        "",
        "12:34:58  bot",
        "          One",
        "          the run of bot failed",
        "",
        "12:35:03  ann",
        "          Why?",
    ]


def test_an_end_that_was_well_is_not_worth_a_word() -> None:
    assert "run" not in "".join(told(started(), said("Done."), finished(outcome="success")))


def test_an_error_is_told() -> None:
    assert (
        told(started(), said("One"), chunk("error", errorText="out of luck"), finished())[-1]
        == "          error: out of luck"
    )


@pytest.mark.parametrize("grouping", ["speaker", "run"])
def test_a_run_that_failed_before_it_said_anything_is_told_with_its_author_and_the_error(grouping: Grouping) -> None:
    log = numbered([started(), chunk("error", errorText="out of luck"), finished(outcome="failed")])
    assert tell(log, grouping=grouping).splitlines()[1:] == [
        "",
        "12:34:58  bot",
        "          error: out of luck",
        "          the run of bot failed",
    ]


async def test_an_error_is_told_once_whatever_its_author_says_afterwards() -> None:
    thread = Told()
    log = numbered([started(), chunk("error", errorText="out of luck"), *said("All the same."), finished()])
    for event in log:
        await thread.hear([event])
    assert thread.end().splitlines()[2:] == [
        "12:34:58  bot",
        "          error: out of luck",
        "          All the same.",
    ]


def test_who_is_interrupted_goes_on_below_a_heading_that_says_so() -> None:
    assert told(started(), start(), delta("One, two"), question(), delta(" three"), end(), finished()) == [
        "",
        "12:34:58  bot",
        "          One, two",
        "",
        "12:35:01  ann",
        "          Why?",
        "",
        "12:35:05  bot goes on",
        "          three",
    ]


def test_files_sources_and_artifacts_are_named() -> None:
    log = [
        chunk("file", url="data:text/plain;base64,aGVsbG8=", mediaType="text/plain", filename="hello.txt"),
        chunk("file", url="https://example.org/a.png", mediaType="image/png"),
        chunk("source-url", sourceId="s", url="https://example.org/", title="Example"),
        chunk("source-document", sourceId="d", mediaType="application/pdf", title="Paper", filename="p.pdf"),
        native("artifact", artifactId="a", op="create", name="Report", mediaType="text/markdown", text="# One\n"),
        native("artifact", artifactId="a", op="append", text="Two\n"),
        native("artifact", artifactId="b", op="delete"),
    ]
    assert told(started(), log, finished())[2:] == [
        "          ▫ file hello.txt  (text/plain, 5 bytes)",
        "          ▫ file  (image/png)  https://example.org/a.png",
        "          ▫ source Example  https://example.org/",
        "          ▫ source Paper  (p.pdf, application/pdf)",
        "          ▫ artifact Report  (text/markdown)",
        "          │ # One",
        "          │ Two",
        "          ▫ artifact b  deleted",
    ]


def test_events_and_data_of_kinds_of_their_own_are_named_and_shortened() -> None:
    log = [
        native("agent_event", name="plan", data=[1]),
        native("agent_event", name="empty"),
        native("mood", value="sunny"),
        chunk("data-weather", data={"long": "x" * 5_000}),
    ]
    lines = told(started(), log, finished())[2:]
    assert lines[:2] == ["          ▫ plan  [1]", '          ▫ mood  {"kind":"mood","value":"sunny"}']
    assert lines[2].startswith('          ▫ weather  {"long":"xxx')
    assert lines[2].endswith("characters)")
    assert len(lines) == 3


def test_a_reaction_names_what_it_is_about() -> None:
    later = told(question(), said("Yes.", "z", "bob"), reaction(3, who="bob"), reaction(3, who="bob", op="remove"))
    assert later[-2:] == [
        "12:35:05  bob reacts with 👍 to what ann said at 12:34:58",
        "12:35:06  bob takes back 👍 to what ann said at 12:34:58",
    ]
    assert told(question(), reaction(3, who="bob"))[-1] == "          bob reacts with 👍"


async def test_a_text_that_grows_is_told_line_by_line_and_its_last_line_stands_below() -> None:
    follow, log = Told(), numbered([started(), start(), delta("One\nTw"), delta("o\n\nThr"), delta("ee"), end()])
    seen = []
    for event in log:
        await follow.hear([event])
        seen.append((follow.so_far.splitlines()[3:], follow.growing.splitlines()[-1:]))
    assert seen[2] == (["          One"], ["          Tw▌"])
    assert seen[3] == (["          One", "          Two"], ["          Thr▌"])
    assert seen[5] == (["          One", "          Two", "", "          Three"], ["          …"])


async def test_a_call_stands_below_until_it_has_an_outcome() -> None:
    log = numbered([started(), tool(), chunk("tool-output-available", toolCallId="c", output=1)])
    follow = Told()
    await follow.hear(log[:2])
    assert (follow.so_far, "▸ search  runs" in follow.growing) == ("", True)
    await follow.hear(log[2:])
    assert ("▸ search  done" in follow.so_far, "search" in follow.growing) == (True, False)


async def test_at_the_end_what_still_grew_is_told_as_it_stands() -> None:
    follow = Told()
    await follow.hear(numbered([started(), start(), delta("One, tw")]))
    assert "One" not in follow.so_far
    assert follow.end().splitlines()[-1] == "          One, tw"


async def test_of_what_was_passed_over_only_what_changes_is_told() -> None:
    log = numbered([started(), tool(), *question(), chunk("tool-output-available", toolCallId="c", output=1)])
    follow = Told()
    await follow.pass_over(log[:-1])
    await follow.hear(log[-1:])
    assert follow.so_far.splitlines()[2:] == ["12:35:04  bot goes on", "          ▸ search  done", "          → 1"]


async def test_at_the_end_nothing_of_what_was_passed_over_is_told() -> None:
    follow = Told()
    await follow.pass_over(numbered([started(), tool(), start(), delta("One, tw")]))
    assert follow.end() == ""


async def test_of_a_text_that_grew_already_only_what_comes_is_told() -> None:
    log = numbered([started(), start(), delta("One, "), delta("two\nthree"), end(), finished()])
    follow = Told()
    await follow.pass_over(log[:3])
    await follow.hear(log[3:])
    assert follow.so_far.splitlines()[2:] == ["12:35:02  bot goes on", "          two", "          three"]


def test_data_that_is_replaced_often_is_told_again_only_when_that_is_over() -> None:
    states = [chunk("data-progress", id="p", data=n) for n in range(1, 9)]
    lines = told(started(), states[0], question(), states[1:], said("Done.", block="2"), finished())
    assert [line.strip() for line in lines if "progress" in line] == ["▫ progress  1", "▫ progress  8"]
