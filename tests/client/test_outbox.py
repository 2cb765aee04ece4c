"""Events on their way, without a server."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import anyio
import pytest

from bubble.client.outbox import Outbox
from bubble.client.supervision import beside
from bubble.protocol.errors import Conflict, PayloadTooLarge
from bubble.protocol.events import EncodedEvent, RunStarted, SequencedEvent, encoded

pytestmark = pytest.mark.anyio


def event(number: int) -> EncodedEvent:
    return encoded(RunStarted(principal_id="p", run_id=f"r{number}"))


class Store:
    """Takes batches when it is let to, and refuses those that are too long."""

    def __init__(self, *, longest: int = 1_000) -> None:
        self.batches: list[list[EncodedEvent]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.asked = asyncio.Event()
        self._longest = longest

    async def send(self, batch: Sequence[EncodedEvent]) -> Sequence[SequencedEvent]:
        self.asked.set()
        await self.gate.wait()
        if len(batch) > self._longest:
            raise PayloadTooLarge("too many")
        first = sum(map(len, self.batches)) + 1
        self.batches.append(list(batch))
        return [SequencedEvent(seq=first + index, created_at="", text=each.text) for index, each in enumerate(batch)]

    @property
    def sent(self) -> list[EncodedEvent]:
        return [each for batch in self.batches for each in batch]


async def test_events_are_sent_in_order_and_what_is_put_meanwhile_goes_together() -> None:
    store = Store()
    store.gate.clear()
    outbox = Outbox(store.send)
    async with beside(outbox.run()):
        await outbox.put(event(0))
        await store.asked.wait()
        for number in range(1, 101):
            await outbox.put(event(number))
        store.gate.set()
        with anyio.fail_after(10):
            await outbox.drain()
    assert [len(batch) for batch in store.batches] == [1, 100]
    assert store.sent == [event(number) for number in range(101)]
    assert outbox.last_seq == 101


async def test_a_batch_has_its_bounds() -> None:
    store = Store()
    store.gate.clear()
    outbox = Outbox(store.send, batch_events=10, batch_bytes=10_000)
    async with beside(outbox.run()):
        for number in range(25):
            await outbox.put(event(number))
        store.gate.set()
        with anyio.fail_after(10):
            await outbox.drain()
    assert max(map(len, store.batches)) == 10
    assert store.sent == [event(number) for number in range(25)]


async def test_who_puts_waits_while_too_much_is_on_the_way() -> None:
    store = Store()
    store.gate.clear()
    outbox = Outbox(store.send, most_waiting=3)
    async with beside(outbox.run()):
        await outbox.put(event(0))
        await store.asked.wait()
        for number in range(1, 4):
            await outbox.put(event(number))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await outbox.put(event(4))
        store.gate.set()
        with anyio.fail_after(10):
            await outbox.put(event(4))
            await outbox.drain()
    assert store.sent == [event(number) for number in range(5)]


async def test_a_batch_that_the_server_finds_too_large_is_sent_in_parts() -> None:
    store = Store(longest=3)
    store.gate.clear()
    outbox = Outbox(store.send)
    async with beside(outbox.run()):
        for number in range(20):
            await outbox.put(event(number))
        store.gate.set()
        with anyio.fail_after(10):
            await outbox.drain()
    assert store.sent == [event(number) for number in range(20)]


async def test_after_a_failure_nothing_is_sent_and_everybody_hears_of_it() -> None:
    calls = 0

    async def refuse(batch: Sequence[EncodedEvent]) -> Sequence[SequencedEvent]:
        nonlocal calls
        calls += 1
        raise Conflict(f"{len(batch)} refused")

    outbox = Outbox(refuse)
    async with beside(outbox.run()):
        await outbox.put(event(1))
        with pytest.raises(Conflict, match="1 refused"), anyio.fail_after(10):
            await outbox.drain()
        with pytest.raises(Conflict, match="1 refused"):
            await outbox.put(event(2))
    assert calls == 1


class OneByOne(Store):
    """Is let to take one batch at a time, and tells of each."""

    def __init__(self) -> None:
        super().__init__()
        self.gate.clear()

    async def send(self, batch: Sequence[EncodedEvent]) -> Sequence[SequencedEvent]:
        stored = await super().send(batch)
        self.gate.clear()
        return stored


async def test_draining_waits_for_what_was_put_before_it_alone() -> None:
    store = OneByOne()
    outbox = Outbox(store.send)
    async with beside(outbox.run()):
        await outbox.put(event(0))
        draining = asyncio.create_task(outbox.drain())
        await store.asked.wait()
        await outbox.put(event(1))
        store.gate.set()
        with anyio.fail_after(10):
            await draining
    assert store.sent == [event(0)]
