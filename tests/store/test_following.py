"""Following a store that others write to as well: a doorbell that is lost costs a little time and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

import pytest

from bubble.protocol.errors import NotFound, Unavailable
from bubble.protocol.events import SequencedEvent
from bubble.store import following
from bubble.store.memory import MemoryStore
from bubble.store.notices import Listener, Position
from bubble.testing.store_suite.base import a_finish, a_part, a_start, patience, until

pytestmark = pytest.mark.anyio


class DeafStore(MemoryStore):
    """A store whose notices never arrive, as if another process had made every commit, and that can be out of reach."""

    is_shared = True

    def __init__(self) -> None:
        super().__init__()
        self.is_out_of_reach = False
        self.was_polled = asyncio.Event()

    def listen(self, listener: Listener) -> Callable[[], None]:
        del listener
        return lambda: None

    async def position(self, thread_id: str) -> Position:
        self.was_polled.set()
        if self.is_out_of_reach:
            raise Unavailable("The store cannot be reached.")
        return await super().position(thread_id)


@pytest.fixture
async def store(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[DeafStore]:
    monkeypatch.setattr(following, "_POLL_SECONDS", 0.005)
    async with DeafStore() as store:
        await store.append_many("t", [a_start(), a_part()])
        yield store


class Watcher:
    """A callback that tells when the run has finished."""

    def __init__(self) -> None:
        self.seqs: list[int] = []
        self.finished = asyncio.Event()

    def __call__(self, event: SequencedEvent) -> None:
        self.seqs.append(event.seq)
        if event.type == "run_finished":
            self.finished.set()


async def polled(store: DeafStore) -> None:
    """Returns after the subscription has looked for itself once more."""
    store.was_polled.clear()
    await until(store.was_polled)


async def test_a_subscription_finds_what_no_notice_told_it(store: DeafStore) -> None:
    watcher = Watcher()
    subscription = await store.subscribe("t", watcher)
    await polled(store)
    await store.append_many("t", [a_part(), a_finish()])
    await until(watcher.finished)
    assert watcher.seqs == [1, 2, 3, 4]
    await subscription.unsubscribe()


async def test_a_store_that_is_out_of_reach_for_a_while_ends_no_subscription(store: DeafStore) -> None:
    watcher = Watcher()
    subscription = await store.subscribe("t", watcher)
    store.is_out_of_reach = True
    await polled(store)
    await store.append("t", a_finish())
    await polled(store)
    store.is_out_of_reach = False
    await until(watcher.finished)
    assert watcher.seqs == [1, 2, 3]
    await subscription.unsubscribe()


async def test_a_deletion_that_no_notice_told_of_is_found(store: DeafStore) -> None:
    subscription = await store.subscribe("t", Watcher())
    await polled(store)
    await store.delete_thread("t")
    with pytest.raises(NotFound):
        async with patience():
            await subscription.wait_closed()


async def test_a_store_that_fails_while_the_backlog_is_read_ends_the_subscription_with_its_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def broken(*_: object, **__: object) -> Sequence[bytes]:
        raise Unavailable("The disk is gone.")

    async with MemoryStore() as store:
        await store.append("t", a_start())
        monkeypatch.setattr(store, "read", broken)
        subscription = await store.subscribe("t", Watcher())
        with pytest.raises(Unavailable, match="disk"):
            async with patience():
                await subscription.wait_closed()


async def test_nothing_is_left_behind_by_subscriptions_that_come_and_go() -> None:
    async with MemoryStore() as store:
        await store.append("t", a_start())
        tasks = asyncio.all_tasks()
        for _ in range(200):
            subscription = await store.subscribe("t", Watcher())
            await subscription.unsubscribe()
        with pytest.raises(NotFound):
            await store.subscribe("nowhere", Watcher())
        assert asyncio.all_tasks() == tasks
        assert store._outbox._listeners == {}
