"""The file itself: who may open it, which files are accepted, what migrations do to it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from bubble.protocol.errors import Conflict, Unavailable
from bubble.store.sqlite import SqliteStore, backup_file, check_file, migrations
from bubble.store.sqlite.migrations import Migration, known_migrations
from bubble.testing.store_suite.base import a_start, patience
from tests.faults.signals import send_signal

pytestmark = pytest.mark.anyio

HOLDER = """
import asyncio, sys
from bubble.store.sqlite import SqliteStore

async def main():
    await SqliteStore.open(sys.argv[1])
    print("open", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "down" / "bubble.db"


@pytest.fixture
def story(path: Path) -> Path:
    """A file in which somebody wrote something else."""
    path.parent.mkdir(parents=True)
    path.write_bytes(b"Once upon a time there was a file. " * 100)
    return path


def content(path: Path) -> bytes:
    return path.read_bytes()


async def test_the_directory_is_created_and_what_was_stored_is_there_after_a_restart(path: Path) -> None:
    async with await SqliteStore.open(path) as store:
        stored = await store.append("t", a_start())
    async with await SqliteStore.open(path) as store:
        assert await store.read("t", from_seq=1, to_seq=9, limit=9, max_bytes=9999) == [stored.text]
        assert (await store.append("t", a_start("run-2"))).seq == 2


async def test_a_second_store_on_the_same_file_is_told_who_is_in_the_way_and_what_to_do(path: Path) -> None:
    async with await SqliteStore.open(path) as store:
        with pytest.raises(Conflict, match=r"bubble\.db is in use.*bubble\.db\.lock.*Stop that one"):
            await SqliteStore.open(path)
        assert (await store.append("t", a_start())).seq == 1
    async with await SqliteStore.open(path) as store:
        assert (await store.position("t")).head == 1


async def test_another_process_is_kept_out_until_the_first_is_gone_however_it_went(path: Path) -> None:
    holder = await asyncio.create_subprocess_exec(sys.executable, "-c", HOLDER, path, stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None
        async with patience():
            assert await holder.stdout.readline() == b"open\n"
        with pytest.raises(Conflict):
            await SqliteStore.open(path)
    finally:
        send_signal(holder, signal.SIGKILL)
        await holder.wait()
    async with await SqliteStore.open(path) as store:
        assert await store.check() == []


async def test_only_its_owner_may_read_the_file(path: Path) -> None:
    async with await SqliteStore.open(path) as store:
        await store.append("t", a_start())
        assert modes(path.parent) == {0o600}


async def test_directories_made_for_a_file_or_a_backup_are_its_owners_alone_too(path: Path, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        async with await SqliteStore.open(path) as store:
            await store.append("t", a_start())
            await backup_file(path, tmp_path / "copies" / "today" / "copy.db")
    finally:
        os.umask(before)
    made = [path.parent, path.parent.parent, tmp_path / "copies", tmp_path / "copies" / "today"]
    assert {each.stat().st_mode & 0o777 for each in made} == {0o700}
    assert modes(tmp_path / "copies" / "today") == {0o600}


def modes(folder: Path) -> set[int]:
    return {file.stat().st_mode & 0o777 for file in folder.iterdir()}


async def test_an_opening_that_nobody_waits_for_any_more_leaves_the_file_free(path: Path) -> None:
    opening = asyncio.ensure_future(SqliteStore.open(path))
    await asyncio.sleep(0)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    async with patience():
        while True:
            try:
                store = await SqliteStore.open(path)
            except Conflict:
                continue
            break
    await store.close()


async def test_closing_ends_well_though_its_caller_is_cancelled(path: Path) -> None:
    store = await SqliteStore.open(path)
    await store.append("t", a_start())
    closing = asyncio.ensure_future(store.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    await store.close()
    async with await SqliteStore.open(path) as store:
        assert (await store.position("t")).head == 1


async def test_a_file_that_is_no_database_is_unavailable_and_not_touched(story: Path) -> None:
    before = content(story)
    with pytest.raises(Unavailable, match=r"bubble\.db cannot be opened"):
        await SqliteStore.open(story)
    assert content(story) == before


async def test_a_database_of_another_program_is_left_alone(path: Path) -> None:
    path.parent.mkdir(parents=True)
    other = apsw.Connection(str(path))
    other.execute("CREATE TABLE recipes (name)")
    other.close()
    with pytest.raises(Conflict, match="another program"):
        await SqliteStore.open(path)
    with pytest.raises(Conflict, match="another program"):
        await check_file(path)


async def test_a_file_from_a_newer_bubble_is_refused_and_not_touched(path: Path) -> None:
    async with await SqliteStore.open(path) as store:
        newest = store.schema_version
    db = apsw.Connection(str(path))
    db.execute("INSERT INTO migrations VALUES (?, 'from the future', 0)", (newest + 1,))
    db.close()
    with pytest.raises(Conflict, match=rf"newer Bubble \(its schema is {newest + 1}.*Upgrade"):
        await SqliteStore.open(path)


@pytest.fixture
def one_more(monkeypatch: pytest.MonkeyPatch) -> int:
    """Has this code know one migration more than it does."""
    known = known_migrations()
    version = len(known) + 1
    more = Migration(version, "more", "CREATE TABLE more (a TEXT) STRICT")
    monkeypatch.setattr(migrations, "known_migrations", lambda: (*known, more))
    return version


async def test_an_older_file_is_brought_up_to_date_with_what_it_holds(
    path: Path, request: pytest.FixtureRequest
) -> None:
    async with await SqliteStore.open(path) as store:
        stored = await store.append("t", a_start())
    version = request.getfixturevalue("one_more")
    with pytest.raises(Conflict, match="bubble db migrate"):
        await SqliteStore.open(path, migrate=False)
    async with await SqliteStore.open(path) as store:
        assert store.schema_version == version
        assert await store.read("t", from_seq=1, to_seq=1, limit=1, max_bytes=1) == [stored.text]
    async with await SqliteStore.open(path, migrate=False) as store:
        assert store.schema_version == version


async def test_a_new_file_needs_no_leave_to_be_filled(path: Path) -> None:
    async with await SqliteStore.open(path, migrate=False) as store:
        assert store.schema_version == len(known_migrations())


async def test_a_migration_that_fails_leaves_the_file_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with await SqliteStore.open(path) as store:
        version = store.schema_version
    broken = Migration(version + 1, "broken", "CREATE TABLE half (a TEXT) STRICT; SELECT * FROM nothing")
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "known_migrations", lambda: (*known_migrations(), broken))
        with pytest.raises(Unavailable):
            await SqliteStore.open(path)
    async with await SqliteStore.open(path) as store:
        assert store.schema_version == version
    db = apsw.Connection(str(path))
    assert not db.table_exists(None, "half")
    db.close()


def test_migrations_are_numbered_from_one_without_a_gap() -> None:
    assert [step.version for step in known_migrations()] == list(range(1, len(known_migrations()) + 1))
