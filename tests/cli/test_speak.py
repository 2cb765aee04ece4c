"""Saying something on a thread."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import COMMAND, TIMEOUT, Shell
from tests.cli.test_deciding import bot, last_event, thread

__all__ = ["bot", "thread"]

NO_TEXT = "What was given holds something that is no text."


@pytest.mark.parametrize("command", [("post",), ("result", "--call", "c"), ("approve", "--reject", "--reason")])
def test_words_that_are_no_text_are_refused(admin: Shell, thread: str, command: tuple[str, ...]) -> None:
    before = last_event(admin, thread)
    name, *options = command
    words = (thread, *options, "caf\udce9") if name == "approve" else (thread, "caf\udce9", "au lait", *options)
    assert NO_TEXT in admin.fails(name, *words, code=2)
    assert last_event(admin, thread) == before


def test_a_file_with_a_name_that_is_no_text_is_refused(admin: Shell, thread: str, tmp_path: Path) -> None:
    before = last_event(admin, thread)
    (tmp_path / "caf\udce9.txt").write_text("au lait")
    for file in (str(tmp_path / "caf\udce9.txt"), "https://example.org/caf\udce9"):
        assert NO_TEXT in admin.fails("post", thread, "x", "--file", file, code=2)
    assert last_event(admin, thread) == before


@pytest.mark.parametrize("encoding", ["utf-8:strict", "utf-8:surrogateescape"])
@pytest.mark.parametrize("command", [("post",), ("result", "--call", "c")])
def test_a_pipe_of_what_is_no_text_is_refused(
    admin: Shell, thread: str, command: tuple[str, ...], encoding: str
) -> None:
    before = last_event(admin, thread)
    shell = Shell(directory=admin.directory, variables={**admin.variables, "PYTHONIOENCODING": encoding})
    name, *options = command
    ended = subprocess.run(
        [*COMMAND, name, thread, *options],
        input=b"caf\xe9\n",
        capture_output=True,
        env=shell.environment,
        timeout=TIMEOUT,
        check=False,
    )
    assert (ended.returncode, ended.stderr.decode()) == (2, f"bubble: {NO_TEXT}\n")
    assert last_event(admin, thread) == before
