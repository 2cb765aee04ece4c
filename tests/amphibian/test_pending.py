"""What waits for the agent, and what is known of the bot's own runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pytest

from bubble.amphibian.bot_turns import BotTurns
from bubble.amphibian.pending import OwnRuns, PendingRun, PendingRuns, in_order, tool_called_in
from bubble.protocol.events import MessagePart, RunFinished, RunStarted, SequencedEvent, ToolCallResult, raw
from tests.amphibian.logs import ME, finish, log, part, said, start


def fed(events: Iterable[SequencedEvent]) -> PendingRuns:
    pending = PendingRuns()
    for stored in events:
        event = stored.event
        if isinstance(event, RunStarted):
            pending.start(stored, event)
        elif isinstance(event, MessagePart):
            pending.add(stored, event)
        elif isinstance(event, RunFinished):
            pending.finish(stored, event)
    return pending


def own(events: Iterable[SequencedEvent]) -> OwnRuns:
    runs = OwnRuns()
    for stored in events:
        event = stored.event
        if isinstance(event, RunStarted):
            runs.start(event)
        elif isinstance(event, MessagePart):
            runs.add(event)
    return runs


def ids(runs: Iterable[PendingRun]) -> list[str]:
    return [run.run_id for run in runs]


def ending(run: str, **more: str) -> RunFinished:
    return RunFinished(principal_id=ME, run_id=run, **more)  # type: ignore[arg-type]


def chunk(**members: object) -> MessagePart:
    return MessagePart(principal_id=ME, run_id="r", part=raw(members), version="ai-sdk-v6")


# --- runs of others -------------------------------------------------------------------------------------------------------------


def test_runs_wait_in_the_order_in_which_they_end() -> None:
    pending = fed(log(start("a"), start("b"), part("a"), finish("b"), finish("a"), start("c")))
    assert (ids(pending.finished), list(pending.open)) == (["b", "a"], ["c"])
    assert [stored.seq for stored in in_order(pending.take_finished())] == [1, 2, 3, 4, 5]
    assert ids(pending.finished) == []


@pytest.mark.requirement("AM-07")
@pytest.mark.parametrize("here", [[part("a"), finish("a")], [finish("a")]], ids=["a half", "its end alone"])
def test_a_run_whose_beginning_is_not_here_waits_for_it(here: Sequence[Mapping[str, object]]) -> None:
    pending = fed(log(*here, first=8))
    (run,) = pending.torn
    assert (ids(pending.finished), run.author, run.kind, run.begins_at) == ([], None, None, 8)
    pending.mend(run, log(start("a"), part("a"), first=3))
    assert (ids(pending.finished), pending.torn) == (["a"], ())
    assert (run.author, run.kind, list(run.seqs)) == ("alice", "user_input", [3, 4, *range(8, 8 + len(here))])


def test_a_run_whose_beginning_is_not_to_be_had_is_dropped() -> None:
    pending = fed(log(part("a"), finish("a")))
    pending.drop(pending.torn[0])
    assert (pending.torn, pending.finished, pending.open) == ((), (), {})


def test_what_is_kept_back_comes_first_again() -> None:
    pending = fed(log(said("a")))
    taken = pending.take_finished()
    for stored in log(start("b"), finish("b"), first=6):
        event = stored.event
        (pending.start if isinstance(event, RunStarted) else pending.finish)(stored, event)  # type: ignore[arg-type]
    pending.keep_back(taken)
    assert ids(pending.finished) == ["a", "b"]


def test_an_answer_takes_away_what_had_ended_when_it_began() -> None:
    pending = fed(log(said("a"), said("b"), said("c")))
    assert ids(pending.take_answered(10)) == ["a", "b"]
    assert ids(pending.finished) == ["c"]


def test_an_answer_takes_away_what_is_torn_as_well() -> None:
    pending = fed(log(finish("a"), finish("b")))
    assert ids(pending.take_answered(1)) == ["a"]
    assert ids(pending.torn) == ["b"]


# --- own runs -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "answered"),
    [
        ({}, 7),
        ({"outcome": "success"}, 7),
        ({"outcome": "failed"}, None),
        ({"outcome": "lost"}, None),
        ({"outcome": "interrupted"}, None),
    ],
)
def test_an_own_run_answered_what_it_began_from_unless_it_was_cut_off(
    more: Mapping[str, str], answered: int | None
) -> None:
    runs = own(log(start("a", ME, snapshot=7)))
    assert runs.is_open("a")
    assert runs.finish(ending("a", **more)) == answered
    assert not runs.is_open("a")


def test_a_run_that_somebody_asked_to_stop_answered_its_question() -> None:
    runs = own(log(start("a", ME, snapshot=7)))
    runs.interrupt("a")
    assert runs.finish(ending("a", outcome="interrupted")) == 7


def test_a_run_that_says_not_what_it_began_from_answered_nothing_that_is_known() -> None:
    assert own(log(start("a", ME))).finish(ending("a")) is None
    assert OwnRuns().finish(ending("unknown")) is None


@pytest.mark.parametrize(
    ("part", "called"),
    [
        (chunk(type="tool-input-start", toolCallId="c", toolName="t"), ("c", "t")),
        (chunk(type="tool-input-available", toolCallId="c", toolName="t", input={"a": "\ud83d"}), ("c", "t")),
        (chunk(type="tool-input-available", toolCallId="c", input={}), ("c", None)),
        (chunk(type="tool-input-delta", toolCallId="c", inputTextDelta="{"), None),
        (chunk(type="tool-input-start", toolCallId="", toolName="t"), None),
        (chunk(type="tool-input-start", toolCallId=7), None),
        (chunk(type="text-delta", id="1", delta='"tool-input-start"'), None),
    ],
)
def test_a_tool_call_is_told_by_its_input(part: MessagePart, called: tuple[str, str | None] | None) -> None:
    assert tool_called_in(part) == called


def test_the_name_of_a_tool_is_remembered_however_its_input_came() -> None:
    runs = OwnRuns()
    runs.add(chunk(type="tool-input-start", toolCallId="c", toolName="t"))
    runs.add(chunk(type="tool-input-available", toolCallId="c", input={}))
    assert (runs.knows_call("r", "c"), runs.tool_name("r", "c"), runs.knows_call("r", "d")) == (True, "t", False)


def test_of_very_many_calls_the_newest_are_remembered() -> None:
    runs = OwnRuns()
    for number in range(1_500):
        runs.add(chunk(type="tool-input-start", toolCallId=f"c{number}", toolName="t"))
    assert [runs.knows_call("r", f"c{number}") for number in (0, 499, 500, 1_499)] == [False, False, True, True]


def result(call: str) -> ToolCallResult:
    return ToolCallResult(principal_id="alice", run_id="r", tool_call_id=call, input=raw({}), output=raw(1))


@pytest.mark.parametrize("called", [True, False], ids=["a call that went by", "one that did not"])
def test_the_first_result_of_a_call_counts(called: bool) -> None:  # noqa: FBT001 - a parameter of the test
    runs = OwnRuns()
    if called:
        runs.add(chunk(type="tool-input-start", toolCallId="c", toolName="t"))
    assert [runs.take_result(result(call)) for call in ("c", "d", "c", "d")] == [True, True, False, False]


def test_of_very_many_results_the_newest_are_remembered() -> None:
    runs = OwnRuns()
    for number in range(1_500):
        runs.take_result(result(f"c{number}"))
    assert [runs.take_result(result(f"c{number}")) for number in (1_499, 600, 0)] == [False, False, True]


# --- bots among themselves ------------------------------------------------------------------------------------------------------


def run(kind: str | None) -> PendingRun:
    return PendingRun("r", kind=kind)  # type: ignore[arg-type]


def test_a_person_among_them_begins_the_count_anew() -> None:
    turns = BotTurns(2)
    kinds = ["agent_work", None, "user_input", "agent_work", "system_work", "agent_work", "user_input"]
    assert [turns.allow([run(kind)]) for kind in kinds] == [True, True, True, True, True, False, True]


def test_in_a_pause_what_others_say_waits_for_a_person() -> None:
    turns = BotTurns(0)
    assert not turns.keeps_waiting([run("agent_work")])
    assert not turns.allow([run("agent_work")])
    assert turns.keeps_waiting([run("agent_work")])
    assert not turns.keeps_waiting([run("agent_work"), run("user_input")])


def test_of_what_was_said_in_a_pause_the_newest_fifty_runs_are_kept() -> None:
    runs = [PendingRun(f"r{number}") for number in range(60)]
    assert ids(BotTurns(0).those_to_keep(runs)) == [f"r{number}" for number in range(10, 60)]
