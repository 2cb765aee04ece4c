"""The disk fails at the n-th write, for every n: clean errors, an intact store, and what was acknowledged is there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TypeVar

import pytest

from bubble.protocol.errors import BubbleError, Conflict, Unavailable
from bubble.protocol.events import SequencedEvent
from bubble.store.commands import IdempotencyKey
from bubble.store.records import NewPrincipal, NewThread, Participant, ThreadChanges
from bubble.store.sqlite import SqliteStore, upkeep
from tests.faults.failing_disk import FailingDisk

pytestmark = pytest.mark.anyio

T = TypeVar("T")

EVERYTHING = 2**53 - 1
ADA, BOB = "ada", "bob"


@pytest.fixture
def disk() -> Iterator[FailingDisk]:
    with FailingDisk() as disk:
        yield disk


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "_AFTER_FAILURE_SECONDS", 0.01)


def part(run: str, text: str) -> dict[str, object]:
    chunk = {"type": "text-delta", "id": "t", "delta": text}
    return {"type": "message_part", "principalId": ADA, "runId": run, "version": "ai-sdk-v6", "part": chunk}


def start(run: str) -> dict[str, object]:
    return {"type": "run_started", "principalId": ADA, "runId": run}


def finish(run: str) -> dict[str, object]:
    return {"type": "run_finished", "principalId": ADA, "runId": run}


@dataclass(slots=True)
class Diary:
    """What was acknowledged, and how many steps were not."""

    events: dict[str, dict[int, bytes]] = field(default_factory=dict)
    refused: int = 0

    async def attempt(self, step: Awaitable[T]) -> T | None:
        try:
            return await step
        except Unavailable:
            self.refused += 1
        except BubbleError:
            assert self.refused, "only a step whose forerunner failed may be refused for another reason"
        return None

    async def append(self, thread_id: str, step: Awaitable[SequencedEvent]) -> None:
        event = await self.attempt(step)
        if event is not None:
            self.note(thread_id, event)

    def note(self, thread_id: str, event: SequencedEvent) -> None:
        texts = self.events.setdefault(thread_id, {})
        assert event.seq not in texts, f"seq {event.seq} was given twice"
        texts[event.seq] = event.text


async def use(store: SqliteStore, diary: Diary) -> None:
    """A bit of everything: single and batched, small and large, new threads, grants, titles, lists, a deletion."""
    for name in (ADA, BOB):
        await diary.attempt(store.create_principal(NewPrincipal(principal_id=name, kind="user", display_name=name)))
    seats = [Participant(principal_id=BOB, role="observer", appends=False)]
    await diary.attempt(store.create_thread(NewThread(thread_id="talk", creator=ADA, participants=seats)))
    await diary.append("log", store.append("log", start("r")))
    await diary.append("log", store.append("log", part("r", "small")))
    await diary.append("log", store.append("log", part("r", "large " * 20_000)))
    await asyncio.gather(*(diary.append("log", store.append("log", part("r", f"{n}"))) for n in range(8)))
    await diary.attempt(store.put_grant("talk", BOB, "participant", by=ADA, appends=True))
    for event in await diary.attempt(store.append_many("log", [part("r", "one"), part("r", "two")])) or ():
        diary.note("log", event)
    key = IdempotencyKey(ADA, "key", b"digest")
    await diary.append("log", store.append("log", finish("r"), idempotency=key))
    await diary.attempt(store.update_thread("talk", ThreadChanges(title="Talk"), by=ADA))
    await diary.attempt(store.list_threads(principal_id=None))
    await diary.append("doomed", store.append("doomed", start("r")))
    await diary.attempt(store.delete_thread("doomed"))
    await diary.attempt(store.remove_grant("talk", BOB, by=ADA))


async def verify(store: SqliteStore, diary: Diary, where: str) -> None:
    assert await store.check() == [], where
    for thread_id, texts in diary.events.items():
        found = await store.read(thread_id, from_seq=1, to_seq=EVERYTHING, limit=10_000, max_bytes=2**30)
        if found or thread_id != "doomed":
            assert list(found) == [texts[seq] for seq in sorted(texts)], where
            assert sorted(texts) == list(range(1, len(texts) + 1)), where
        else:
            with pytest.raises(Conflict):
                await store.append(thread_id, start("again"))


async def survive(path: Path, disk: FailingDisk, where: str) -> int:
    """One life of a store on the disk as it is armed; how often the disk failed."""
    diary = Diary()
    store = None
    while store is None:
        try:
            store = await SqliteStore.open(path, vfs=disk.name)
        except Unavailable:
            assert disk.failures, where
            disk.heal()
    async with store:
        await use(store, diary)
        disk.heal()
        await diary.append("log", store.append("log", start("after")))
        assert 1 in diary.events["log"], where
        await verify(store, diary, where)
    assert bool(diary.refused) <= bool(disk.failures), where
    async with await SqliteStore.open(path) as store:
        await verify(store, diary, f"{where}, opened again")
    return disk.failures


@pytest.mark.slow
@pytest.mark.requirement("PR-1-23")
@pytest.mark.parametrize("only_once", [pytest.param(True, id="once"), pytest.param(False, id="from there on")])
async def test_a_write_that_fails_loses_and_doubles_nothing_whichever_it_is(
    tmp_path: Path, disk: FailingDisk, *, only_once: bool
) -> None:
    for number in count(1):
        disk.fail_at(number, only_once=only_once)
        if not await survive(tmp_path / f"{number}.db", disk, f"failure at write {number}"):
            break
    assert number > 50
