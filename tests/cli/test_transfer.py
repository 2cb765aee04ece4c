"""`bubble export` and `bubble import` against a real server."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bubble.protocol.identifiers import new_id
from tests.cli.conftest import Shell


@pytest.fixture
def thread(admin: Shell, person: Callable[..., Shell]) -> str:
    """A thread with a title, two people and something said."""
    name = f"guest-{new_id()[:12]}"
    guest = person(name)
    thread = admin.ok("threads", "create", "--title", "Été", "--with", name).strip()
    admin.ok("post", thread, "Hello\nthere")
    guest.ok("post", thread, "👩‍👩‍👧")
    return thread


def exported(shell: Shell, thread: str, name: str = "out.jsonl") -> Path:
    shell.ok("export", thread, "--output", name)
    return shell.directory / name


def test_a_thread_comes_back_with_seqs_times_authors_and_roles(admin: Shell, thread: str) -> None:
    file = exported(admin, thread)
    admin.ok("import", file.name, "--as", f"{thread}-copy")
    copy = exported(admin, f"{thread}-copy", "copy.jsonl")
    first, second = file.read_bytes().splitlines(), copy.read_bytes().splitlines()
    assert first[1:-1] == second[1:-1]
    headers = [json.loads(lines[0]) for lines in (first, second)]
    assert headers[0]["grants"] == headers[1]["grants"]
    assert headers[0]["title"] == headers[1]["title"] == "Été"


def test_an_import_says_how_many_grants_it_restored(admin: Shell, thread: str) -> None:
    file = exported(admin, thread)
    result = admin("import", file.name, "--as", f"{thread}-counted")
    assert result.code == 0
    assert "2 grants were restored" in result.err
    assert "answer" in admin.ok("import", "--help")


def test_an_import_without_grants_lets_nobody_in_but_the_importer(admin: Shell, thread: str) -> None:
    file = exported(admin, thread)
    result = admin("import", file.name, "--as", f"{thread}-quiet", "--without-grants")
    assert result.code == 0
    assert "it is yours alone, nobody else is let in" in result.err
    grants = admin.json("grants", "list", f"{thread}-quiet")
    assert isinstance(grants, list)
    assert [(each["principalId"], each["role"]) for each in grants] == [("admin", "owner")]
    copy = exported(admin, f"{thread}-quiet", "quiet.jsonl")
    assert copy.read_bytes().splitlines()[1:-1] == file.read_bytes().splitlines()[1:-1]


def test_standard_streams_serve_as_files(admin: Shell, thread: str) -> None:
    text = admin.ok("export", thread, "--output", "-")
    assert text.splitlines()[1:-1] == exported(admin, thread).read_text(encoding="utf-8").splitlines()[1:-1]
    admin.ok("import", "-", "--check", stdin=text)
    admin.ok("import", "-", "--as", f"{thread}-piped", stdin=text)


def test_a_damaged_file_is_refused_with_line_and_reason_and_nothing_is_imported(admin: Shell, thread: str) -> None:
    file = exported(admin, thread)
    lines = file.read_bytes().splitlines(keepends=True)
    lines[5] = lines[5].replace(b"there", b"where")
    file.write_bytes(b"".join(lines))
    sentence = admin.fails("import", file.name, "--as", f"{thread}-damaged", code=1)
    assert "Line 6: " in sentence
    assert "checksum" in sentence
    admin.fails("threads", "show", f"{thread}-damaged", code=1)


def test_an_id_that_was_ever_taken_is_refused(admin: Shell, thread: str) -> None:
    file = exported(admin, thread)
    admin.fails("import", file.name, code=1)
    admin.ok("threads", "delete", thread, "--yes")
    admin.fails("import", file.name, code=1)


def test_only_administrators_import(admin: Shell, thread: str, person: Callable[..., Shell]) -> None:
    file = exported(admin, thread)
    somebody = person(f"u{thread[:8]}")
    somebody.fails("import", str(file), "--as", "mine", code=1)


def test_an_existing_file_is_not_replaced_unasked(admin: Shell, thread: str) -> None:
    file = exported(admin, thread)
    before = file.read_bytes()
    assert "--force" in admin.fails("export", thread, "--output", file.name, code=1)
    assert file.read_bytes() == before
    admin.ok("export", thread, "--output", file.name, "--force")


def test_a_file_that_is_not_there_is_named(admin: Shell) -> None:
    assert "nowhere.jsonl" in admin.fails("import", "nowhere.jsonl", code=1)


def test_nothing_is_left_where_an_export_fails(admin: Shell) -> None:
    admin.fails("export", "no-such-thread", "--output", "x.jsonl", code=1)
    assert not list(admin.directory.glob("*x.jsonl*"))
