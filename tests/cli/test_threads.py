"""Threads from the command line: made, spoken on, followed, deleted."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable

import pytest

from tests.cli.conftest import COMMAND, TIMEOUT, Shell


@pytest.fixture
def thread(admin: Shell) -> str:
    """A fresh thread of the administrator's."""
    return admin.ok("threads", "create", "--title", "Plans").strip()


def raw_events(shell: Shell, thread: str) -> list[dict[str, object]]:
    lines = shell.ok("tail", thread, "--raw", "--from", "1", "--no-follow").splitlines()
    return [json.loads(line) for line in lines]


def test_a_thread_is_created_listed_and_shown(admin: Shell, thread: str) -> None:
    listed = admin.json("threads", "list", "--query", thread)
    assert isinstance(listed, list)
    assert [(each["threadId"], each["title"]) for each in listed] == [(thread, "Plans")]
    assert thread in admin.ok("threads", "list")
    shown = admin.json("threads", "show", thread)
    assert isinstance(shown, dict)
    assert (shown["thread"]["role"], shown["openRuns"]) == ("owner", [])
    assert "Plans" in admin.ok("threads", "show", thread)


def test_everything_of_a_thread_can_be_said_when_it_is_made(admin: Shell, person: Callable[..., Shell]) -> None:
    person("tess")
    options = ("--id", "named", "--join", "open", "--with", "tess=observer", "--metadata", '{"a": [1]}')
    made = admin.json("threads", "create", *options)
    assert isinstance(made, dict)
    assert (made["threadId"], made["joinPolicy"], made["metadata"]) == ("named", "open", {"a": [1]})
    grants = admin.json("grants", "list", "named")
    assert isinstance(grants, list)
    assert {each["principalId"]: each["role"] for each in grants} == {"admin": "owner", "tess": "observer"}


def test_deleting_asks_first_and_is_for_good(admin: Shell, thread: str) -> None:
    assert "--yes" in admin.fails("threads", "delete", thread, code=2)
    admin.ok("threads", "delete", thread, "--yes")
    assert thread in admin.fails("threads", "show", thread, code=1)


def test_what_is_posted_is_one_whole_run(admin: Shell, thread: str) -> None:
    admin.ok("post", thread, "Hello,", "world")
    admin.ok("post", thread, stdin="from a pipe\nwith two lines\n")
    events = raw_events(admin, thread)
    assert [event["type"] for event in events] == [
        "participant_joined",
        *(["run_started", "message_part", "message_part", "message_part", "run_finished"] * 2),
    ]
    deltas = [event["part"]["delta"] for event in events if "delta" in (event.get("part") or {})]  # type: ignore[index, operator]
    assert deltas == ["Hello, world", "from a pipe\nwith two lines"]
    assert [event["seq"] for event in events] == list(range(1, 12))


def test_nothing_is_posted_where_nothing_is_said(admin: Shell, thread: str) -> None:
    assert "nothing to say" in admin.fails("post", thread, code=2)
    assert len(raw_events(admin, thread)) == 1


def test_a_posted_run_is_json_for_machines(admin: Shell, thread: str) -> None:
    said = admin.json("post", thread, "x")
    assert isinstance(said, dict)
    assert [event["seq"] for event in said["events"]] == [2, 3, 4, 5, 6]


def test_a_title_cannot_act_upon_the_terminal(admin: Shell) -> None:
    thread = admin.ok("threads", "create", "--title", "\x1b[2Jgone\u202e").strip()
    shown = admin.ok("threads", "show", thread)
    assert "\\x1b[2Jgone\\u202e" in shown
    assert "\x1b" not in shown


def test_tail_shows_the_last_events_in_words(admin: Shell, thread: str) -> None:
    admin.ok("post", thread, "Hello")
    lines = admin.ok("tail", thread, "--last", "2", "--no-follow").splitlines()
    assert len(lines) == 2
    assert "text-end" in lines[0]
    assert lines[1].split()[2:5] == ["admin", "finishes", "run"]


def test_tail_follows_live_until_it_is_interrupted(admin: Shell, thread: str) -> None:
    with admin.process("tail", thread, "--raw", "--from", "1") as tail:
        assert tail.stdout is not None
        assert json.loads(tail.stdout.readline())["type"] == "participant_joined"
        admin.ok("post", thread, "live")
        types = [json.loads(tail.stdout.readline())["type"] for _ in range(5)]
        tail.send_signal(signal.SIGINT)
        assert tail.wait(timeout=TIMEOUT) == 0
    assert types == ["run_started", "message_part", "message_part", "message_part", "run_finished"]


def test_a_reader_of_the_pipe_may_leave_early(admin: Shell, thread: str) -> None:
    admin.ok("post", thread, "x")
    with admin.process("tail", thread, "--from", "1") as tail:
        assert tail.stdout is not None
        assert tail.stderr is not None
        tail.stdout.readline()
        tail.stdout.close()
        admin.ok("post", thread, "nobody reads this")
        assert tail.wait(timeout=TIMEOUT) == 1
        assert tail.stderr.read() == ""


def test_a_thread_that_one_may_not_see_is_not_found(thread: str, person: Callable[..., Shell]) -> None:
    stranger = person("stranger")
    assert thread in stranger.fails("tail", thread, code=1)
    assert thread in stranger.fails("post", thread, "hello", code=1)


class TestRuns:
    """Deciding on tool calls, and stopping runs."""

    @pytest.fixture
    def run(self, admin: Shell, thread: str, person: Callable[..., Shell]) -> str:
        """An open run of somebody else's, on which a tool call waits."""
        name = f"bot{thread[:8]}"
        bot = person(name)
        admin.ok("grants", "put", thread, name, "participant")
        code = (
            "import asyncio, sys\nfrom bubble.client import BubbleConnection\n"
            "async def main(url, token, thread, name):\n"
            "    async with BubbleConnection(url, token=token) as bubble:\n"
            "        await bubble.append_event(thread, {'type': 'run_started', 'principalId': name, 'runId': 'r1'})\n"
            "asyncio.run(main(*sys.argv[1:]))\n"
        )
        url, token = bot.variables["BUBBLE_URL"], bot.variables["BUBBLE_TOKEN"]
        subprocess.run([COMMAND[0], "-c", code, url, token, thread, name], check=True, timeout=TIMEOUT)
        return "r1"

    def test_the_first_decision_on_a_tool_call_counts(self, admin: Shell, thread: str, run: str) -> None:
        admin.ok("approve", thread, run, "call-1", "--reject", "--reason", "wrong id")
        assert (
            raw_events(admin, thread)[-1].items()
            >= {"approved": False, "reason": "wrong id", "toolCallId": "call-1"}.items()
        )
        admin.fails("approve", thread, run, "call-1", code=1)
        admin.ok("approve", thread, run, "call-2")
        assert raw_events(admin, thread)[-1]["approved"] is True

    def test_the_only_open_run_need_not_be_named(self, admin: Shell, thread: str, run: str) -> None:
        admin.ok("interrupt", thread)
        last = raw_events(admin, thread)[-1]
        assert (last["type"], last["runId"]) == ("run_interrupt_requested", run)
        assert run in admin.ok("threads", "show", thread)

    def test_where_no_run_is_open_nothing_can_be_stopped(self, admin: Shell, thread: str) -> None:
        assert "No run is open" in admin.fails("interrupt", thread, code=1)
