"""The write-ahead log is copied back in time, without ending up in an append's way."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bubble.store.sqlite import SqliteStore, checkpoints, upkeep
from bubble.testing.store_suite.base import a_part, a_start, outcome_of, patience, submitted

pytestmark = pytest.mark.anyio


def log_of(store: SqliteStore) -> Path:
    return store.path.with_name(f"{store.path.name}-wal")


async def test_under_steady_load_the_log_stays_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "_MANY_PAGES", 64)
    async with await SqliteStore.open(tmp_path / "bubble.db") as store:
        await store.append("t", a_start())
        for _ in range(300):
            await asyncio.gather(*(outcome_of(submitted(store, "t", a_part(delta="x" * 2_000))) for _ in range(20)))
        written = 300 * 20 * 2_000
        assert log_of(store).stat().st_size < written / 3
        assert await store.check() == []


async def test_when_nothing_happens_the_log_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "_IDLE_SECONDS", 0.01)
    async with await SqliteStore.open(tmp_path / "bubble.db") as store:
        stored = await store.append("t", a_start())
        async with patience():
            while stored.text not in store.path.read_bytes():
                await store.get_thread("t")


async def test_a_closed_store_is_one_file_that_holds_everything(tmp_path: Path) -> None:
    async with await SqliteStore.open(tmp_path / "bubble.db") as store:
        stored = await store.append("t", a_start())
    assert stored.text in store.path.read_bytes()
    assert not log_of(store).exists()
