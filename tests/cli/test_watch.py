"""`bubble watch`: a bot's state live, in words and as JSON, from any cursor, across a restart of the server."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from bubble.client import BubbleConnection
from tests.cli.conftest import TIMEOUT, Shell, carry_out, running_server
from tests.docs.ports import free_ports

Json = dict[str, Any]


def prepared(admin: Shell) -> str:
    """A thread of the administrator's, who has a bot on it that is called as the thread is."""
    thread = admin.ok("threads", "create").strip()

    async def bring_bot(bubble: BubbleConnection) -> None:
        await bubble.create_principal(thread, kind="bot", owner_principal_id="admin")
        await bubble.put_grant(thread, thread, "participant")

    carry_out(bring_bot, admin)
    return thread


@pytest.fixture
def thread(admin: Shell) -> str:
    return prepared(admin)


def speak(admin: Shell, thread: str, *texts: str) -> None:
    async def talk(bubble: BubbleConnection) -> None:
        token = (await bubble.mint_token(thread)).token
        async with BubbleConnection(bubble.base_url, token=token) as bot, bot.run(thread, kind="agent_work") as run:
            for text in texts:
                await run.text(text)

    carry_out(talk, admin)


def lines(process: subprocess.Popen[str]) -> Iterator[str]:
    assert process.stdout is not None
    for line in process.stdout:
        yield line.rstrip("\n")


def until(told: Iterator[str], wanted: str) -> list[str]:
    passed: list[str] = []
    for line in told:
        passed.append(line)
        if wanted in line:
            return passed
    raise AssertionError(passed)


def events(told: Iterator[str], kind: str) -> Iterator[Json]:
    for line in told:
        event = json.loads(line)
        if event["type"] == kind:
            yield event


@pytest.mark.requirement("WA-90")
def test_what_a_bot_says_and_does_is_told_in_words_until_it_is_interrupted(admin: Shell, thread: str) -> None:
    admin.ok("post", thread, "Who are you?")
    with admin.process("watch", thread, "--session", thread) as watching:
        told = lines(watching)
        before = until(told, "admin: Who are you?")
        speak(admin, thread, "I am\na bot", " \x1b[31mof yours.")
        admin.ok("post", thread, "Thank you.")
        after = until(told, "Thank you.")
        watching.send_signal(signal.SIGINT)
        _, err = watching.communicate(timeout=TIMEOUT)
    assert before[0].startswith("[event] participant ")
    assert f"{thread}: I am" in after
    assert r"a bot \x1b[31mof yours." in after
    assert f"({thread} is idle)" in after
    assert (watching.returncode, err) == (0, "Stopped watching.\n")


@pytest.mark.requirement("WA-90")
def test_where_a_character_cannot_be_written_its_number_is(admin: Shell, thread: str) -> None:
    admin.ok("post", thread, "Grüße 👋")
    ascii_only = Shell(directory=admin.directory, variables={**admin.variables, "PYTHONIOENCODING": "ascii"})
    with ascii_only.process("watch", thread, "--session", thread) as watching:
        told = lines(watching)
        until(told, r"admin: Gr\xfc\xdfe \U0001f44b")
        speak(admin, thread, "Hello 👋\n")
        until(told, rf"{thread}: Hello \U0001f44b")
        watching.send_signal(signal.SIGINT)


@pytest.mark.requirement("WA-90")
def test_for_machines_each_event_is_a_line_and_a_cursor_goes_on_after_it(admin: Shell, thread: str) -> None:
    speak(admin, thread, "first")
    with admin.process("watch", thread, "--session", thread, "--json") as watching:
        first = next(events(lines(watching), "message"))
    assert first["data"]["text"] == "first"
    assert first["data"]["botId"] == first["data"]["sessionId"] == thread
    speak(admin, thread, "second")
    with admin.process("watch", thread, "--session", thread, "--json", "--resume", first["id"]) as watching:
        told = list(map(json.loads, until(lines(watching), '"second"')))
    assert [event["data"]["text"] for event in told if event["type"] == "message"] == ["second"]
    assert [event["type"] for event in told if "id" not in event][:2] == ["connected", "agent.state"]


@pytest.mark.requirement("WA-90")
def test_what_cannot_be_watched_is_said_in_a_sentence(admin: Shell, thread: str) -> None:
    assert 'no bot "admin"' in admin.fails("watch", "admin", "--session", thread, code=1)
    assert "There is no thread" in admin.fails("watch", thread, "--session", "nowhere", code=1)
    for cursor in (
        "x",
        "é",
        "x\ny",
        "a b",
        "\ud83d".encode("utf-8", "surrogatepass").decode("utf-8", "surrogateescape"),
    ):
        assert "no cursor" in admin.fails("watch", thread, "--session", thread, "--resume", cursor, code=2)
    assert "--session" in admin.fails("watch", thread, code=2)


@pytest.mark.requirement("WA-90")
def test_losing_the_right_ends_the_watch(admin: Shell, thread: str, person: Any) -> None:  # noqa: ANN401
    carol = person(f"carol-{thread}")
    admin.ok("grants", "put", thread, f"carol-{thread}", "observer")
    with carol.process("watch", thread, "--session", thread) as watching:
        until(lines(watching), "participant")
        admin.ok("grants", "remove", thread, f"carol-{thread}")
        _, err = watching.communicate(timeout=TIMEOUT)
    assert watching.returncode == 1
    assert err == "bubble: The thread is gone, or you may not see it any longer.\n"


@contextlib.contextmanager
def served_by(handler: type[BaseHTTPRequestHandler]) -> Iterator[dict[str, str]]:
    """A server of that handler; the variables that lead a command there."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        serving.start()
        try:
            yield {"BUBBLE_URL": f"http://127.0.0.1:{server.server_port}", "BUBBLE_TOKEN": "t" * 40}
        finally:
            server.shutdown()
            serving.join()


class Boundless(BaseHTTPRequestHandler):
    """Streams an event, and then one that has no end."""

    def do_GET(self) -> None:
        """Sends as much as is taken."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.wfile.write(b'event: title\ndata: {"n":1}\n\ndata: ')
        with contextlib.suppress(OSError):
            while True:
                self.wfile.write(b"x" * 65_536)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@pytest.mark.requirement("WA-90")
def test_an_event_without_an_end_ends_the_watch_in_a_sentence_after_those_before_it(tmp_path: Path) -> None:
    with served_by(Boundless) as variables:
        shell = Shell(directory=tmp_path, variables=variables)
        with shell.process("watch", "b", "--session", "t", "--json") as watching:
            out, err = watching.communicate(timeout=TIMEOUT)
    assert (watching.returncode, err) == (1, "bubble: The server sent an event that is too large to be held.\n")
    assert json.loads(out) == {"type": "title", "data": {"n": 1}}


class Oversized(BaseHTTPRequestHandler):
    """Streams a row that nobody holds, and to who comes back after it one that everybody does."""

    def do_GET(self) -> None:
        """Sends as much as is taken."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        if self.headers.get("Last-Event-ID") == "large":
            self.wfile.write(b'event: entry\nid: small\ndata: {"n":2}\n\nevent: stream.closed\ndata: {}\n\n')
            return
        self.wfile.write(b"event: entry\nid: large\ndata: ")
        with contextlib.suppress(OSError):
            for _ in range(1_100):
                self.wfile.write(b"x" * 65_536)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@pytest.mark.requirement("WA-80", "WA-90")
def test_a_row_that_is_too_large_to_be_held_is_left_out_and_what_follows_is_shown(tmp_path: Path) -> None:
    with served_by(Oversized) as variables:
        watching = Shell(directory=tmp_path, variables=variables)
        with watching.process("watch", "b", "--session", "t", "--json") as process:
            out, err = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0
    assert [json.loads(line) for line in out.splitlines()] == [
        {"type": "entry", "id": "small", "data": {"n": 2}},
        {"type": "stream.closed", "data": {}},
    ]
    assert err == "A row of more than 64 MiB was left out; it has the id large.\n"


@pytest.mark.requirement("WA-90")
def test_a_row_of_twenty_megabytes_is_shown(admin: Shell, thread: str) -> None:
    piece = "界" * 140_000
    with admin.process("watch", thread, "--session", thread, "--json") as watching:
        told = lines(watching)
        until(told, '"connected"')
        speak(admin, thread, *[piece] * 25)
        while (text := next(events(told, "message"))["data"]["text"]) != piece * 25:
            assert piece.startswith(text[:140_000])
        watching.send_signal(signal.SIGINT)


@pytest.mark.requirement("WA-80", "WA-90")
def test_a_restart_of_the_server_loses_nothing(tmp_path: Path) -> None:
    [port] = free_ports(1)
    token = "t" * 40
    admin = Shell(directory=tmp_path, variables={"BUBBLE_URL": f"http://127.0.0.1:{port}", "BUBBLE_TOKEN": token})
    with running_server(tmp_path, port=port, token=token):
        thread = prepared(admin)
        speak(admin, thread, "before")
        process = admin.process("watch", thread, "--session", thread, "--json")
        watching = process.__enter__()
        told = lines(watching)
        assert next(events(told, "message"))["data"]["text"] == "before"
    try:
        with running_server(tmp_path, port=port, token=token):
            speak(admin, thread, "after")
            assert next(events(told, "message"))["data"]["text"] == "after"
    finally:
        process.__exit__(None, None, None)
