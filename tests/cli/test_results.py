"""Giving tool calls their results, with and without saying which."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from bubble.client import BubbleConnection
from tests.cli.conftest import Shell, carry_out
from tests.cli.test_deciding import bot, last_event, puts, thread

__all__ = ["bot", "thread"]


def calls(shell: Shell, thread: str, run_id: str, *ids: str, outcome: str | None = "success") -> None:
    """A run that calls a tool `weather` under each of these ids; it ends with the outcome, if one is given."""
    all_call(shell, thread, [run_id], *ids, outcome=outcome)


def all_call(shell: Shell, thread: str, run_ids: Sequence[str], *ids: str, outcome: str | None = "success") -> None:
    """The same for several runs, one after the other."""

    async def work(bubble: BubbleConnection) -> None:
        me = (await bubble.who_am_i()).principal_id
        await bubble.append_events(thread, [event for run_id in run_ids for event in _run(me, run_id, ids, outcome)])

    carry_out(work, shell)


def _run(me: str, run_id: str, ids: Sequence[str], outcome: str | None) -> Iterator[dict[str, object]]:
    about = {"principalId": me, "runId": run_id}
    yield {"type": "run_started", **about, "kind": "agent_work"}
    for call in ids:
        part = {"type": "tool-input-available", "toolCallId": call, "toolName": "weather", "input": {"city": "Oslo"}}
        yield {"type": "message_part", **about, "version": "ai-sdk-v6", "part": part}
    if outcome is not None:
        yield {"type": "run_finished", **about, "outcome": outcome}


def chats(shell: Shell, thread: str, count: int) -> None:
    """So many messages in which no tool is called."""

    async def work(bubble: BubbleConnection) -> None:
        me = (await bubble.who_am_i()).principal_id
        for first in range(0, count, 250):
            numbers = range(first, min(first + 250, count))
            await bubble.append_events(thread, [event for number in numbers for event in _chat(me, f"chat-{number}")])

    carry_out(work, shell)


def _chat(me: str, run_id: str) -> Iterator[dict[str, object]]:
    about = {"principalId": me, "runId": run_id}
    yield {"type": "run_started", **about, "kind": "user_input"}
    part = {"type": "file", "url": "data:,x", "mediaType": "text/plain"}
    yield {"type": "message_part", **about, "version": "ai-sdk-v6", "part": part}
    yield {"type": "run_finished", **about}


def given(shell: Shell, thread: str) -> tuple[object, ...]:
    """The result that was given last: the call, its input, its output."""
    event = last_event(shell, thread)
    assert event["type"] == "tool_call_result"
    return event["runId"], event["toolCallId"], event["input"], event["output"]


@pytest.mark.parametrize("outcome", [None, "success"])
def test_the_only_call_that_waits_gets_the_result_whether_its_run_goes_on_or_not(
    admin: Shell, bot: Shell, thread: str, outcome: str | None
) -> None:
    calls(bot, thread, "r1", "c1", outcome=outcome)
    said = admin("result", thread, '{"sky": "blue"}')
    assert (said.code, said.err.startswith("Gave weather its result, seq ")) == (0, True)
    assert given(admin, thread) == ("r1", "c1", {"city": "Oslo"}, {"sky": "blue"})
    assert f"No tool call waits for a result on {thread}." in admin.fails("result", thread, "again", code=1)


@pytest.mark.parametrize(
    ("words", "output"),
    [
        (["42"], 42),
        (["null"], None),
        (['"42"'], "42"),
        (["It", "is", "blue"], "It is blue"),
        (["NaN"], "NaN"),
        (["--text", "42"], "42"),
        (["--text", '{"sky"'], '{"sky"'),
        (["--text", ""], ""),
    ],
)
def test_what_is_json_is_taken_for_that_and_anything_else_for_text(
    admin: Shell, bot: Shell, thread: str, words: list[str], output: object
) -> None:
    calls(bot, thread, "r1", "c1")
    admin.ok("result", thread, *words)
    assert given(admin, thread)[-1] == output


def test_a_slip_in_json_is_not_sent(admin: Shell, bot: Shell, thread: str) -> None:
    calls(bot, thread, "r1", "c1")
    before = last_event(admin, thread)
    for slip in ("{sky: blue}", "[1,", '"blue', "[" * 100_000):
        assert "looks like JSON, but it is none" in admin.fails("result", thread, slip, code=2)
    assert "There is no result" in admin.fails("result", thread, "-", code=2, stdin=" \n")
    assert last_event(admin, thread) == before


def test_a_result_may_be_long_and_come_from_a_file_or_a_pipe(
    admin: Shell, bot: Shell, thread: str, tmp_path: Path
) -> None:
    calls(bot, thread, "r1", "c1")
    admin.ok("result", thread, stdin='{"sky": "blue"}\n')
    assert given(admin, thread)[-1] == {"sky": "blue"}
    calls(bot, thread, "r2", "c2")
    (tmp_path / "answer").write_text("word " * 10_000, encoding="utf-8-sig")
    admin.ok("result", thread, "--file", str(tmp_path / "answer"))
    assert given(admin, thread)[-1] == "word " * 10_000
    (tmp_path / "image").write_bytes(b"\xff\x00")
    assert "is no text" in admin.fails("result", thread, "--file", str(tmp_path / "image"), code=2)
    assert "cannot be read" in admin.fails("result", thread, "--file", str(tmp_path / "nowhere"), code=2)
    assert "either given or in a file" in admin.fails("result", thread, "x", "--file", "y", code=2)


def test_the_first_result_counts(admin: Shell, bot: Shell, thread: str) -> None:
    calls(bot, thread, "r1", "c1", "c2")
    admin.ok("result", thread, "blue", "--call", "c1")
    before = last_event(admin, thread)
    said = "weather (r1 c1) has a result already, and the first one counts; "
    assert said in admin.fails("result", thread, "red", "--call", "c1", code=1)
    assert last_event(admin, thread) == before
    admin.ok("result", thread, "red")
    assert given(admin, thread)[1] == "c2"


def test_a_result_that_the_agent_could_not_be_given_is_given_again_on_purpose_alone(
    admin: Shell, bot: Shell, thread: str
) -> None:
    calls(bot, thread, "r1", "c1", "c2")
    assert "--again needs the --call" in admin.fails("result", thread, "blue", "--again", code=2)
    assert "leave --again out" in admin.fails("result", thread, "blue", "--call", "c1", "--again", code=1)
    admin.ok("result", thread, "blue", "--call", "c1")
    admin.ok("result", thread, "blue", "--call", "c1", "--again")
    assert given(admin, thread) == ("r1", "c1", {"city": "Oslo"}, "blue")


@pytest.mark.parametrize(
    ("chunks", "reason"),
    [
        ([{"type": "tool-output-available", "output": "real"}], "has its output already"),
        ([{"type": "tool-output-error", "errorText": "broken"}], "has failed already"),
        ([{"type": "tool-approval-request", "approvalId": "c1"}, {"type": "tool-output-denied"}], "was not allowed"),
    ],
)
def test_a_call_of_which_something_came_already_is_not_given_a_result(
    admin: Shell, bot: Shell, thread: str, chunks: list[dict[str, object]], reason: str
) -> None:
    calls(bot, thread, "r1", "c1", outcome=None)
    puts(bot, thread, "r1", *({**chunk, "toolCallId": "c1"} for chunk in chunks))
    before = last_event(admin, thread)
    assert f"weather (r1 c1) {reason}" in admin.fails("result", thread, "fake", "--call", "c1", code=1)
    assert "No tool call waits" in admin.fails("result", thread, "fake", code=1)
    assert last_event(admin, thread) == before


def test_a_call_that_was_rejected_is_not_given_a_result(admin: Shell, bot: Shell, thread: str) -> None:
    calls(bot, thread, "r1", "c1", outcome=None)
    puts(bot, thread, "r1", {"type": "tool-approval-request", "toolCallId": "c1", "approvalId": "c1"})
    admin.ok("approve", thread, "r1", "c1", "--reject")
    assert "weather (r1 c1) was rejected." in admin.fails("result", thread, "fake", "--call", "c1", code=1)


def test_an_output_that_is_preliminary_does_not_stand_in_the_way_of_a_result(
    admin: Shell, bot: Shell, thread: str
) -> None:
    calls(bot, thread, "r1", "c1", outcome=None)
    part = {"type": "tool-output-available", "toolCallId": "c1", "output": "so far", "preliminary": True}
    puts(bot, thread, "r1", part)
    admin.ok("result", thread, "blue", "--call", "c1")
    assert given(admin, thread)[-1] == "blue"


def test_a_call_that_waits_far_back_is_one_of_those_that_wait(admin: Shell, bot: Shell, thread: str) -> None:
    calls(bot, thread, "r1", "c1", outcome=None)
    chats(bot, thread, 210)
    calls(bot, thread, "r2", "c2", outcome=None)
    before = last_event(admin, thread)
    sentence = admin.fails("result", thread, "for whom?", code=2)
    assert f"2 tool calls wait on {thread}, say which --call: weather (r1 c1), weather (r2 c2)." in sentence
    assert last_event(admin, thread) == before
    admin.ok("result", thread, "blue", "--run", "r2")
    admin.ok("result", thread, "grey")
    assert given(admin, thread)[:2] == ("r1", "c1")


def test_a_thread_that_is_too_long_to_look_through_needs_the_calls_id(admin: Shell, bot: Shell, thread: str) -> None:
    calls(bot, thread, "r1", "c1", outcome=None)
    chats(bot, thread, 2_000)
    calls(bot, thread, "r2", "c2", outcome=None)
    assert "say which --call" in admin.fails("result", thread, "for whom?", code=2)
    admin.ok("result", thread, "blue", "--call", "c1")
    assert given(admin, thread)[:2] == ("r1", "c1")


def test_where_calls_of_several_runs_have_one_id_the_run_is_asked_for(admin: Shell, bot: Shell, thread: str) -> None:
    calls(bot, thread, "r1", "c1", outcome=None)
    calls(bot, thread, "r2", "c1", outcome=None)
    sentence = admin.fails("result", thread, "blue", "--call", "c1", code=2)
    assert f"2 tool calls wait on {thread}, say which --run: weather (r1 c1), weather (r2 c1)." in sentence
    admin.ok("result", thread, "blue", "--call", "c1", "--run", "r1")
    admin.ok("result", thread, "grey", "--call", "c1")
    assert given(admin, thread)[0] == "r2"


def test_where_several_calls_wait_they_are_named(admin: Shell, bot: Shell, thread: str) -> None:
    calls(bot, thread, "r1", "c1")
    calls(bot, thread, "r2", "c2")
    sentence = admin.fails("result", thread, "blue", code=2)
    assert f"2 tool calls wait on {thread}, say which --call: weather (r1 c1), weather (r2 c2)." in sentence
    admin.ok("result", thread, "blue", "--call", "c1")
    assert given(admin, thread)[:2] == ("r1", "c1")
    calls(bot, thread, "r3", "c3")
    admin.ok("result", thread, "blue", "--run", "r3")
    assert given(admin, thread)[:2] == ("r3", "c3")
    assert admin.json("result", thread, "blue") == last_event(admin, thread)
    assert given(admin, thread)[:2] == ("r2", "c2")


def test_a_call_is_named_however_far_back_it_is_and_whatever_became_of_it(
    admin: Shell, bot: Shell, thread: str
) -> None:
    calls(bot, thread, "r1", "c1", outcome="failed")
    assert "No tool call waits" in admin.fails("result", thread, "blue", code=1)
    all_call(bot, thread, [f"later-{number}" for number in range(210)], "x")
    admin.ok("result", thread, "blue", "--call", "c1")
    assert given(admin, thread)[:2] == ("r1", "c1")
    assert "Nobody else has made a call c9 on" in admin.fails("result", thread, "blue", "--call", "c9", code=2)


def test_ones_own_calls_and_look_alikes_are_none(
    admin: Shell, bot: Shell, thread: str, person: Callable[..., Shell]
) -> None:
    calls(admin, thread, "mine", "c1")
    calls(bot, thread, "r1", "c2", outcome=None)
    mallory = person(f"mal{thread[:8]}")
    admin.ok("grants", "put", thread, f"mal{thread[:8]}", "participant")
    for call in ("c2", "c3"):
        puts(mallory, thread, "r1", {"type": "tool-input-available", "toolCallId": call, "toolName": "rm", "input": {}})
    assert admin("result", thread, "blue").err.startswith("Gave weather its result")
    assert given(admin, thread)[:3] == ("r1", "c2", {"city": "Oslo"})
    for call in ("c1", "c3"):
        assert "Nobody else has made a call" in admin.fails("result", thread, "blue", "--call", call, code=2)
