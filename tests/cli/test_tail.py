"""`bubble tail` into a pipe: the conversation in words, its messages as JSON, or the log itself."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest
from msgspec import Raw

from bubble.client import BubbleConnection
from tests.cli.conftest import TIMEOUT, Server, Shell, carry_out

pytestmark = pytest.mark.anyio


@pytest.fixture
def thread(admin: Shell) -> str:
    """A fresh thread of the administrator's."""
    return admin.ok("threads", "create").strip()


def words(text: str) -> list[str]:
    """The lines without times and empty ones."""
    return [line[10:] for line in text.splitlines()[1:] if line]


def test_what_was_said_is_told_in_words(admin: Shell, thread: str) -> None:
    admin.ok("post", thread, "Hello,\nworld")
    assert words(admin.ok("tail", thread, "--no-follow")) == ["admin joins", "admin", "Hello,", "world"]


def test_the_last_messages_are_told_and_those_before_are_not(admin: Shell, thread: str) -> None:
    for text in ("one", "two", "three"):
        admin.ok("post", thread, text)
    assert words(admin.ok("tail", thread, "--no-follow", "--last", "2")) == ["admin", "two", "admin", "three"]
    assert admin.ok("tail", thread, "--no-follow", "--last", "0") == ""
    assert words(admin.ok("tail", thread, "--no-follow", "--from", "12")) == ["admin", "three"]


def test_the_last_messages_are_whole_however_many_events_they_have(admin: Shell, thread: str) -> None:
    async def talk(bubble: BubbleConnection) -> None:
        await bubble.send_message(thread, "the question")
        async with bubble.run(thread, kind="agent_work") as run:
            for number in range(1_500):
                await run.text(f"{number} ")

    carry_out(talk, admin)
    told = words(admin.ok("tail", thread, "--no-follow", "--last", "2"))
    assert told[:2] == ["admin", "the question"]
    assert told[3].split() == [str(number) for number in range(1_500)]


def test_a_conversation_is_followed_live_until_it_is_interrupted(admin: Shell, thread: str) -> None:
    with admin.process("tail", thread) as tail:
        assert tail.stdout is not None
        told = [tail.stdout.readline() for _ in range(2)]
        admin.ok("post", thread, "live")
        told += [tail.stdout.readline() for _ in range(3)]
        tail.send_signal(signal.SIGINT)
        out, err = tail.communicate(timeout=TIMEOUT)
    assert (words("".join(told)), out) == (["admin joins", "admin", "live"], "")
    assert (tail.returncode, err) == (0, "Stopped following.\n")


def states(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_messages_are_json_lines_for_machines(admin: Shell, thread: str) -> None:
    admin.ok("post", thread, "Hello")
    first, second = states(admin.ok("tail", thread, "--no-follow", "--json"))
    assert first["message"]["id"] == "~1"
    assert second["type"] == "message"
    assert second["message"]["parts"] == [{"type": "text", "text": "Hello", "state": "done"}]
    assert second["message"]["metadata"]["bubble"]["lastSeq"] == 6


async def test_each_new_state_of_a_message_is_a_line(admin: Shell, thread: str, server: Server) -> None:
    with admin.process("tail", thread, "--json") as tail:
        assert tail.stdout is not None
        tail.stdout.readline()
        async with (
            BubbleConnection(server.url, token=server.admin_token) as bubble,
            bubble.run(thread, kind="agent_work") as run,
        ):
            await run.text("one")
            await run.flush()
            state = json.loads(tail.stdout.readline())["message"]
            while not state["parts"][0]["text"]:  # the beginning alone may come first
                state = json.loads(tail.stdout.readline())["message"]
            assert (state["id"], state["parts"][0]["text"]) == (run.run_id, "one")
        while state["metadata"]["bubble"]["status"] != "finished":
            state = json.loads(tail.stdout.readline())["message"]
        assert state["parts"][0]["state"] == "done"


def test_what_json_has_no_word_for_does_not_break_a_line(admin: Shell, thread: str) -> None:
    async def talk(bubble: BubbleConnection) -> None:
        async with bubble.run(thread) as run:
            await run.part(Raw(b'{"type":"data-odd","data":[1e400,"\\ud83d"]}'))

    carry_out(talk, admin)
    state = states(admin.ok("tail", thread, "--no-follow", "--json"))[-1]
    assert state["message"]["parts"][0]["data"] == [None, "\ud83d"]
    for command in (["tail", thread, "--no-follow"], ["messages", thread]):
        assert r'▫ odd  [null,"\ud83d"]' in admin.ok(*command)
    assert r'{"type":"data-odd","data":[1e400,"\ud83d"]}' in admin.ok("tail", thread, "--no-follow", "--events")


def test_by_run_each_run_is_one_message(admin: Shell, thread: str) -> None:
    async def talk(bubble: BubbleConnection) -> None:
        async with bubble.run(thread, kind="agent_work") as run:
            await run.text("one, ")
            await run.flush()
            await bubble.send_message(thread, "And?")
            await run.text("two")

    carry_out(talk, admin)
    by_speaker = words(admin.ok("tail", thread, "--no-follow"))
    assert by_speaker[-6:] == ["admin", "one, ", "admin", "And?", "admin goes on", "two"]
    by_run = words(admin.ok("tail", thread, "--no-follow", "--grouping", "run"))
    assert by_run[-4:] == ["admin", "one, two", "admin", "And?"]


def test_the_log_is_told_event_by_event(admin: Shell, thread: str) -> None:
    admin.ok("post", thread, "Hello")
    lines = admin.ok("tail", thread, "--events", "--last", "2", "--no-follow").splitlines()
    assert len(lines) == 2
    assert "text-end" in lines[0]
    assert lines[1].split()[2:5] == ["admin", "finishes", "run"]


def test_the_log_is_followed_as_it_is_stored(admin: Shell, thread: str) -> None:
    with admin.process("tail", thread, "--raw", "--from", "1") as tail:
        assert tail.stdout is not None
        assert json.loads(tail.stdout.readline())["type"] == "participant_joined"
        admin.ok("post", thread, "live")
        types = [json.loads(tail.stdout.readline())["type"] for _ in range(5)]
        tail.send_signal(signal.SIGINT)
        assert tail.wait(timeout=TIMEOUT) == 0
    assert types == ["run_started", "message_part", "message_part", "message_part", "run_finished"]


@pytest.mark.parametrize("form", ["--events", "--raw", "--json", "--grouping=run"])
def test_a_reader_of_the_pipe_may_leave_early(admin: Shell, thread: str, form: str) -> None:
    admin.ok("post", thread, "x")
    with admin.process("tail", thread, form, "--from", "1") as tail:
        assert tail.stdout is not None
        assert tail.stderr is not None
        tail.stdout.readline()
        tail.stdout.close()
        admin.ok("post", thread, "nobody reads this")
        assert tail.wait(timeout=TIMEOUT) == 1
        assert tail.stderr.read() == ""
