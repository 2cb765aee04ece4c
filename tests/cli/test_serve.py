"""`bubble serve`: the first start, the later ones, and the end."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.cli.conftest import COMMAND, TIMEOUT, Shell
from tests.cli.pseudo_terminal import terminal_of


@contextmanager
def started(shell: Shell, *options: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, object]]]:
    """A server process that listens, and the line that it said; it does not outlive the block."""
    with shell.process("serve", "--port", "0", "--json", *options) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.communicate(timeout=TIMEOUT)
        yield process, json.loads(line)


def stopped(process: subprocess.Popen[str], how: Callable[[subprocess.Popen[str]], object]) -> int:
    how(process)
    return process.wait(timeout=TIMEOUT)


def sigterm(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGTERM)


def sigint(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGINT)


def by_token(shell: Shell, said: dict[str, object], token: object) -> Shell:
    return Shell(directory=shell.directory, variables={"BUBBLE_URL": str(said["url"]), "BUBBLE_TOKEN": str(token)})


def test_the_first_start_lets_its_person_in_and_later_ones_keep_everything(shell: Shell) -> None:
    with started(shell) as (process, first):
        assert str(first["loginUrl"]).startswith(f"{first['url']}/login?code=")
        admin = by_token(shell, first, first["token"])
        thread = admin.ok("threads", "create", "--title", "Kept").strip()
        admin.ok("post", thread, "Hello")
        before = admin.ok("tail", thread, "--raw", "--no-follow")
        assert stopped(process, sigterm) == 0
    assert (shell.directory / ".bubble").stat().st_mode & 0o077 == 0

    with started(shell) as (process, second):
        assert set(second) == {"url", "port", "pid"}
        again = by_token(shell, second, first["token"])
        assert again.ok("tail", thread, "--raw", "--no-follow") == before
        assert stopped(process, sigint) == 0


def test_the_welcome_shows_the_way_in(shell: Shell) -> None:
    with shell.process("serve", "--port", "0") as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(8)]
        assert stopped(process, sigterm) == 0
    said = "".join(lines)
    url = lines[0].removeprefix("Bubble listens on ").strip()
    assert f"{url}/login?code=" in said
    assert "bubble_user_" in said
    assert f"bubble login {url}" in said


def code_in(lines: Iterable[str]) -> str:
    """The code of the one login link that was printed."""
    (code,) = [found for line in lines for found in re.findall(r"/login\?code=(\S+)", line)]
    return str(code)


def logs_in(url: object, code: str) -> bool:
    """Whether the code opens a session of the administrator."""
    answer = httpx2.post(f"{url}/v1/sessions", json={"code": code}, timeout=TIMEOUT, trust_env=False)
    return answer.status_code == 201 and answer.json()["principal"]["principalId"] == "admin"


@pytest.mark.requirement("SF-37")
@pytest.mark.parametrize("variables", [{}, {"BUBBLE_ADMIN_TOKEN": "t" * 32}])
def test_on_a_terminal_every_start_prints_a_link_that_is_good_once(shell: Shell, variables: dict[str, str]) -> None:
    environment = {**shell.environment, **variables}
    for start in ("first", "second"):
        command = [*COMMAND, "serve", "--port", "0"]
        with terminal_of(command, directory=shell.directory, environment=environment, columns=400) as terminal:
            lines = terminal.wait_for(lambda lines: any("Ctrl-C" in line for line in lines))
            (url,) = [line.removeprefix("Bubble listens on ") for line in lines if line.startswith("Bubble listens")]
            code = code_in(lines)
            assert [logs_in(url, code), logs_in(url, code)] == [True, False]
            assert any("within 15 minutes" in line for line in lines)
            has_token = any("bubble_user_" in line for line in lines)
            assert has_token == (start == "first" and not variables)
            terminal.interrupt()


@pytest.mark.requirement("SF-37")
def test_into_a_log_a_link_is_written_at_the_first_start_or_when_asked_for(shell: Shell) -> None:
    for options, is_there in [((), True), ((), False), (("--login-link",), True)]:
        with shell.process("serve", "--port", "0", *options) as process:
            assert process.stderr is not None
            while "Ctrl-C" not in process.stderr.readline():
                assert process.poll() is None
            process.terminate()
            out, _ = process.communicate(timeout=TIMEOUT)
        assert ("/login?code=" in out) == is_there, out
    with started(shell, "--login-link") as (process, said):
        assert set(said) == {"url", "port", "pid", "loginUrl"}
        assert logs_in(said["url"], code_in([str(said["loginUrl"])]))
        assert stopped(process, sigterm) == 0


@pytest.mark.requirement("SF-37")
def test_it_is_said_how_long_a_link_is_good(shell: Shell) -> None:
    brief = Shell(directory=shell.directory, variables={"BUBBLE_SESSIONS__LOGIN_LIFETIME": "90s"})
    with brief.process("serve", "--port", "0") as process:
        assert process.stdout is not None
        assert any("within 90s" in process.stdout.readline() for _ in range(8))


def test_the_address_that_is_bound_and_the_one_that_is_public_are_both_said(shell: Shell) -> None:
    with shell.process("serve", "--port", "0", "--public-url", "https://bubble.example") as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(8)]
        assert stopped(process, sigterm) == 0
    assert lines[0].startswith("Bubble listens on http://127.0.0.1:")
    assert lines[1] == "It is reached at https://bubble.example\n"
    assert any("https://bubble.example/login?code=" in line for line in lines)


def test_no_secret_is_made_where_the_admin_brings_one(shell: Shell) -> None:
    brought = Shell(directory=shell.directory, variables={"BUBBLE_ADMIN_TOKEN": "t" * 32})
    with started(brought) as (process, said):
        assert set(said) == {"url", "port", "pid"}
        assert "admin" in by_token(shell, said, "t" * 32).ok("whoami")
        assert stopped(process, sigterm) == 0


@pytest.mark.requirement("PR-8-25")
def test_a_short_admin_token_refuses_to_start(shell: Shell) -> None:
    short = Shell(directory=shell.directory, variables={"BUBBLE_ADMIN_TOKEN": "t" * 31})
    sentence = short.fails("serve", "--port", "0", code=2)
    assert "32 characters" in sentence
    assert "t" * 31 not in sentence


def test_a_public_address_without_tls_is_refused_unless_asked_for(shell: Shell) -> None:
    assert "--insecure" in shell.fails("serve", "--host", "0.0.0.0", "--port", "0", code=2)  # noqa: S104 - refused
    assert not (shell.directory / ".bubble").exists()


def test_a_port_that_is_taken_is_said(shell: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"127.0.0.1:{port}" in shell.fails("serve", "--port", str(port), code=1)


def test_one_data_directory_has_one_server(shell: Shell) -> None:
    with started(shell) as (process, _):
        assert "bubble.db" in shell.fails("serve", "--port", "0", code=1)
        assert stopped(process, sigterm) == 0


def test_a_server_ends_with_the_program_that_started_it(shell: Shell) -> None:
    with started(shell, "--until-stdin-ends") as (process, _):
        assert process.stdin is not None
        assert stopped(process, lambda each: each.stdin and each.stdin.close()) == 0


def test_an_option_that_does_not_exist_is_named_with_its_place(shell: Shell) -> None:
    (shell.directory / "bubble.toml").write_text("[limits]\nevent_byte = 5\n", encoding="utf-8")
    sentence = shell.fails("serve", "--port", "0", code=2)
    assert "limits.event_byte" in sentence
    assert "bubble.toml" in sentence


def test_the_server_is_the_same_as_a_module(tmp_path: Path) -> None:
    said = subprocess.run(
        [*COMMAND, "--version"], capture_output=True, text=True, check=True, timeout=TIMEOUT, cwd=tmp_path
    )
    assert said.stdout.startswith("bubble ")
