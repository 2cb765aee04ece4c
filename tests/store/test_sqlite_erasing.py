"""A deleted thread is gone at once, and its bytes soon after, without anybody waiting for it."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path

import apsw
import pytest

from bubble.protocol.errors import Conflict, NotFound
from bubble.store.notices import Notice, ThreadDeleted
from bubble.store.records import NewPrincipal
from bubble.store.sqlite import SqliteStore, erasing
from bubble.testing.store_suite.base import a_part, a_start, an_approval, outcome_of, submitted, until

pytestmark = pytest.mark.anyio

SECRET = "the-secret-that-nobody-may-find"
TABLES = ("events", "runs", "decisions", "idempotency_keys", "grants", "cursors", "activity", "doomed_threads")


def files(store: SqliteStore) -> list[Path]:
    return [file for file in store.path.parent.glob("bubble.db*") if file.suffix != ".lock"]


def rows(path: Path) -> dict[str, int]:
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    counts = {table: db.execute(f"SELECT count(*) FROM {table}").get for table in TABLES}  # noqa: S608
    db.close()
    return counts


async def fill(store: SqliteStore, *, parts: int) -> None:
    await store.create_principal(NewPrincipal(principal_id="ann", kind="user", display_name="Ann"))
    await store.append("secret", a_start(f"run-{SECRET}", principal_id="ann"))
    await store.append("secret", an_approval(f"run-{SECRET}", call_id=SECRET))
    await store.append_many("secret", [a_part(f"run-{SECRET}", delta=f"{SECRET} {number}") for number in range(parts)])
    await store.append("secret", a_part(f"run-{SECRET}", delta=SECRET + "x" * 20_000))
    await store.put_grant("secret", "ann", "owner", by="ann", appends=True)
    await store.advance_cursor("secret", "ann", 2)


def deletion_of(store: SqliteStore, thread_id: str) -> asyncio.Event:
    deleted = asyncio.Event()

    def heard(notices: Sequence[Notice]) -> None:
        if ThreadDeleted(thread_id) in notices:
            deleted.set()

    store.listen(heard)
    return deleted


@pytest.mark.requirement("PR-6-18")
async def test_of_a_deleted_thread_no_byte_is_left_in_any_file(tmp_path: Path) -> None:
    async with await SqliteStore.open(tmp_path / "bubble.db") as store:
        await fill(store, parts=300)
        await store.append("other", a_start())
        assert any(SECRET.encode() in file.read_bytes() for file in files(store))
        await store.delete_thread("secret")
        assert [file.name for file in files(store) if SECRET.encode() in file.read_bytes()] == []
        assert rows(store.path) == dict.fromkeys(TABLES, 0) | {"events": 1, "runs": 1, "activity": 1}
        assert await store.check() == []
        with pytest.raises(Conflict):
            await store.append("secret", a_start())


async def test_while_a_long_thread_is_erased_others_have_their_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasing, "_SLICE_ROWS", 5)
    async with await SqliteStore.open(tmp_path / "bubble.db") as store:
        await fill(store, parts=1_000)
        gone = deletion_of(store, "secret")
        deleting = asyncio.ensure_future(store.delete_thread("secret"))
        await until(gone)
        with pytest.raises(NotFound):
            await store.get_thread("secret")
        await outcome_of(submitted(store, "other", a_start()))
        assert not deleting.done()
        await deleting
        assert await store.check() == []


async def test_a_crash_in_the_middle_of_erasing_is_made_good_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasing, "_SLICE_ROWS", 5)
    async with await SqliteStore.open(tmp_path / "bubble.db") as store:
        await fill(store, parts=500)
        gone = deletion_of(store, "secret")
        deleting = asyncio.ensure_future(store.delete_thread("secret"))
        await until(gone)
        (tmp_path / "crashed").mkdir()
        for file in files(store):
            shutil.copy(file, tmp_path / "crashed")
        await deleting
    copy = tmp_path / "crashed" / "bubble.db"
    assert rows(copy)["doomed_threads"] == 1
    async with await SqliteStore.open(copy) as store:
        assert await store.check() == []
        await store.append("other", a_start())
        await store.delete_thread("other")  # erased after what was doomed before
        assert rows(store.path) == dict.fromkeys(TABLES, 0)


async def test_deleting_a_small_thread_beside_an_old_reader_ends_when_the_reader_does(tmp_path: Path) -> None:
    async with await SqliteStore.open(tmp_path / "bubble.db") as store:
        await fill(store, parts=3)
        reader = apsw.Connection(str(store.path))
        reader.execute("BEGIN; SELECT count(*) FROM events").fetchall()
        gone = deletion_of(store, "secret")
        deleting = asyncio.ensure_future(store.delete_thread("secret"))
        await until(gone)
        assert not deleting.done()
        reader.close()
        await deleting
        assert [file.name for file in files(store) if SECRET.encode() in file.read_bytes()] == []
