"""Copies that are taken, and damage that is found, while the store is in use."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import apsw
import pytest

from bubble.protocol.errors import Conflict, Unavailable
from bubble.store.sqlite import SqliteStore, backup_file, check_file
from bubble.testing.store_suite.base import a_finish, a_part, a_start, outcome_of, submitted

pytestmark = pytest.mark.anyio

EVERYTHING = {"from_seq": 1, "to_seq": 2**53 - 1, "limit": 10**6, "max_bytes": 2**40}


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with await SqliteStore.open(tmp_path / "bubble.db") as store:
        await store.append("t", a_start())
        await store.append_many("t", [a_part(delta=number) for number in range(200)])
        await store.append("t", a_finish())
        await store.append("u", a_start())
        yield store


async def test_a_backup_taken_while_events_pour_in_is_a_sound_store_up_to_some_moment(
    store: SqliteStore, tmp_path: Path
) -> None:
    done = asyncio.Event()

    async def pour() -> None:
        while not done.is_set():
            await asyncio.gather(*(outcome_of(submitted(store, "u", a_part())) for _ in range(20)))

    pouring = asyncio.create_task(pour())
    await store.backup(tmp_path / "copies" / "copy.db")
    done.set()
    await pouring
    original = await store.read("u", **EVERYTHING)
    async with await SqliteStore.open(tmp_path / "copies" / "copy.db") as copy:
        assert await copy.check() == []
        copied = await copy.read("u", **EVERYTHING)
        assert copied == original[: len(copied)]
        assert await copy.read("t", **EVERYTHING) == await store.read("t", **EVERYTHING)
        assert (await copy.append("u", a_part())).seq == len(copied) + 1
    assert [file.name for file in (tmp_path / "copies").glob("*unfinished*")] == []


async def test_a_file_in_use_can_be_copied_and_checked_from_outside(store: SqliteStore, tmp_path: Path) -> None:
    await backup_file(store.path, tmp_path / "copy.db")
    assert await check_file(tmp_path / "copy.db") == []
    assert await check_file(store.path) == []


async def test_a_backup_overwrites_nothing(store: SqliteStore, tmp_path: Path) -> None:
    (tmp_path / "copy.db").write_text("precious")
    with pytest.raises(Conflict, match=r"copy\.db exists already"):
        await store.backup(tmp_path / "copy.db")
    assert (tmp_path / "copy.db").read_text() == "precious"


async def test_a_backup_that_cannot_be_written_leaves_nothing_behind(store: SqliteStore, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Unavailable):
        await store.backup(tmp_path / "file" / "copy.db")
    with pytest.raises(Unavailable):
        await backup_file(tmp_path / "nothing.db", tmp_path / "copy.db")
    assert not (tmp_path / "copy.db").exists()


@pytest.mark.parametrize(
    ("damage", "thread_id", "told"),
    [
        ("DELETE FROM events WHERE seq = 100", "t", "seq 101 follows seq 99"),
        ("DELETE FROM events WHERE seq = 202", "t", "the head is 202, the last event has seq 201"),
        ("DELETE FROM events WHERE thread_key = 2", "u", "the head is 1, the last event has seq 0"),
        ("UPDATE activity SET last_ms = last_ms - 5 WHERE thread_key = 1", "t", "time"),
        ("UPDATE activity SET head = 9 WHERE thread_key = 2", "u", "the head is 9"),
        ("DELETE FROM activity WHERE thread_key = 2", "u", "activity"),
        ("UPDATE runs SET finished_seq = NULL WHERE thread_key = 1", "t", 'run "run-1"'),
        ("UPDATE runs SET principal_id = 'eve' WHERE thread_key = 2", "u", 'run "run-1"'),
        ("DELETE FROM runs WHERE thread_key = 2", "u", 'run "run-1"'),
        ("UPDATE events SET text = CAST(replace(text, ':7,', ':8,') AS BLOB) WHERE seq = 7", "t", "seq 8"),
        ("UPDATE events SET text = x'00' WHERE seq = 7", "t", "cannot be read"),
        ("DELETE FROM threads WHERE thread_key = 2", None, "threads that do not exist"),
    ],
)
async def test_planted_damage_is_found(
    store: SqliteStore, tmp_path: Path, damage: str, thread_id: str | None, told: str
) -> None:
    await store.list_threads(principal_id=None)  # settled, so that the copy is complete
    await store.backup(tmp_path / "copy.db")
    db = apsw.Connection(str(tmp_path / "copy.db"))
    db.execute(damage)
    assert db.changes() == 1
    db.close()
    problems = await check_file(tmp_path / "copy.db")
    assert any(problem.thread_id == thread_id and told in problem.message for problem in problems), problems


async def test_a_page_that_the_disk_garbled_is_found(store: SqliteStore, tmp_path: Path) -> None:
    await store.backup(tmp_path / "copy.db")
    size = (tmp_path / "copy.db").stat().st_size
    with (tmp_path / "copy.db").open("r+b") as file:
        for offset in range(size - 3 * 4096, size, 4096):
            file.seek(offset)
            file.write(os.urandom(64))
    problems = await check_file(tmp_path / "copy.db")
    assert problems
    assert problems[0].thread_id is None
