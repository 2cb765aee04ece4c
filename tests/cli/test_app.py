"""The root of the command line: what it costs to ask for help, and how it says that it was misused."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest
import typer

from bubble import __version__
from bubble.cli import main
from bubble.cli.app import COMMANDS
from bubble.cli.failures import CommandError, UsageProblem, exit_code_of, sentence_of
from bubble.protocol.errors import Conflict, InvalidRequest, Unauthenticated


def bubble(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert isinstance(left.value.code, int)
    return left.value.code


HEAVY = (
    "bubble.server",
    "bubble.client",
    "bubble.store",
    "msgspec",
    "pydantic",
    "httpx2",
    "websockets",
    "uvicorn",
    "asyncio",
)


def test_help_loads_neither_server_nor_client() -> None:
    code = (
        "import sys\nfrom bubble.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit as left: assert left.code == 0\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert all(entry.name in shown for entry in COMMANDS)
    assert shown.splitlines()[-1] == "[]"


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
def test_every_command_is_there_and_explains_itself(entry: object, capsys: pytest.CaptureFixture[str]) -> None:
    name, place = getattr(entry, "name", ""), getattr(entry, "place", "")
    module, _, attribute = place.partition(":")
    assert isinstance(getattr(importlib.import_module(f"bubble.cli.{module}"), attribute), typer.Typer)
    assert bubble(name, "--help") == 0
    assert f"Usage: bubble {name}" in capsys.readouterr().out


def test_the_version_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert bubble("--version") == 0
    assert capsys.readouterr().out == f"bubble {__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("threads",),
        ("threads", "list", "--nonsense"),
        ("threads", "list", "--limit", "0"),
        ("threads", "show"),
        ("serve", "--port", "x"),
        ("login",),
        ("login", "not-a-url"),
        ("tail", "t", "--from", "1", "--last", "2"),
        ("tail", "t", "--json", "--raw"),
        ("tail", "t", "--events", "--grouping", "run"),
        ("approve", "t", "r", "c", "--reason", "why"),
        ("tokens", "mint", "p", "--expires", "soon"),
        ("threads", "create", "--metadata", "[]"),
    ],
    ids=" ".join,
)
def test_misuse_is_said_in_one_sentence_with_exit_code_2(
    arguments: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    assert bubble(*arguments) == 2
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("bubble: ")
    assert captured.err.count("\n") == 1
    assert "Traceback" not in captured.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("principals", "create", "x", "--kind", "robot"),
            "--kind must be one of 'user', 'bot', 'system', not 'robot'.",
        ),
        (("tail", "t", "--from", "x"), "--from must be a whole number, not 'x'."),
        (("tail", "t", "--from", "1.5"), "--from must be a whole number, not '1.5'."),
        (("bench", "--seconds", "x"), "--seconds must be a number, not 'x'."),
        (("threads", "list", "-n", "0"), "--limit must be at least 1, not 0."),
        (("serve", "--port", "70000"), "--port must be at most 65535, not 70000."),
        (("grants", "add", "t", "p"), "No such command 'add'. There are list, put and remove."),
        (("grants", "lost"), "No such command 'lost'. Did you mean 'list'?"),
        (("nonsense",), "No such command 'nonsense'."),
    ],
)
def test_misuse_is_said_by_the_name_of_the_option_and_what_it_takes(
    arguments: tuple[str, ...], sentence: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert bubble(*arguments) == 2
    assert capfd.readouterr().err.partition(" See `")[0] == f"bubble: {sentence}"


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (Unauthenticated("The token is not known."), 1, "bubble login"),
        (Conflict("The thread's head is 7."), 1, "head is 7"),
        (InvalidRequest("`$.title` must be a string."), 2, "$.title"),
        (CommandError("It failed."), 1, "It failed."),
        (UsageProblem("Not so."), 2, "Not so."),
        (KeyboardInterrupt(), 1, "Interrupted."),
        (FileNotFoundError(2, "No such file or directory", "x.jsonl"), 1, "x.jsonl: No such file or directory."),
        (ZeroDivisionError("division by zero"), 1, "BUBBLE_DEBUG=1"),
    ],
)
def test_every_error_has_its_sentence_and_exit_code(error: BaseException, code: int, words: str) -> None:
    assert exit_code_of(error) == code
    assert words in sentence_of(error)
