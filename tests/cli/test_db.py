"""`bubble db` beside a running server, and after it."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Shell, running_server


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of a server that has stopped, with a thread on which something was said."""
    directory = tmp_path_factory.mktemp("stopped")
    with running_server(directory) as server:
        shell = Shell(directory=directory, variables={"BUBBLE_URL": server.url, "BUBBLE_TOKEN": server.admin_token})
        shell.ok("threads", "create", "--id", "kept")
        shell.ok("post", "kept", "Hello")
    return server.data


@pytest.fixture
def store(stopped: Path, tmp_path: Path) -> Path:
    """A copy of that for the test alone."""
    return Path(shutil.copytree(stopped, tmp_path / "data")) / "bubble.db"


def test_a_store_is_checked_and_copied_beside_its_running_server(tmp_path: Path) -> None:
    with running_server(tmp_path) as server:
        shell = Shell(directory=tmp_path, variables={"BUBBLE_URL": server.url, "BUBBLE_TOKEN": server.admin_token})
        shell.ok("threads", "create", "--id", "copied")
        shell.ok("post", "copied", "Hello")
        assert shell.json("db", "check", "--data", str(server.data)) == []
        shell.ok("db", "backup", "copy/bubble.db", "--data", str(server.data))
        before = shell.ok("tail", "copied", "--raw", "--no-follow")
        shell.ok("post", "copied", "after the copy")
    (tmp_path / "again").mkdir()
    (tmp_path / "copy").rename(tmp_path / "again" / "data")
    with running_server(tmp_path / "again") as server:
        again = Shell(directory=tmp_path, variables={"BUBBLE_URL": server.url, "BUBBLE_TOKEN": server.admin_token})
        assert again.ok("tail", "copied", "--raw", "--no-follow") == before


def test_a_copy_replaces_nothing(shell: Shell, store: Path) -> None:
    (shell.directory / "taken.db").write_text("something else", encoding="utf-8")
    assert "taken.db" in shell.fails("db", "backup", "taken.db", "--data", str(store.parent), code=1)
    assert (shell.directory / "taken.db").read_text(encoding="utf-8") == "something else"


def test_damage_is_found_and_said_with_the_thread(shell: Shell, store: Path) -> None:
    with sqlite3.connect(store) as database:
        database.execute("DELETE FROM events WHERE seq = 3")
    database.close()
    result = shell("db", "check", "--data", str(store.parent))
    assert result.code == 1
    assert "kept" in result.out
    assert "restore a backup" in result.err


def cut_short(store: Path) -> None:
    store.write_bytes(store.read_bytes()[: 3 * 4_096])


def without_its_first_page(store: Path) -> None:
    store.write_bytes(b"\xff" * 4_096 + store.read_bytes()[4_096:])


def a_letter(store: Path) -> None:
    store.write_text("Dear database, " * 1_000, encoding="utf-8")


@pytest.mark.parametrize("damage", [cut_short, without_its_first_page, a_letter])
@pytest.mark.parametrize("command", [("db", "check"), ("db", "backup", "copy.db"), ("serve", "--port", "0")])
def test_a_file_that_is_damaged_is_said_to_be_and_nothing_is_advised_that_cannot_help(
    shell: Shell, store: Path, damage: Callable[[Path], None], command: tuple[str, ...]
) -> None:
    damage(store)
    result = shell(*command, "--data", str(store.parent))
    assert result.code == 1
    assert "restore a backup" in result.err
    assert "try again" not in result.err
    assert "doctor" not in result.err
    assert "1 problems" not in result.err
    assert not (shell.directory / "copy.db").exists()


def test_a_store_that_is_up_to_date_stays_as_it_is(shell: Shell, store: Path) -> None:
    shell.ok("db", "migrate", "--data", str(store.parent))
    shell.ok("db", "check", "--store", f"sqlite:///{store}")


def test_a_store_in_use_is_not_migrated(tmp_path: Path, shell: Shell) -> None:
    with running_server(tmp_path) as server:
        assert "in use" in shell.fails("db", "migrate", "--data", str(server.data), code=1)


@pytest.mark.parametrize("command", [("check",), ("backup", "copy.db"), ("migrate",)])
def test_where_there_is_no_store_none_is_made(shell: Shell, command: tuple[str, ...]) -> None:
    assert "There is no store" in shell.fails("db", *command, code=1)
    assert "has no file" in shell.fails("db", *command, "--store", "memory:", code=2)
    assert not (shell.directory / ".bubble").exists()
