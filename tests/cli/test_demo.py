"""`bubble demo --check` plays, proves and cleans up."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.cli.conftest import COMMAND, TIMEOUT, Shell, clean_environment, wait_until
from tests.cli.pseudo_terminal import terminal_of


@pytest.fixture
def stranger(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Somebody with settings that the demonstration must not take over, and a place where it leaves nothing."""
    (shell.directory / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(shell.directory / "tmp"))
    (shell.directory / "bubble.toml").write_text('host = "203.0.113.1"\n', encoding="utf-8")
    return Shell(directory=shell.directory, variables={"BUBBLE_PORT": "1", "BUBBLE_RUN_INTEGRITY": "off"})


def leftovers(shell: Shell) -> list[Path]:
    return [path for path in shell.directory.rglob("*") if path.name not in ("tmp", "bubble.toml")]


def test_the_demonstration_proves_itself_and_leaves_nothing(stranger: Shell) -> None:
    said = stranger.ok("demo", "--check")
    assert "  echo\n          Hello, world\n" in said
    assert "  grace approves refund\n" in said
    assert "  ada asks echo to stop\n" in said
    assert "  scout\n          ┆ Somebody wants me to think. So I do.\n" in said
    assert "reef, started again, answered what was said while it was away" in said
    assert said.count("\nok     ") == 14
    assert "FAILED" not in said
    assert "resumed by her cursor" in said
    assert leftovers(stranger) == []


def test_the_claims_are_json_for_machines(stranger: Shell) -> None:
    claims = json.loads(stranger.ok("demo", "--json"))
    assert [claim["holds"] for claim in claims] == [True] * 14


def test_ctrl_c_ends_the_demonstration_with_a_word_and_leaves_nothing(shell: Shell) -> None:
    (shell.directory / "tmp").mkdir()
    there = Shell(directory=shell.directory, variables={"TMPDIR": str(shell.directory / "tmp")})
    with there.process("demo", "--check") as process:
        wait_until(lambda: any((shell.directory / "tmp").glob("*/data/bubble.db")))
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, out, err) == (1, "", "bubble: Interrupted.\n")
    assert list((shell.directory / "tmp").iterdir()) == []


def test_ctrl_c_in_the_middle_of_the_show_is_an_end_like_any_other(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    environment = clean_environment(TMPDIR=str(tmp_path / "tmp"))
    with terminal_of([*COMMAND, "demo"], directory=tmp_path, environment=environment) as terminal:
        terminal.wait_for(lambda lines: any("follows over a WebSocket" in line for line in lines))
        lines = terminal.interrupt()
    assert [line for line in lines if line][-1] == "Stopped; the server and its data are gone."
    assert terminal.process.returncode == 0
    assert list((tmp_path / "tmp").iterdir()) == []
