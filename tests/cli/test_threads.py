"""Threads from the command line: made, spoken on, followed, deleted."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.cli.conftest import TIMEOUT, Shell


@pytest.fixture
def thread(admin: Shell) -> str:
    """A fresh thread of the administrator's."""
    return admin.ok("threads", "create", "--title", "Plans").strip()


def raw_events(shell: Shell, thread: str) -> list[dict[str, object]]:
    lines = shell.ok("tail", thread, "--raw", "--from", "1", "--no-follow").splitlines()
    return [json.loads(line) for line in lines]


def test_a_role_behind_a_colon_is_told_where_it_goes_unless_somebody_is_called_like_that(
    admin: Shell, thread: str, person: Callable[..., Shell]
) -> None:
    name = f"bot{thread[:8]}"
    person(name)
    sentence = admin.fails("threads", "create", "--with", f"{name}:owner", code=2)
    assert f"A role stands behind an equals sign: --with {name}=owner." in sentence
    person(f"{name}:owner")
    admin.ok("threads", "create", "--with", f"{name}:owner")
    assert "equals sign" not in admin.fails("threads", "create", "--with", "nobody.at.all", code=1)


def test_a_thread_is_created_listed_and_shown(admin: Shell, thread: str) -> None:
    listed = admin.json("threads", "list", "--query", thread)
    assert isinstance(listed, list)
    assert [(each["threadId"], each["title"]) for each in listed] == [(thread, "Plans")]
    assert thread in admin.ok("threads", "list")
    shown = admin.json("threads", "show", thread)
    assert isinstance(shown, dict)
    assert (shown["thread"]["role"], shown["openRuns"]) == ("owner", [])
    assert "Plans" in admin.ok("threads", "show", thread)


@pytest.mark.parametrize(
    "command", ["tail {} --no-follow", "tail {} --no-follow --events", "messages {}", "threads show {}", "threads list"]
)
def test_where_a_character_cannot_be_written_its_number_is(admin: Shell, command: str) -> None:
    thread = admin.ok("threads", "create", "--title", "Grüße 👋").strip()
    admin.ok("post", thread, "Grüße 👋")
    ascii_only = Shell(directory=admin.directory, variables={**admin.variables, "PYTHONIOENCODING": "ascii"})
    with ascii_only.process(*command.format(thread).split()) as process:
        out, err = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, err) == (0, "")
    assert r"Gr\xfc\xdfe \U0001f44b" in out


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
    assert (said["startedSeq"], said["finishedSeq"]) == (2, 6)
    assert raw_events(admin, thread)[-1]["runId"] == said["runId"]


def test_files_go_with_what_is_said_or_alone(admin: Shell, thread: str) -> None:
    (admin.directory / "notes.txt").write_text("hello", encoding="utf-8")
    admin.ok("post", thread, "Look:", "--file", "notes.txt", "-f", "https://example.org/a.png")
    admin.ok("post", thread, "--file", "notes.txt")
    told = [line.strip() for line in admin.ok("tail", thread, "--no-follow").splitlines() if line.startswith(" ")]
    notes = "▫ file notes.txt  (text/plain, 5 bytes)"
    assert told == ["Look:", notes, "▫ file  (image/png)  https://example.org/a.png", notes]


def test_a_file_that_cannot_be_sent_is_named_and_nothing_is_said(admin: Shell, thread: str) -> None:
    (admin.directory / "large.bin").write_bytes(bytes(1_000_000))
    assert "nowhere.txt is not there" in admin.fails("post", thread, "x", "--file", "nowhere.txt", code=2)
    assert "large.bin has 1,000,000 bytes" in admin.fails("post", thread, "x", "--file", "large.bin", code=1)
    assert len(raw_events(admin, thread)) == 1


def test_a_title_cannot_act_upon_the_terminal(admin: Shell) -> None:
    thread = admin.ok("threads", "create", "--title", "\x1b[2Jgone\u202e").strip()
    shown = admin.ok("threads", "show", thread)
    assert "\\x1b[2Jgone\\u202e" in shown
    assert "\x1b" not in shown


def test_a_thread_that_one_may_not_see_is_not_found(thread: str, person: Callable[..., Shell]) -> None:
    stranger = person("stranger")
    assert thread in stranger.fails("tail", thread, code=1)
    assert thread in stranger.fails("post", thread, "hello", code=1)
