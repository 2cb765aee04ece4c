"""Reading along on the node's own behalf, and following a thread for its seqs alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from bubble.auth.policy import Policy
from bubble.hub import SEQS_ALONE, Along, Chunk, Encoding, Hub
from bubble.protocol.errors import NotFound, Unavailable
from bubble.protocol.events import SequencedEvent
from bubble.protocol.identifiers import MAX_SEQ
from bubble.store.memory import MemoryStore
from tests.hub.sinks import OWNER, RecordingSink, identity, make_thread, part

pytestmark = pytest.mark.anyio


@pytest.fixture
async def store() -> AsyncIterator[MemoryStore]:
    async with MemoryStore() as opened:
        yield opened


@pytest.fixture
async def hub(store: MemoryStore) -> AsyncIterator[Hub]:
    started = Hub(store, Policy())
    await started.start()
    yield started
    await started.close()


async def seqs_from(along: Along, from_seq: int, last: int) -> list[int]:
    """What is read from `from_seq` on, until `last`."""
    found: list[int] = []
    async with asyncio.timeout(5):
        while from_seq <= last:
            await along.beyond(from_seq - 1)
            found += [SequencedEvent.from_stored(text).seq for text in await along.read(from_seq)]
            from_seq = found[-1] + 1
    return found


@pytest.mark.parametrize("size", [10, 20_000])
async def test_the_node_reads_a_thread_from_its_beginning_into_what_is_live(
    store: MemoryStore, hub: Hub, size: int
) -> None:
    await make_thread(store, "t")
    await store.append_many("t", [part(number, size=size) for number in range(50)])
    along = await hub.read_along("t")
    reading = asyncio.create_task(seqs_from(along, 1, 202))
    for number in range(3):
        await store.append_many("t", [part(50 * number + each, size=size) for each in range(50)])
    assert await reading == list(range(1, 203))
    along.close()


async def test_a_reader_that_is_closed_leaves_no_tail_behind(store: MemoryStore, hub: Hub) -> None:
    await make_thread(store, "t")
    along = await hub.read_along("t")
    assert hub.statistics().tails == 1
    along.close()
    along.close()
    assert hub.statistics().tails == 0


async def test_a_thread_that_does_not_exist_cannot_be_read_along(hub: Hub) -> None:
    with pytest.raises(NotFound):
        await hub.read_along("nowhere")
    assert hub.statistics().tails == 0


async def test_a_reader_hears_that_the_thread_was_deleted(store: MemoryStore, hub: Hub) -> None:
    await make_thread(store, "t")
    along = await hub.read_along("t")
    waiting = asyncio.create_task(along.beyond(along.head))
    await store.delete_thread("t")
    with pytest.raises(NotFound):
        await waiting
    along.close()


async def test_a_change_of_grants_does_not_end_the_node_s_reading(store: MemoryStore, hub: Hub) -> None:
    await make_thread(store, "t", ("bob", "participant"))
    along = await hub.read_along("t")
    await store.remove_grant("t", "bob", by=OWNER)
    await store.append("t", part(0))
    assert await seqs_from(along, 1, 5) == [1, 2, 3, 4, 5]
    along.close()


async def test_a_reader_hears_that_the_store_is_out_of_reach(
    store: MemoryStore, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_thread(store, "t", ("bob", "participant"))
    along = await hub.read_along("t")

    async def fails(_: str) -> None:
        raise Unavailable("not now")

    monkeypatch.setattr(store, "get_roles", fails)
    await store.remove_grant("t", "bob", by=OWNER)
    with pytest.raises(Unavailable):
        await along.beyond(MAX_SEQ)
    along.close()


class SeqsAlone(RecordingSink):
    """A sink that is told up to where, and nothing else."""

    encoding: Encoding = SEQS_ALONE

    def write(self, chunk: Chunk) -> None:
        assert chunk.joined == b""
        self._say("released", "", chunk.next_seq - 1)


async def test_following_for_the_seqs_alone_reads_nothing(
    store: MemoryStore, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_thread(store, "t")
    await store.append_many("t", [part(number, size=100_000) for number in range(40)])
    sink = SeqsAlone()
    sink.connection = hub.connect(sink, identity(OWNER))
    monkeypatch.delattr(MemoryStore, "read")
    await sink.connection.subscribe("t", from_seq=1)
    await sink.until("released", value=42)
    await store.append_many("t", [part(number, size=100_000) for number in range(40)])
    await sink.until("released", value=82)
    sink.connection.close()
