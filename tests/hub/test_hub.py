"""The hub's promises to a subscription: order, completeness, fairness, and an end that is an end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from typing import NoReturn

import pytest

from bubble.auth.identity import Identity
from bubble.auth.policy import Policy
from bubble.hub import Hub
from bubble.hub.tail import Tail
from bubble.protocol.errors import Conflict, NotFound, Unavailable
from bubble.protocol.limits import Limits
from bubble.protocol.resources import JoinPolicy
from bubble.store.commands import Guard
from bubble.store.memory import MemoryStore
from bubble.store.notices import Listener
from tests.hub.sinks import OWNER, connect, identity, make_thread, part

pytestmark = pytest.mark.anyio

THREAD = "thread-1"
OTHER = "thread-2"


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


async def _append(store: MemoryStore, thread_id: str, count: int, *, size: int = 100) -> int:
    events = await store.append_many(thread_id, [part(number, size=size) for number in range(count)])
    return events[-1].seq


@pytest.mark.requirement("WS-11")
async def test_opened_comes_first_then_the_backlog_then_live(store: MemoryStore, hub: Hub) -> None:
    await make_thread(store, THREAD)
    through = await _append(store, THREAD, 10)
    sink = connect(hub, OWNER)
    assert sink.connection is not None
    await sink.connection.subscribe(THREAD, from_seq=1)
    last = await _append(store, THREAD, 10)
    await sink.until("event", THREAD, last)
    assert sink.said[0] == ("opened", THREAD, through)
    assert sink.seqs(THREAD) == list(range(1, last + 1))


async def test_the_boundary_has_neither_gap_nor_overlap_while_events_pour_in(store: MemoryStore, hub: Hub) -> None:
    await make_thread(store, THREAD)
    sinks = []
    for _ in range(50):
        sink = connect(hub, OWNER)
        assert sink.connection is not None
        appending = asyncio.ensure_future(_append(store, THREAD, 7))
        await sink.connection.subscribe(THREAD, from_seq=1)
        await appending
        sinks.append(sink)
    last = await _append(store, THREAD, 1)
    for sink in sinks:
        await sink.until("event", THREAD, last)
        assert sink.seqs(THREAD) == list(range(1, last + 1))


async def test_live_means_all_that_comes_after_through_seq_even_from_beyond_the_head(
    store: MemoryStore, hub: Hub
) -> None:
    await make_thread(store, THREAD)
    through = await _append(store, THREAD, 5)
    sink = connect(hub, OWNER)
    assert sink.connection is not None
    await sink.connection.subscribe(THREAD, from_seq=2**53 - 1)
    last = await _append(store, THREAD, 3)
    await sink.until("event", THREAD, last)
    assert sink.seqs(THREAD) == list(range(through + 1, last + 1))


async def test_a_second_subscription_to_the_thread_is_a_conflict(store: MemoryStore, hub: Hub) -> None:
    await make_thread(store, THREAD)
    sink = connect(hub, OWNER)
    assert sink.connection is not None
    await sink.connection.subscribe(THREAD, from_seq=1)
    with pytest.raises(Conflict, match='Connection is already subscribed to thread "thread-1"'):
        await sink.connection.subscribe(THREAD, from_seq=1)


@pytest.mark.requirement("PR-2-13")
async def test_a_connection_follows_only_so_many_threads(store: MemoryStore) -> None:
    hub = Hub(store, Policy(), limits=Limits(subscriptions=2))
    await hub.start()
    sink = connect(hub, OWNER)
    assert sink.connection is not None
    for number in range(3):
        await make_thread(store, f"t{number}")
    await sink.connection.subscribe("t0", from_seq=1)
    await sink.connection.subscribe("t1", from_seq=1)
    with pytest.raises(Conflict, match="at most 2"):
        await sink.connection.subscribe("t2", from_seq=1)
    await hub.close()
    assert Limits().subscriptions == 4_096


async def test_a_stranger_cannot_subscribe_and_does_not_learn_that_the_thread_exists(
    store: MemoryStore, hub: Hub
) -> None:
    await make_thread(store, THREAD)
    sink = connect(hub, "mallory")
    assert sink.connection is not None
    with pytest.raises(NotFound) as existing:
        await sink.connection.subscribe(THREAD, from_seq=1)
    with pytest.raises(NotFound) as missing:
        await sink.connection.subscribe("thread-x", from_seq=1)
    assert existing.value.message.replace(THREAD, "") == missing.value.message.replace("thread-x", "")
    assert hub.statistics().tails == 0


async def test_a_reader_that_takes_nothing_costs_a_cursor_and_later_gets_everything(
    store: MemoryStore, hub: Hub
) -> None:
    await make_thread(store, THREAD)
    frozen, healthy = connect(hub, OWNER), connect(hub, OWNER)
    assert frozen.connection is not None
    assert healthy.connection is not None
    await frozen.connection.subscribe(THREAD, from_seq=1)
    await healthy.connection.subscribe(THREAD, from_seq=1)
    await frozen.until("event", THREAD, 2)
    frozen.room = 0
    written = len(frozen.chunk_sizes)
    last = 0
    for _ in range(20):
        last = await _append(store, THREAD, 500, size=400)
    await healthy.until("event", THREAD, last)
    assert len(frozen.chunk_sizes) == written
    frozen.thaw()
    await frozen.until("event", THREAD, last)
    assert frozen.seqs(THREAD) == list(range(1, last + 1))


@pytest.mark.requirement("PR-7-09", "WS-48")
async def test_a_long_backlog_takes_turns_with_a_live_thread(store: MemoryStore, hub: Hub) -> None:
    await make_thread(store, THREAD)
    await make_thread(store, OTHER)
    last = 0
    for _ in range(10):
        last = await _append(store, THREAD, 1_000, size=500)
    sink = connect(hub, OWNER)
    assert sink.connection is not None
    await sink.connection.subscribe(OTHER, from_seq=1)
    await sink.connection.subscribe(THREAD, from_seq=1)
    await sink.until("event", THREAD)
    live = await _append(store, OTHER, 1)
    await sink.until("event", OTHER, live)
    assert len(sink.seqs(THREAD)) < last / 2, "the live event waited for the backlog"
    await sink.until("event", THREAD, last)
    assert sink.seqs(THREAD) == list(range(1, last + 1))


@pytest.mark.parametrize("role", ["participant", "observer"])
async def test_nothing_committed_after_a_revocation_reaches_the_revoked(
    store: MemoryStore, hub: Hub, role: str
) -> None:
    await make_thread(store, THREAD, ("bob", role))
    bob, alice = connect(hub, "bob"), connect(hub, OWNER)
    assert bob.connection is not None
    assert alice.connection is not None
    await bob.connection.subscribe(THREAD, from_seq=1)
    await alice.connection.subscribe(THREAD, from_seq=1)
    before = [asyncio.ensure_future(_append(store, THREAD, 3)) for _ in range(20)]
    revoking = asyncio.ensure_future(store.remove_grant(THREAD, "bob", by=OWNER))
    after = [asyncio.ensure_future(_append(store, THREAD, 3)) for _ in range(20)]
    await asyncio.gather(*before, revoking, *after)
    head_before = max(task.result() for task in before)
    last = max(task.result() for task in after)
    await bob.until("closed", THREAD, "not_found")
    await alice.until("event", THREAD, last)
    assert bob.seqs(THREAD) == list(range(1, len(bob.seqs(THREAD)) + 1))
    assert len(bob.seqs(THREAD)) <= head_before
    assert bob.said[-1] == ("closed", THREAD, "not_found")
    assert alice.seqs(THREAD) == list(range(1, last + 1))


async def test_a_revoked_reader_of_a_backlog_is_closed_too(store: MemoryStore, hub: Hub) -> None:
    await make_thread(store, THREAD, ("bob", "observer"))
    for _ in range(10):
        await _append(store, THREAD, 1_000, size=500)
    bob = connect(hub, "bob")
    bob.room = 1
    assert bob.connection is not None
    await bob.connection.subscribe(THREAD, from_seq=1)
    await bob.until("event", THREAD)
    await store.remove_grant(THREAD, "bob", by=OWNER)
    await bob.until("closed", THREAD, "not_found")
    count = len(bob.said)
    bob.thaw()
    await _append(store, THREAD, 1)
    assert len(bob.said) == count


async def test_a_changed_role_that_still_reads_goes_on_without_a_gap(store: MemoryStore, hub: Hub) -> None:
    await make_thread(store, THREAD, ("bob", "participant"))
    bob = connect(hub, "bob")
    assert bob.connection is not None
    await bob.connection.subscribe(THREAD, from_seq=1)
    await store.put_grant(THREAD, "bob", "observer", by=OWNER, appends=False)
    last = await _append(store, THREAD, 3)
    await bob.until("event", THREAD, last)
    assert bob.seqs(THREAD) == list(range(1, last + 1))


async def test_deleting_a_thread_closes_its_subscriptions(store: MemoryStore, hub: Hub) -> None:
    await make_thread(store, THREAD)
    sink = connect(hub, OWNER)
    assert sink.connection is not None
    await sink.connection.subscribe(THREAD, from_seq=1)
    await store.delete_thread(THREAD)
    await sink.until("closed", THREAD, "not_found")
    assert hub.statistics().subscriptions == 0


async def test_access_that_is_lost_while_subscribing_is_told_to_whoever_subscribes(store: MemoryStore) -> None:
    class Slow(Hub):
        async def admit(self, tail: Tail, guard: Guard) -> None:
            await super().admit(tail, guard)
            await store.delete_thread(tail.thread_id)  # and its notice comes before the subscription is opened
            await asyncio.sleep(0)

    hub = Slow(store, Policy())
    await hub.start()
    await make_thread(store, THREAD)
    sink = connect(hub, OWNER)
    assert sink.connection is not None
    with pytest.raises(NotFound):
        await sink.connection.subscribe(THREAD, from_seq=1)
    assert sink.said == []
    assert hub.statistics().tails == 0
    await hub.close()


class _LateReads(MemoryStore):
    """A store whose answers about roles are under way for a while: what is committed meanwhile, and its notice, overtake them."""

    def __init__(self) -> None:
        super().__init__()
        self.was_asked = asyncio.Event()
        self.may_answer = asyncio.Event()

    async def get_role(self, thread_id: str, principal_id: str) -> tuple[str | None, JoinPolicy]:
        answer = await super().get_role(thread_id, principal_id)
        self.was_asked.set()
        await self.may_answer.wait()
        return answer


@pytest.mark.parametrize("has_company", [False, True])
async def test_a_role_that_is_revoked_while_it_is_looked_up_opens_nothing(has_company: bool) -> None:  # noqa: FBT001
    async with _LateReads() as store:
        hub = Hub(store, Policy())
        await hub.start()
        await make_thread(store, THREAD, ("bob", "participant"))
        if has_company:
            store.may_answer.set()
            alice = connect(hub, OWNER)
            assert alice.connection is not None
            await alice.connection.subscribe(THREAD, from_seq=1)
            store.may_answer.clear()
            store.was_asked.clear()
        bob = connect(hub, "bob")
        assert bob.connection is not None
        subscribing = asyncio.ensure_future(bob.connection.subscribe(THREAD, from_seq=1))
        guard = Policy().guard(identity("bob"))
        holding = asyncio.ensure_future(hub.wait_for_events(THREAD, from_seq=99, guard=guard, timeout_ms=30_000))
        await store.was_asked.wait()
        await store.remove_grant(THREAD, "bob", by=OWNER)
        await _append(store, THREAD, 3)
        store.may_answer.set()
        async with asyncio.timeout(5):
            with pytest.raises(NotFound):
                await subscribing
            with pytest.raises(NotFound):
                await holding
        assert bob.said == []
        await hub.close()


async def test_who_comes_after_the_store_was_out_of_reach_does_not_join_those_who_were_ended(
    store: MemoryStore, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def out_of_reach(_: str) -> NoReturn:
        raise Unavailable("The store is out of reach.")

    await make_thread(store, THREAD, ("bob", "observer"))
    guard = Policy().guard(identity(OWNER))
    holding = asyncio.ensure_future(hub.wait_for_events(THREAD, from_seq=99, guard=guard, timeout_ms=30_000))
    alice, late = connect(hub, OWNER), connect(hub, OWNER)
    assert alice.connection is not None
    assert late.connection is not None
    await alice.connection.subscribe(THREAD, from_seq=1)
    left = hub.hold_tail(THREAD)
    with monkeypatch.context() as patched:
        patched.setattr(store, "get_roles", out_of_reach)
        await store.remove_grant(THREAD, "bob", by=OWNER)
        await alice.until("closed", THREAD, "unavailable")
    assert left.members, "the held page has not left yet"
    await late.connection.subscribe(THREAD, from_seq=1)
    with pytest.raises(Unavailable):
        await holding
    last = await _append(store, THREAD, 1)
    await late.until("event", THREAD, last)


async def test_unsubscribing_is_silent_and_a_new_subscription_may_follow(store: MemoryStore, hub: Hub) -> None:
    await make_thread(store, THREAD)
    sink = connect(hub, OWNER)
    assert sink.connection is not None
    await sink.connection.subscribe(THREAD, from_seq=1)
    sink.connection.unsubscribe(THREAD)
    sink.connection.unsubscribe("never-followed")
    assert not [said for said in sink.said if said[0] == "closed"]
    await sink.connection.subscribe(THREAD, from_seq=2)
    assert [said[0] for said in sink.said].count("opened") == 2


async def test_ten_thousand_comings_and_goings_leave_nothing(store: MemoryStore, hub: Hub) -> None:
    await make_thread(store, THREAD)
    before = hub.statistics()
    for number in range(10_000):
        sink = connect(hub, OWNER)
        assert sink.connection is not None
        await sink.connection.subscribe(THREAD, from_seq=1)
        if number % 2:
            sink.connection.unsubscribe(THREAD)
        sink.connection.close()
    await hub.tasks.settled(before.tasks)
    after = hub.statistics()
    assert (after.connections, after.subscriptions, after.tails) == (0, 0, 0)
    assert after.tasks == before.tasks


async def test_grants_come_as_one_snapshot_and_then_as_changes(store: MemoryStore, hub: Hub) -> None:
    await make_thread(store, THREAD, ("bob", "participant"))
    await make_thread(store, OTHER)
    bob = connect(hub, "bob")
    assert bob.connection is not None
    await bob.connection.subscribe_grants()
    await store.put_grant(OTHER, "bob", "observer", by=OWNER, appends=False)
    await store.put_grant(OTHER, "bob", "participant", by=OWNER, appends=True)
    await store.remove_grant(OTHER, "bob", by=OWNER)
    await bob.until("revoked", OTHER)
    assert bob.said == [
        ("snapshot", "", [(THREAD, "participant")]),
        ("granted", OTHER, "observer"),
        ("updated", OTHER, "participant"),
        ("revoked", OTHER, "participant"),
    ]
    bob.connection.unsubscribe_grants()
    await store.put_grant(OTHER, "bob", "observer", by=OWNER, appends=False)
    assert len(bob.said) == 4


async def test_a_held_page_returns_as_soon_as_the_event_is_there(store: MemoryStore, hub: Hub) -> None:
    await make_thread(store, THREAD)
    guard = Policy().guard(identity(OWNER))
    holding = asyncio.ensure_future(hub.wait_for_events(THREAD, from_seq=3, guard=guard, timeout_ms=30_000))
    await _append(store, THREAD, 1)
    async with asyncio.timeout(5):
        await holding


async def test_a_held_page_ends_after_its_time(store: MemoryStore, hub: Hub) -> None:
    await make_thread(store, THREAD)
    guard = Policy().guard(identity(OWNER))
    async with asyncio.timeout(5):
        await hub.wait_for_events(THREAD, from_seq=99, guard=guard, timeout_ms=1)
    assert hub.statistics().tails == 0


async def test_a_held_page_of_a_revoked_caller_ends_as_not_found(store: MemoryStore, hub: Hub) -> None:
    await make_thread(store, THREAD, ("bob", "observer"))
    guard = Policy().guard(identity("bob"))
    holding = asyncio.ensure_future(hub.wait_for_events(THREAD, from_seq=99, guard=guard, timeout_ms=30_000))
    await asyncio.sleep(0)
    await store.remove_grant(THREAD, "bob", by=OWNER)
    with pytest.raises(NotFound):
        async with asyncio.timeout(5):
            await holding


async def test_connections_of_an_invalid_identity_are_ended_within_a_second(store: MemoryStore) -> None:
    revoked: set[Identity] = set()

    async def find_invalid(identities: Collection[Identity]) -> Collection[Identity]:
        return [each for each in identities if each in revoked]

    hub = Hub(store, Policy(), find_invalid=find_invalid)
    await hub.start()
    alice, bob = connect(hub, OWNER), connect(hub, "bob")
    assert bob.connection is not None
    revoked.add(bob.connection.identity)
    async with asyncio.timeout(1):
        await bob.until("ended", "", "unauthenticated")
    assert not alice.said
    assert hub.statistics().connections == 1
    await hub.close()
    assert alice.said[-1] == ("ended", "", "unavailable")


class _DeafStore(MemoryStore):
    """A store that others write to, too, and whose notices get lost."""

    is_shared = True

    def listen(self, _: Listener, /) -> Callable[[], None]:
        def unlisten() -> None:
            return None

        return unlisten


@pytest.mark.requirement("PR-5-27")
async def test_with_every_notice_lost_events_and_revocations_still_arrive() -> None:
    async with _DeafStore() as store:
        hub = Hub(store, Policy())
        await hub.start()
        await make_thread(store, THREAD, ("bob", "observer"))
        bob, alice = connect(hub, "bob"), connect(hub, OWNER)
        assert bob.connection is not None
        assert alice.connection is not None
        await bob.connection.subscribe(THREAD, from_seq=1)
        await bob.connection.subscribe_grants()
        await alice.connection.subscribe(THREAD, from_seq=1)
        async with asyncio.timeout(2):
            last = await _append(store, THREAD, 5)
            await bob.until("event", THREAD, last)
        async with asyncio.timeout(2):
            await store.remove_grant(THREAD, "bob", by=OWNER)
            last = await _append(store, THREAD, 5)
            await bob.until("closed", THREAD, "not_found")
            await bob.until("revoked", THREAD)
            await alice.until("event", THREAD, last)
        assert len(bob.seqs(THREAD)) <= last - 5
        assert alice.seqs(THREAD) == list(range(1, last + 1))
        await hub.close()


async def test_presence_tells_who_is_connected_and_forgets_who_left() -> None:
    renewed: asyncio.Queue[list[str]] = asyncio.Queue()

    class Watched(MemoryStore):
        async def renew_presence(self, node: str, principal_ids: Sequence[str], *, valid_ms: int) -> None:
            await super().renew_presence(node, principal_ids, valid_ms=valid_ms)
            await renewed.put(list(principal_ids))

    async with Watched() as store:
        hub = Hub(store, Policy())
        await hub.start()
        connect(hub, OWNER)
        async with asyncio.timeout(5):
            while await renewed.get() != [OWNER]:
                pass
        await hub.close()
        assert renewed.get_nowait() == []


async def test_a_hub_that_drains_takes_no_more_connections(hub: Hub) -> None:
    hub.drain()
    with pytest.raises(Unavailable):
        connect(hub, OWNER)
    assert hub.statistics().connections == 0
