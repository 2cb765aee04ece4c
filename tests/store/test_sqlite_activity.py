"""What the lists go by is right whenever somebody looks, also after a crash that left it unsettled."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bubble.protocol.resources import Run, Thread
from bubble.store.sqlite import SqliteStore, activity, runs
from bubble.testing.store_suite.base import ManualClock, a_part, a_start

pytestmark = pytest.mark.anyio


def crashed_copy(store: SqliteStore, target: Path) -> Path:
    """What a `kill -9` at this moment would leave: the file and its log as they are."""
    target.mkdir()
    for file in store.path.parent.glob(f"{store.path.name}*"):
        shutil.copy(file, target)
    return target / store.path.name


async def threads_in_order(store: SqliteStore) -> list[str]:
    return [thread.thread_id for thread in (await store.list_threads(principal_id=None)).threads]


async def last_seqs(store: SqliteStore, thread_id: str) -> dict[str, int]:
    return {run.run_id: run.last_seq for run in (await store.list_runs(thread_id)).runs}


async def everything(store: SqliteStore) -> list[tuple[Thread, list[Run]]]:
    threads = (await store.list_threads(principal_id=None)).threads
    return [(thread, (await store.list_runs(thread.thread_id)).runs) for thread in threads]


async def fill(store: SqliteStore, clock: ManualClock) -> None:
    """Three threads whose activity is settled, and then events that nobody has looked at."""
    for name in ("a", "b", "c"):
        await store.append(name, a_start())
        clock.advance(1)
    assert await threads_in_order(store) == ["c", "b", "a"]
    await store.append("a", a_start('run "2" é'))
    clock.advance(1)
    await store.append("b", a_part(delta="\ud83d"))
    await store.append("b", a_part())


@pytest.mark.requirement("PR-6-13")
async def test_after_a_crash_the_lists_are_as_they_would_have_been(tmp_path: Path) -> None:
    clock = ManualClock()
    async with await SqliteStore.open(tmp_path / "bubble.db", clock=clock) as store:
        await fill(store, clock)
        copy = crashed_copy(store, tmp_path / "crashed")
        expected = await everything(store)
    async with await SqliteStore.open(copy, clock=clock) as store:
        assert await everything(store) == expected
        assert await threads_in_order(store) == ["b", "a", "c"]
        assert await last_seqs(store, "b") == {"run-1": 3}
        assert await last_seqs(store, "a") == {"run-1": 1, 'run "2" é': 2}
        assert await store.check() == []


async def test_unsettled_activity_is_no_damage(tmp_path: Path) -> None:
    clock = ManualClock()
    async with await SqliteStore.open(tmp_path / "bubble.db", clock=clock) as store:
        await fill(store, clock)
        assert await store.check() == []


async def test_settling_more_than_one_slice_gets_every_thread_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activity, "_SLICE", 3)
    clock = ManualClock()
    async with await SqliteStore.open(tmp_path / "bubble.db", clock=clock) as store:
        names = [f"t-{number}" for number in range(20)]
        for name in names:
            await store.append(name, a_start())
        for name in names:
            clock.advance(1)
            await store.append(name, a_part())
        assert await threads_in_order(store) == names[::-1]
        copy = crashed_copy(store, tmp_path / "crashed")
    async with await SqliteStore.open(copy, clock=clock) as store:
        assert await threads_in_order(store) == names[::-1]
        assert await store.check() == []


@pytest.mark.requirement("PR-1-45")
async def test_a_run_that_had_an_event_just_now_is_not_lost_though_nothing_is_settled(tmp_path: Path) -> None:
    clock = ManualClock()
    async with await SqliteStore.open(tmp_path / "bubble.db", clock=clock) as store:
        await store.append("t", a_start("quiet"))
        await store.append("t", a_start("busy"))
        assert await last_seqs(store, "t") == {"quiet": 1, "busy": 2}
        clock.advance(1_000)
        await store.append("t", a_part("busy"))
        # As if the part had come right after the store had looked for candidates.
        found = [("t", "quiet"), ("t", "busy"), ("t", "unknown"), ("unknown", "quiet")]
        lost = await store._engine.change(runs.finish_lost_runs, found, idle_since_ms=clock.now_ms)
        assert lost == 1
        states = {run.run_id: run.state for run in (await store.list_runs("t")).runs}
        assert states == {"quiet": "finished", "busy": "open"}
