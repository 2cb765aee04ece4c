"""What lagging readers share: one read for all, never more than was released, and a bound on all of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from bubble.auth.policy import Policy
from bubble.hub import JSON_MESSAGES, SERVER_SENT_EVENTS, Hub
from bubble.hub.backlog import READ_BYTES, Backlogs
from bubble.hub.tail import SLICE_BYTES, Tail
from bubble.hub.tasks import TaskOwner
from bubble.hub.waiting import HeldPage
from bubble.protocol.errors import Unavailable
from bubble.store.memory import MemoryStore
from tests.hub.sinks import OWNER, RecordingSink, connect, identity, make_thread, part

pytestmark = pytest.mark.anyio

THREAD = "thread-1"


class _Events:
    """A thread of numbered texts, whose reads are noted and may be held up."""

    def __init__(self, *, size: int = 1_000) -> None:
        self.asked: list[tuple[int, int]] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.is_out_of_reach = False
        self._size = size

    async def read(self, _: str, *, from_seq: int, to_seq: int, limit: int, max_bytes: int) -> Sequence[bytes]:
        self.asked.append((from_seq, to_seq))
        await self.may_answer.wait()
        if self.is_out_of_reach:
            raise Unavailable("The store is out of reach.")
        count = min(limit, to_seq - from_seq + 1, max(1, max_bytes // self._size))
        return [b'{"seq":%d,%b' % (seq, b"x" * self._size) for seq in range(from_seq, from_seq + count)]


@pytest.fixture
async def tasks() -> AsyncIterator[TaskOwner]:
    owner = TaskOwner()
    yield owner
    await owner.close()


async def test_readers_that_lag_together_share_one_read_and_its_bytes(tasks: TaskOwner) -> None:
    events = _Events()
    backlog = Backlogs(events, tasks).open(THREAD)
    events.may_answer.clear()
    reads = [asyncio.ensure_future(backlog.read(JSON_MESSAGES, 1, to_seq=5_000)) for _ in range(10)]
    behind = asyncio.ensure_future(backlog.read(JSON_MESSAGES, 5, to_seq=5_000))
    await asyncio.sleep(0)
    events.may_answer.set()
    chunks = await asyncio.gather(*reads)
    assert chunks[0] is not None
    assert all(chunk is chunks[0] for chunk in chunks)
    rest = await behind
    assert rest is not None
    assert (rest.first_seq, rest.next_seq) == (5, chunks[0].next_seq)
    assert backlog.find(JSON_MESSAGES, 1) is chunks[0]
    assert events.asked == [(1, 5_000)]


async def test_each_encoding_has_slices_of_its_own(tasks: TaskOwner) -> None:
    backlog = Backlogs(_Events(), tasks).open(THREAD)
    await backlog.read(JSON_MESSAGES, 1, to_seq=10)
    assert backlog.find(SERVER_SENT_EVENTS, 1) is None


async def test_a_slice_ends_at_what_was_released(tasks: TaskOwner) -> None:
    tail = Tail(THREAD, Backlogs(_Events(), tasks).open(THREAD), max_events=10, max_bytes=10_000)
    tail.learn(head=50, grant_version=1)
    tail.learn(head=60, grant_version=2)  # somebody's grant changed: 51 to 60 are not for anybody yet
    chunk = await tail.read(JSON_MESSAGES, 41)
    assert chunk is not None
    assert chunk.next_seq == 51
    assert tail.chunk(JSON_MESSAGES, 51) is None
    tail.release()
    chunk = await tail.read(JSON_MESSAGES, 51)
    assert chunk is not None
    assert chunk.next_seq == 61


async def test_what_is_cut_from_the_tail_never_passes_what_was_released(tasks: TaskOwner) -> None:
    events = _Events()
    texts = await events.read(THREAD, from_seq=1, to_seq=400, limit=400, max_bytes=10**6)
    tail = Tail(THREAD, Backlogs(events, tasks).open(THREAD), max_events=1_000, max_bytes=10**6)
    tail.learn(head=0, grant_version=1)
    tail.learn(head=200, grant_version=1, texts=texts[:200])
    tail.learn(head=400, grant_version=2, texts=texts[200:])
    seq = 1
    while seq <= tail.released:
        chunk = tail.chunk(JSON_MESSAGES, seq)
        assert chunk is not None
        assert chunk.size <= SLICE_BYTES
        seq = chunk.next_seq
    assert seq == 201
    assert tail.backlog.find(JSON_MESSAGES, 201) is None


async def test_slices_that_the_tail_let_go_are_still_shared(tasks: TaskOwner) -> None:
    events = _Events()
    texts = await events.read(THREAD, from_seq=1, to_seq=400, limit=400, max_bytes=10**6)
    tail = Tail(THREAD, Backlogs(events, tasks).open(THREAD), max_events=200, max_bytes=10**6)
    guard = Policy().guard(identity(OWNER))
    tail.members.update(HeldPage(tail, 10**6, guard) for _ in range(2))
    tail.learn(head=0, grant_version=1)
    tail.learn(head=200, grant_version=1, texts=texts[:200])
    first = tail.chunk(JSON_MESSAGES, 1)
    tail.learn(head=400, grant_version=1, texts=texts[200:])
    assert tail.first_kept == 201
    assert first is not None
    assert tail.chunk(JSON_MESSAGES, 1) is first


async def test_for_a_reader_that_is_alone_nothing_is_kept(tasks: TaskOwner) -> None:
    tail = Tail(THREAD, Backlogs(_Events(), tasks).open(THREAD), max_events=10, max_bytes=10_000)
    tail.learn(head=5_000, grant_version=1)
    tail.members.add(HeldPage(tail, 10**6, Policy().guard(identity(OWNER))))
    assert await tail.read(JSON_MESSAGES, 1) is not None
    assert tail.backlog.size == 0


async def test_a_closed_backlog_serves_nothing_and_keeps_nothing_of_a_read_under_way(tasks: TaskOwner) -> None:
    events = _Events()
    owner = Backlogs(events, tasks)
    backlog = owner.open(THREAD)
    held = await backlog.read(JSON_MESSAGES, 1, to_seq=5_000)
    assert held is not None
    events.may_answer.clear()
    reading = asyncio.ensure_future(backlog.read(JSON_MESSAGES, held.next_seq, to_seq=5_000))
    await asyncio.sleep(0)
    backlog.close()
    events.may_answer.set()
    await reading
    assert backlog.find(JSON_MESSAGES, 1) is None
    assert await backlog.read(JSON_MESSAGES, 1, to_seq=5_000) is None
    assert (backlog.size, owner.size) == (0, 0)


async def test_a_read_that_fails_fails_for_all_and_the_next_one_is_a_new_one(tasks: TaskOwner) -> None:
    events = _Events()
    events.is_out_of_reach = True
    backlog = Backlogs(events, tasks).open(THREAD)
    both = await asyncio.gather(*(backlog.read(JSON_MESSAGES, 1, to_seq=10) for _ in range(2)), return_exceptions=True)
    assert [type(outcome) for outcome in both] == [Unavailable, Unavailable]
    events.is_out_of_reach = False
    assert await backlog.read(JSON_MESSAGES, 1, to_seq=10) is not None
    assert len(events.asked) == 2


async def test_backlogs_stay_within_their_bounds_each_and_together(tasks: TaskOwner) -> None:
    each, together = 3 * READ_BYTES, 5 * READ_BYTES
    owner = Backlogs(_Events(), tasks, max_bytes=together)
    backlogs = [owner.open(f"t{number}", max_bytes=each) for number in range(4)]
    for backlog in backlogs:
        seq = 1
        while seq < 3_000:
            chunk = await backlog.read(JSON_MESSAGES, seq, to_seq=3_000)
            assert chunk is not None
            seq = chunk.next_seq
            assert backlog.size <= each
            assert owner.size == sum(other.size for other in backlogs) <= together
    assert backlogs[-1].size > READ_BYTES
    assert backlogs[0].size == 0, "who was not used for longest makes room first"


@pytest.mark.parametrize("way", ["deleted", "revoked"])
async def test_a_lagging_reader_gets_nothing_of_shared_slices_after_its_end(way: str) -> None:
    async with MemoryStore() as store:
        hub = Hub(store, Policy())
        await hub.start()
        await make_thread(store, THREAD, ("bob", "observer"))
        last = 0
        for _ in range(10):
            last = (await store.append_many(THREAD, [part(number, size=500) for number in range(1_000)]))[-1].seq
        alice, bob = connect(hub, OWNER), connect(hub, "bob")
        bob.room = 1
        for sink in (alice, bob):
            assert sink.connection is not None
            await sink.connection.subscribe(THREAD, from_seq=1)
        await alice.until("event", THREAD, last)
        await bob.until("event", THREAD)
        if way == "deleted":
            await store.delete_thread(THREAD)
            await alice.until("closed", THREAD, "not_found")
        else:
            await store.remove_grant(THREAD, "bob", by=OWNER)
        await bob.until("closed", THREAD, "not_found")
        bob.thaw()
        await hub.tasks.settled(2)
        assert bob.said[-1] == ("closed", THREAD, "not_found")
        assert hub.statistics().tails == (0 if way == "deleted" else 1)
        await hub.close()


async def test_events_as_large_as_they_may_be_reach_readers_that_lag_and_readers_that_do_not() -> None:
    async with MemoryStore() as store:
        hub = Hub(store, Policy())
        await hub.start()
        await make_thread(store, THREAD)
        sinks: list[RecordingSink] = []
        last = 0
        for _ in range(2):
            for number in range(6):
                last = (await store.append_many(THREAD, [part(number, size=1_000_000)]))[-1].seq
            sink = connect(hub, OWNER)
            assert sink.connection is not None
            await sink.connection.subscribe(THREAD, from_seq=1)
            sinks.append(sink)
        for sink in sinks:
            await sink.until("event", THREAD, last)
            assert sink.seqs(THREAD) == list(range(1, last + 1))
        await hub.close()
