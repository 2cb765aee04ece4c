"""Deciding on tool calls and stopping runs, with and without saying which."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from bubble.client import BubbleConnection
from tests.cli.conftest import Shell, carry_out


@pytest.fixture
def thread(admin: Shell) -> str:
    """A fresh thread of the administrator's."""
    return admin.ok("threads", "create").strip()


@pytest.fixture
def bot(admin: Shell, thread: str, person: Callable[..., Shell]) -> Shell:
    """Somebody else on the thread."""
    name = f"bot{thread[:8]}"
    shell = person(name)
    admin.ok("grants", "put", thread, name, "participant")
    return shell


def begins(shell: Shell, thread: str, run_id: str, *, asks: Sequence[str] = (), is_over: bool = False) -> None:
    """Starts a run in which these calls of a tool `refund` wait for a decision."""

    async def work(bubble: BubbleConnection) -> None:
        me = (await bubble.who_am_i()).principal_id
        about = {"principalId": me, "runId": run_id}
        events: list[dict[str, object]] = [{"type": "run_started", **about, "kind": "agent_work"}]
        for call in asks:
            ids = {"toolCallId": call, "toolName": "refund", "input": {"amount": 20}}
            events += [
                {"type": "message_part", **about, "version": "ai-sdk-v6", "part": part}
                for part in (
                    {"type": "tool-input-available", **ids},
                    {"type": "tool-approval-request", "toolCallId": call, "approvalId": call},
                )
            ]
        if is_over:
            events.append({"type": "run_finished", **about})
        await bubble.append_events(thread, events)

    carry_out(work, shell)


def last_event(shell: Shell, thread: str) -> dict[str, object]:
    import json

    said: dict[str, object] = json.loads(shell.ok("tail", thread, "--raw", "--last", "1", "--no-follow"))
    return said


def test_the_first_decision_on_a_tool_call_counts(admin: Shell, bot: Shell, thread: str) -> None:
    begins(bot, thread, "r1", asks=["call-1", "call-2"])
    admin.ok("approve", thread, "r1", "call-1", "--reject", "--reason", "wrong id")
    decision = {"approved": False, "reason": "wrong id", "toolCallId": "call-1"}
    assert last_event(admin, thread).items() >= decision.items()
    admin.fails("approve", thread, "r1", "call-1", code=1)
    admin.ok("approve", thread, "r1", "call-2")
    assert last_event(admin, thread)["approved"] is True


def test_the_only_call_that_waits_need_not_be_named(admin: Shell, bot: Shell, thread: str) -> None:
    begins(bot, thread, "r0", asks=["c0"], is_over=True)
    begins(bot, thread, "r1", asks=["c1"])
    result = admin("approve", thread)
    assert (result.code, result.err) == (0, "Approved refund, seq 10.\n")
    assert last_event(admin, thread).items() >= {"approved": True, "runId": "r1", "toolCallId": "c1"}.items()
    assert f"No tool call waits for your decision on {thread}." in admin.fails("approve", thread, code=1)


def test_the_only_call_that_waits_is_rejected_with_a_reason(admin: Shell, bot: Shell, thread: str) -> None:
    begins(bot, thread, "r1", asks=["c1"])
    said = admin.json("approve", thread, "--reject", "--reason", "too dear")
    assert isinstance(said, dict)
    assert (said["approved"], said["reason"], said["toolCallId"]) == (False, "too dear", "c1")


def test_where_several_calls_wait_they_are_named(admin: Shell, bot: Shell, thread: str) -> None:
    begins(bot, thread, "r1", asks=["c1"])
    begins(bot, thread, "r2", asks=["c2"])
    sentence = admin.fails("approve", thread, code=2)
    assert "2 tool calls wait" in sentence
    assert "refund (r1 c1), refund (r2 c2)" in sentence
    admin.ok("approve", thread, "r2")
    assert last_event(admin, thread)["toolCallId"] == "c2"
    admin.ok("approve", thread)
    assert last_event(admin, thread)["toolCallId"] == "c1"


def test_a_decision_on_a_call_that_the_run_never_made_is_refused_with_those_that_wait(
    admin: Shell, bot: Shell, thread: str
) -> None:
    begins(bot, thread, "r1", asks=["c1"])
    before = last_event(admin, thread)
    sentence = admin.fails("approve", thread, "r1", "c2", code=2)
    assert "Run r1 has made no call c2; this waits: refund (r1 c1). --early" in sentence
    assert last_event(admin, thread) == before
    admin.ok("approve", thread, "r1", "c1")
    assert "none of its calls waits" in admin.fails("approve", thread, "r1", "c2", code=2)


def test_a_decision_on_a_call_that_a_finished_run_never_made_is_refused(admin: Shell, bot: Shell, thread: str) -> None:
    begins(bot, thread, "r1", asks=["c1"], is_over=True)
    before = last_event(admin, thread)
    assert "Run r1 is over and has made no call c2." in admin.fails("approve", thread, "r1", "c2", code=2)
    assert last_event(admin, thread) == before
    assert admin("approve", thread, "r1", "c1").err.startswith("Approved refund")


def puts(shell: Shell, thread: str, run_id: str, *chunks: dict[str, object]) -> None:
    """Puts these chunks into somebody's run, in the name of `shell`."""

    async def work(bubble: BubbleConnection) -> None:
        about = {"principalId": (await bubble.who_am_i()).principal_id, "runId": run_id}
        version = {"type": "message_part", "version": "ai-sdk-v6"}
        await bubble.append_events(thread, [{**version, **about, "part": chunk} for chunk in chunks])

    carry_out(work, shell)


def test_a_look_alike_that_somebody_put_into_the_run_is_not_taken_for_the_owners_call(
    admin: Shell, bot: Shell, thread: str, person: Callable[..., Shell]
) -> None:
    begins(bot, thread, "r1", asks=["c1"])
    mallory = person(f"mal{thread[:8]}")
    admin.ok("grants", "put", thread, f"mal{thread[:8]}", "participant")
    for call in ("c1", "c2"):
        puts(
            mallory,
            thread,
            "r1",
            {"type": "tool-input-available", "toolCallId": call, "toolName": "list_files", "input": {}},
            {"type": "tool-approval-request", "toolCallId": call, "approvalId": call},
        )
    assert "Run r1 has made no call c2; this waits: refund (r1 c1)." in admin.fails(
        "approve", thread, "r1", "c2", code=2
    )
    assert admin("approve", thread).err.startswith("Approved refund")
    assert last_event(admin, thread).items() >= {"toolCallId": "c1", "approved": True}.items()
    assert "No tool call waits" in admin.fails("approve", thread, code=1)


def test_who_means_to_decide_before_the_call_is_made_can(admin: Shell, bot: Shell, thread: str) -> None:
    begins(bot, thread, "r1")
    assert "none of its calls waits" in admin.fails("approve", thread, "r1", "c1", code=2)
    admin.ok("approve", thread, "r1", "c1", "--early")
    assert last_event(admin, thread).items() >= {"approved": True, "toolCallId": "c1"}.items()
    assert "name the run and the call" in admin.fails("approve", thread, "r1", "--early", code=2)


def test_what_is_wrong_with_the_run_is_said_by_the_server(admin: Shell, thread: str) -> None:
    begins(admin, thread, "mine", asks=["c1"])
    for run in ("nowhere", "mine"):
        assert "has made no call" not in admin.fails("approve", thread, run, "c2", code=1)


def test_a_call_of_ones_own_run_is_not_ones_own_to_decide(admin: Shell, thread: str) -> None:
    begins(admin, thread, "r1", asks=["c1"])
    assert "No tool call waits for your decision" in admin.fails("approve", thread, code=1)
    assert "No tool call waits for your decision on run r1 of" in admin.fails("approve", thread, "r1", code=1)


def test_the_only_open_run_need_not_be_named(admin: Shell, bot: Shell, thread: str) -> None:
    begins(bot, thread, "r1")
    admin.ok("interrupt", thread)
    assert last_event(admin, thread).items() >= {"type": "run_interrupt_requested", "runId": "r1"}.items()
    assert "r1" in admin.ok("threads", "show", thread)


def test_where_several_runs_are_open_they_are_named(admin: Shell, bot: Shell, thread: str) -> None:
    begins(bot, thread, "r1")
    begins(admin, thread, "r2")
    sentence = admin.fails("interrupt", thread, code=2)
    assert f"r1 of bot{thread[:8]}, r2 of admin" in sentence
    admin.ok("interrupt", thread, "r2")
    assert last_event(admin, thread)["runId"] == "r2"


def test_where_no_run_is_open_nothing_can_be_stopped(admin: Shell, thread: str) -> None:
    assert "No run is open" in admin.fails("interrupt", thread, code=1)
