"""What a connector knows after a restart."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from bubble.amphibian.database import Database
from bubble.amphibian.settlement import SettlementTracker
from bubble.amphibian.store import MEMORY, AmphibianStore, Remembered, ThreadKey
from bubble.protocol.errors import Conflict, Unavailable

pytestmark = pytest.mark.anyio

KEY = ThreadKey(server="http://s", principal_id="bot", thread_id="t")
NOTHING = Remembered(checkpoint=None, beyond=[], session=b"{}")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "within" / "db.sqlite"


def names_in(directory: Path) -> list[str]:
    return [each.name for each in directory.iterdir()]


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def garbage(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(b"This is no database. " * 400)


def remove(path: Path) -> None:
    path.unlink()


def break_pages(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xff" * 8192 + content[12288:])


@pytest.mark.requirement("AM-16")
async def test_a_checkpoint_and_what_is_settled_beyond_survive_a_restart(path: Path) -> None:
    async with await AmphibianStore.open(str(path)) as store:
        store.note_checkpoint(KEY, SettlementTracker(7, beyond=[(9, 12), (20, 20)]))
    async with await AmphibianStore.open(str(path)) as store:
        assert await store.read(KEY) == Remembered(checkpoint=7, beyond=[(9, 12), (20, 20)], session=b"{}")


@pytest.mark.requirement("AM-16")
async def test_a_session_survives_a_restart(path: Path) -> None:
    async with await AmphibianStore.open(str(path)) as store:
        await store.write_session(KEY, b'{"taskId":"1"}')
        await store.write_session(KEY, b'{"taskId":"2"}')
    async with await AmphibianStore.open(str(path)) as store:
        assert await store.read(KEY) == Remembered(checkpoint=None, beyond=[], session=b'{"taskId":"2"}')


@pytest.mark.requirement("AM-16")
@pytest.mark.parametrize("other", [{"server": "http://u"}, {"principal_id": "tob"}, {"thread_id": "u"}])
async def test_servers_principals_and_threads_share_nothing(other: dict[str, str]) -> None:
    names = {"server": "http://s", "principal_id": "bot", "thread_id": "t", **other}
    async with await AmphibianStore.open() as store:
        store.note_checkpoint(KEY, SettlementTracker(7))
        await store.write_session(KEY, b'{"a":1}')
        assert await store.read(ThreadKey(**names)) == NOTHING


@pytest.mark.requirement("AM-17")
async def test_a_store_in_memory_is_gone_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        async with await AmphibianStore.open(MEMORY) as store:
            assert await store.read(KEY) == NOTHING
            store.note_checkpoint(KEY, SettlementTracker(7))
            assert (await store.read(KEY)).checkpoint == 7
    assert names_in(tmp_path) == []


async def test_a_checkpoint_is_written_as_it_is_when_its_turn_comes(path: Path) -> None:
    tracker = SettlementTracker()
    async with await AmphibianStore.open(str(path)) as store:
        for seq in range(1, 101):
            tracker.settle(seq)
            store.note_checkpoint(KEY, tracker)
        await store.flush()
        with closing(sqlite3.connect(path)) as other:
            assert other.execute("SELECT through FROM checkpoints").fetchall() == [(100,)]


async def test_of_very_many_ranges_the_newest_are_kept() -> None:
    async with await AmphibianStore.open() as store:
        store.note_checkpoint(KEY, SettlementTracker(0, beyond=[(n, n) for n in range(2, 3_002, 2)]))
        kept = (await store.read(KEY)).beyond
        assert (len(kept), kept[-1]) == (1_000, (3_000, 3_000))


async def test_a_store_is_for_one_connector_at_a_time(path: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "deep")
    async with await AmphibianStore.open(str(path)) as store:
        for name in (path, tmp_path / "link" / "within" / "db.sqlite"):
            with pytest.raises(Conflict, match=rf"db\.sqlite is in use by another connector, process {os.getpid()} \("):
                await AmphibianStore.open(str(name))
        await store.write_session(KEY, b'{"a":1}')
    async with await AmphibianStore.open(str(path)) as store:
        assert (await store.read(KEY)).session == b'{"a":1}'


async def test_stores_in_memory_keep_nobody_out() -> None:
    async with await AmphibianStore.open() as one, await AmphibianStore.open() as two:
        await one.write_session(KEY, b'{"a":1}')
        assert await two.read(KEY) == NOTHING


async def test_a_store_that_could_not_be_opened_is_not_kept_from_the_next_one(path: Path) -> None:
    garbage(path)
    with pytest.raises(Unavailable, match="is damaged"):
        await AmphibianStore.open(str(path))
    remove(path)
    async with await AmphibianStore.open(str(path)) as store:
        assert await store.read(KEY) == NOTHING


async def test_the_file_and_its_directories_are_for_nobody_else(path: Path) -> None:
    async with await AmphibianStore.open(str(path)):
        assert (mode_of(path), mode_of(path.parent)) == (0o600, 0o700)


async def test_a_damaged_file_is_said_to_be_damaged(path: Path) -> None:
    garbage(path)
    with pytest.raises(Unavailable, match=r"db\.sqlite is damaged .* move it away"):
        await AmphibianStore.open(str(path))


async def test_a_file_with_broken_pages_is_said_to_be_damaged(path: Path) -> None:
    async with await AmphibianStore.open(str(path)) as store:
        store.note_checkpoint(KEY, SettlementTracker(7))
    break_pages(path)
    with pytest.raises(Unavailable, match="is damaged"):
        await AmphibianStore.open(str(path))


async def test_somebody_elses_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE theirs (a)")
    with pytest.raises(Unavailable, match="is not a connector's store"):
        await AmphibianStore.open(str(path))
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("theirs",)]


async def test_a_newer_store_is_not_touched(path: Path) -> None:
    async with await AmphibianStore.open(str(path)):
        pass
    with closing(sqlite3.connect(path)) as newer:
        newer.execute("PRAGMA user_version = 2")
    with pytest.raises(Unavailable, match="newer version"):
        await AmphibianStore.open(str(path))


async def test_a_place_where_nothing_can_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Unavailable, match=r"file/db\.sqlite cannot be made"):
        await AmphibianStore.open(str(tmp_path / "file" / "db.sqlite"))


async def test_checkpoints_that_cannot_be_written_are_kept_for_the_next_time(path: Path) -> None:
    async with await AmphibianStore.open(str(path)) as store:
        with closing(sqlite3.connect(path)) as other:
            other.execute("ALTER TABLE checkpoints RENAME TO elsewhere")
            store.note_checkpoint(KEY, SettlementTracker(7))
            with pytest.raises(Unavailable, match="cannot be used"):
                await store.flush()
            other.execute("ALTER TABLE elsewhere RENAME TO checkpoints")
        store.note_checkpoint(ThreadKey(server="http://s", principal_id="bot", thread_id="u"), SettlementTracker(1))
        assert (await store.read(KEY)).checkpoint == 7


async def test_sessions_that_are_written_at_the_same_time_share_a_transaction(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []
    write = Database.write

    def noted(self: Database, sql: str, rows: Sequence[tuple[object, ...]]) -> None:
        counts.append(len(rows))
        write(self, sql, rows)

    monkeypatch.setattr(Database, "write", noted)
    keys = [replace(KEY, thread_id=f"t{number}") for number in range(50)]
    async with await AmphibianStore.open(str(path)) as store:
        await asyncio.gather(*(store.write_session(key, b'{"a":1}') for key in keys))
        assert len(counts) <= 2
        assert {(await store.read(key)).session for key in keys} == {b'{"a":1}'}


async def test_sessions_that_cannot_be_written_are_kept_for_the_next_time(path: Path) -> None:
    other = replace(KEY, thread_id="other")
    async with await AmphibianStore.open(str(path)) as store:
        with closing(sqlite3.connect(path, isolation_level=None)) as another:
            another.execute("ALTER TABLE sessions RENAME TO elsewhere")
            failed = await asyncio.gather(
                *(store.write_session(key, b'{"a":1}') for key in (KEY, other)), return_exceptions=True
            )
            assert [type(each) for each in failed] == [Unavailable, Unavailable]
            another.execute("ALTER TABLE elsewhere RENAME TO sessions")
        await store.write_session(KEY, b'{"a":2}')
        assert [(await store.read(key)).session for key in (KEY, other)] == [b'{"a":2}', b'{"a":1}']


async def test_what_waits_for_the_disk_is_read_as_if_it_were_written_and_nobody_waits_for_it(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with await AmphibianStore.open(str(path)) as store:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            store.note_checkpoint(KEY, SettlementTracker(7, beyond=[(9, 9)]))
            await store.keep_session(KEY, b'{"a":1}')
            assert await store.read(KEY) == Remembered(checkpoint=7, beyond=((9, 9),), session=b'{"a":1}')
        assert f"The session of thread t is not kept yet: {path} cannot be written." in caplog.text
    async with await AmphibianStore.open(str(path)) as store:
        assert await store.read(KEY) == Remembered(checkpoint=7, beyond=[(9, 9)], session=b'{"a":1}')


async def test_a_session_that_could_not_be_written_is_kept_together_with_the_next_checkpoint(path: Path) -> None:
    async with await AmphibianStore.open(str(path)) as store:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("ALTER TABLE sessions RENAME TO elsewhere")
            await store.keep_session(KEY, b'{"a":1}')
            other.execute("ALTER TABLE elsewhere RENAME TO sessions")
            store.note_checkpoint(KEY, SettlementTracker(7))
            await store.flush()
            assert other.execute("SELECT session FROM sessions").fetchall() == [('{"a":1}',)]
