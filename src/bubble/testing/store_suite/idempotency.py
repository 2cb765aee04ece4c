"""Appends that are safe to repeat (protocol, section 6)."""

from __future__ import annotations

import asyncio
from hashlib import sha256

import pytest

from bubble.protocol.errors import Conflict, Forbidden, NotFound
from bubble.store.base import BubbleStore
from bubble.store.commands import IdempotencyKey
from bubble.testing.store_suite.base import (
    Event,
    ManualClock,
    StoreCase,
    a_finish,
    a_part,
    a_start,
    outcome_of,
    submitted,
)

__all__ = ["IdempotencyPromises"]

DAY_MS = 24 * 3600 * 1000


def a_key(key: str = "key-1", *, caller: str = "ann", body: str = "body") -> IdempotencyKey:
    """A key as a transport would make it."""
    return IdempotencyKey(caller=caller, key=key, digest=sha256(body.encode()).digest())


@pytest.mark.anyio
class IdempotencyPromises(StoreCase):
    """A key lives in the transaction of the events it stands for."""

    @pytest.mark.requirement("PR-6-46", "PR-8-08")
    async def test_a_repeat_is_answered_with_the_first_result_and_stored_once(
        self, store: BubbleStore, clock: ManualClock
    ) -> None:
        first = await outcome_of(submitted(store, "t", a_start(), idempotency=a_key()))
        clock.advance(5_000)
        again = await outcome_of(submitted(store, "t", a_start(), idempotency=a_key()))
        assert (first.replayed, again.replayed) == (False, True)
        assert list(again.events) == list(first.events)
        assert (await store.position("t")).head == 1

    @pytest.mark.requirement("PR-6-46", "PR-6-51")
    async def test_a_batch_is_repeated_whole(self, store: BubbleStore) -> None:
        await store.append("t", a_start("run-0"))
        batch = (a_start(), a_part(), a_finish())
        first = await outcome_of(submitted(store, "t", *batch, idempotency=a_key()))
        await store.append("t", a_finish("run-0"))
        again = await outcome_of(submitted(store, "t", *batch, idempotency=a_key()))
        assert again.replayed
        assert [event.seq for event in again.events] == [2, 3, 4]
        assert list(again.events) == list(first.events)

    @pytest.mark.requirement("PR-6-49")
    async def test_the_same_key_with_another_body_is_a_conflict(self, store: BubbleStore) -> None:
        await store.append("t", a_start(), idempotency=a_key())
        with pytest.raises(Conflict):
            await store.append("t", a_part(), idempotency=a_key(body="another"))
        assert (await store.position("t")).head == 1

    @pytest.mark.requirement("PR-6-50")
    async def test_a_key_belongs_to_one_thread_and_one_caller(self, store: BubbleStore) -> None:
        await store.append("t", a_start("run-1"), idempotency=a_key())
        elsewhere = [
            submitted(store, "u", a_start("run-1"), idempotency=a_key()),
            submitted(store, "t", a_start("run-2"), idempotency=a_key(caller="bob")),
            submitted(store, "t", a_start("run-3"), idempotency=a_key("KEY-1")),
        ]
        assert [(await outcome_of(one)).replayed for one in elsewhere] == [False, False, False]

    @pytest.mark.requirement("PR-6-52", "PR-8-09")
    async def test_a_refused_append_does_not_use_up_its_key(self, store: BubbleStore) -> None:
        with pytest.raises(Conflict):
            await store.append("t", a_part(), idempotency=a_key())
        await store.append("t", a_start())
        result = await outcome_of(submitted(store, "t", a_part(), idempotency=a_key(body="another")))
        assert not result.replayed

    @pytest.mark.requirement("PR-6-53")
    async def test_of_concurrent_twins_one_is_stored_and_all_get_its_result(self, store: BubbleStore) -> None:
        waiting = [submitted(store, "t", a_start(), idempotency=a_key()) for _ in range(20)]
        results = await asyncio.gather(*(outcome_of(one) for one in waiting))
        assert [result.replayed for result in results] == [False] + [True] * 19
        assert {event.text for result in results for event in result.events} == set(await self.texts(store, "t"))

    @pytest.mark.requirement("PR-3-16", "PR-6-46")
    @pytest.mark.parametrize("event", [a_start(), a_finish()], ids=["run_started", "run_finished"])
    async def test_a_repeat_is_not_held_to_the_head_nor_to_the_lifecycle_again(
        self, store: BubbleStore, event: Event
    ) -> None:
        if event["type"] == "run_finished":
            await store.append("t", a_start())
        head = (await store.positions(["t"])).get("t")
        expected = 0 if head is None else head.head
        await store.append("t", event, idempotency=a_key(), expected_head=expected)
        again = await outcome_of(submitted(store, "t", event, idempotency=a_key(), expected_head=expected))
        assert again.replayed

    @pytest.mark.requirement("PR-3-16")
    async def test_a_repeat_is_held_to_the_callers_rights_again(self, store: BubbleStore) -> None:
        await self.make_thread(store, "t", bob="participant", carl="participant")
        for name, key in (("bob", "key-b"), ("carl", "key-c")):
            await store.append(
                "t",
                a_start(f"run-{name}", name),
                guard=await self.guard(store, name),
                idempotency=a_key(key, caller=name),
            )
        await store.remove_grant("t", "bob", by="ann")
        await store.put_grant("t", "carl", "observer", by="ann", appends=False)
        for name, key, kind in (("bob", "key-b", NotFound), ("carl", "key-c", Forbidden)):
            with pytest.raises(kind):
                await store.append(
                    "t",
                    a_start(f"run-{name}", name),
                    guard=await self.guard(store, name),
                    idempotency=a_key(key, caller=name),
                )

    @pytest.mark.requirement("PR-6-48")
    async def test_a_key_is_forgotten_once_it_is_older_than_it_is_kept(
        self, store: BubbleStore, clock: ManualClock
    ) -> None:
        await store.append("t", a_start(), idempotency=a_key())
        clock.advance(DAY_MS - 1)
        await store.purge(idempotency_ms=DAY_MS)
        assert (await outcome_of(submitted(store, "t", a_start(), idempotency=a_key()))).replayed
        clock.advance(2)
        await store.purge(idempotency_ms=DAY_MS)
        with pytest.raises(Conflict) as caught:
            await store.append("t", a_start(), idempotency=a_key())
        assert caught.value.details == {"runId": "run-1", "state": "open"}
