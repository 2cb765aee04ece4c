"""From a URL to a store."""

from __future__ import annotations

from pathlib import Path

import pytest

from bubble.protocol.errors import Conflict, InvalidRequest
from bubble.store.memory import MemoryStore
from bubble.store.opening import open_store
from bubble.store.sqlite import SqliteStore
from bubble.testing.store_suite.base import ManualClock, a_part, a_start

pytestmark = pytest.mark.anyio


async def test_memory_is_a_store_that_forgets() -> None:
    for _ in range(2):
        async with await open_store("memory:") as store:
            assert isinstance(store, MemoryStore)
            assert (await store.append("t", a_start())).seq == 1


async def test_a_relative_and_an_absolute_path_name_a_file_that_is_created_and_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for seq, url in enumerate(("sqlite:///data/bubble.db", f"sqlite:///{tmp_path}/data/bubble.db"), start=1):
        async with await open_store(url) as store:
            assert isinstance(store, SqliteStore)
            assert (await store.append("t", a_start(f"run-{seq}"))).seq == seq


@pytest.mark.parametrize(
    "url", ["", "memory", "memory:x", "sqlite:", "sqlite://", "sqlite:///", "postgresql://x/y", "/x.db"]
)
async def test_a_url_that_names_no_store_is_refused(url: str) -> None:
    with pytest.raises(InvalidRequest, match="names no store"):
        await open_store(url)


@pytest.mark.requirement("PR-1-30")
@pytest.mark.parametrize("url", ["memory:", "sqlite:///bubble.db"])
async def test_runs_are_held_to_their_lifecycle_unless_asked_otherwise(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, url: str
) -> None:
    monkeypatch.chdir(tmp_path)
    async with await open_store(url) as store:
        with pytest.raises(Conflict):
            await store.append("t", a_part())
    async with await open_store(url, run_integrity="off", clock=ManualClock()) as store:
        assert (await store.append("t", a_part())).created_at == "2026-05-06T12:34:56.789Z"
