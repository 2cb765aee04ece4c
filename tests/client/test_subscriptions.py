"""Following threads and grants on a real server."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack

import anyio
import pytest

from bubble.client import Backoff, BubbleConnection, ThreadSubscription
from bubble.protocol.errors import NotFound, Unauthenticated
from bubble.protocol.events import RunStarted
from bubble.testing.asgi import StreamingASGITransport
from bubble.testing.asgi_sockets import asgi_connector
from bubble.testing.server import BubbleServer

pytestmark = pytest.mark.anyio


def runs(first: int, count: int) -> Sequence[RunStarted]:
    return [RunStarted(principal_id="admin", run_id=f"r{number}") for number in range(first, first + count)]


async def read(events: ThreadSubscription, count: int) -> list[int]:
    with anyio.fail_after(30):
        return [(await anext(events)).seq for _ in range(count)]


async def filled(client: BubbleConnection, count: int) -> str:
    """A thread with `count` events."""
    thread = await client.create_thread()
    for first in range(1, count, 1_000):
        await client.append_events(thread.thread_id, runs(first, min(1_000, count - first)))
    return thread.thread_id


def small(server: BubbleServer) -> BubbleConnection:
    """A client that keeps few events, and few subscriptions on one socket."""
    return BubbleConnection(
        server.url,
        token=server.admin_token,
        backoff=Backoff(first=0.01),
        buffer_events=64,
        subscriptions_per_socket=2,
        transport=StreamingASGITransport(server.app),
        connector=asgi_connector(server.app),
    )


@pytest.mark.requirement("WS-18", "WS-23", "PR-7-07")
async def test_backlog_and_live_events_come_in_order_with_the_boundary_between_them(
    bubble_client: BubbleConnection,
) -> None:
    thread_id = await filled(bubble_client, 50)
    async with bubble_client.subscribe_thread(thread_id, from_seq=11) as events:
        assert events.through_seq == 50
        await bubble_client.append_events(thread_id, runs(100, 10))
        assert await read(events, 50) == list(range(11, 61))


@pytest.mark.requirement("WS-21", "PR-7-08")
async def test_beyond_the_head_only_live_events_come(bubble_client: BubbleConnection) -> None:
    thread_id = await filled(bubble_client, 50)
    async with bubble_client.subscribe_thread(thread_id, from_seq=2**53 - 1) as events:
        await bubble_client.append_events(thread_id, runs(100, 2))
        assert await read(events, 2) == [51, 52]


@pytest.mark.requirement("WS-05")
async def test_many_threads_share_one_socket(bubble_client: BubbleConnection) -> None:
    thread_ids = [await filled(bubble_client, 3) for _ in range(20)]
    async with anyio.create_task_group() as tasks:

        async def follow(thread_id: str) -> None:
            async with bubble_client.subscribe_thread(thread_id) as events:
                assert await read(events, 3) == [1, 2, 3]

        for thread_id in thread_ids:
            tasks.start_soon(follow, thread_id)
    assert bubble_client._sockets.connections == 1


async def test_more_threads_than_a_socket_takes_are_followed_on_several(bubble_server: BubbleServer) -> None:
    thread_ids = [await filled(bubble_server.admin, 3) for _ in range(5)]
    async with small(bubble_server) as client, AsyncExitStack() as stack:
        for thread_id in thread_ids:
            events = await stack.enter_async_context(client.subscribe_thread(thread_id))
            assert await read(events, 3) == [1, 2, 3]
        assert client._sockets.connections == 3


async def test_one_thread_can_be_followed_twice(bubble_client: BubbleConnection) -> None:
    thread_id = await filled(bubble_client, 5)
    async with bubble_client.subscribe_thread(thread_id) as one, bubble_client.subscribe_thread(thread_id) as two:
        assert await read(one, 5) == await read(two, 5) == [1, 2, 3, 4, 5]
    assert bubble_client._sockets.connections == 2
    async with bubble_client.subscribe_thread(thread_id) as again:
        assert await read(again, 5) == [1, 2, 3, 4, 5]
    assert bubble_client._sockets.connections == 2


async def test_a_reader_that_stops_costs_its_buffer_holds_up_nobody_and_loses_nothing(
    bubble_server: BubbleServer,
) -> None:
    long = await filled(bubble_server.admin, 5_000)
    short = await filled(bubble_server.admin, 1)
    async with (
        small(bubble_server) as client,
        client.subscribe_thread(long) as slow,
        client.subscribe_thread(short) as other,
    ):
        assert await read(slow, 1) == [1]
        for first in range(1, 5_001, 500):
            await bubble_server.admin.append_events(short, runs(first, 500))
            assert len(await read(other, 500)) == 500
        stopped = slow.statistics()
        assert (stopped.lagged, stopped.buffered <= 64) == (1, True)
        assert await read(slow, 4_999) == list(range(2, 5_001))
        await bubble_server.admin.append_events(long, runs(9_000, 1))
        assert await read(slow, 1) == [5_001]
        assert client._sockets.connections == 1


@pytest.mark.requirement("WS-34")
async def test_a_thread_that_the_caller_cannot_see_is_not_found_at_once(bubble_server: BubbleServer) -> None:
    thread = await bubble_server.admin.create_thread()
    async with bubble_server.connect(await bubble_server.register("alice")) as alice:
        for thread_id in (thread.thread_id, "no-such-thread"):
            with pytest.raises(NotFound), anyio.fail_after(10):
                await alice.subscribe_thread(thread_id).__aenter__()


async def test_somebody_who_is_removed_reads_what_came_before_and_then_not_found(bubble_server: BubbleServer) -> None:
    account = await bubble_server.register("alice")
    admin = bubble_server.admin
    thread = await admin.create_thread(participants={"alice": "participant"})
    async with bubble_server.connect(account) as alice, alice.subscribe_thread(thread.thread_id) as events:
        await admin.append_events(thread.thread_id, runs(1, 20))
        await admin.remove_grant(thread.thread_id, "alice")
        await admin.append_events(thread.thread_id, runs(30, 20))
        assert await read(events, 22) == list(range(1, 23))
        with pytest.raises(NotFound), anyio.fail_after(10):
            await anext(events)


async def test_a_deleted_thread_ends_its_subscriptions(bubble_client: BubbleConnection) -> None:
    thread_id = await filled(bubble_client, 1)
    async with bubble_client.subscribe_thread(thread_id) as events:
        assert await read(events, 1) == [1]
        await bubble_client.delete_thread(thread_id)
        with pytest.raises(NotFound), anyio.fail_after(10):
            await anext(events)


async def test_a_revoked_token_ends_its_subscriptions(bubble_server: BubbleServer) -> None:
    admin = bubble_server.admin
    await admin.create_principal("alice", kind="user")
    minted = await admin.mint_token("alice")
    thread = await admin.create_thread(participants={"alice": "participant"})
    async with bubble_server.connect(minted.token) as alice, alice.subscribe_thread(thread.thread_id) as events:
        assert await read(events, 2) == [1, 2]
        await admin.revoke_token("alice", minted.token_id)
        with pytest.raises(Unauthenticated), anyio.fail_after(10):
            await anext(events)


@pytest.mark.requirement("PR-4-44", "PR-4-48")
async def test_the_socket_lives_on_with_another_token_of_a_callable(bubble_server: BubbleServer) -> None:
    admin = bubble_server.admin
    await admin.create_principal("alice", kind="user")
    first, second = await admin.mint_token("alice"), await admin.mint_token("alice")
    tokens = [first.token]
    thread = await admin.create_thread(participants={"alice": "participant"})
    async with bubble_server.connect(lambda: tokens[-1]) as alice, alice.subscribe_thread(thread.thread_id) as events:
        assert await read(events, 2) == [1, 2]
        tokens.append(second.token)
        await alice._tokens.renew(refused=first.token)
        # The refresh is on its way when the first token ends; whichever comes first, nothing is lost.
        await admin.revoke_token("alice", first.token_id)
        await admin.append_events(thread.thread_id, runs(1, 5))
        assert await read(events, 5) == [3, 4, 5, 6, 7]


@pytest.mark.requirement("PR-7-03", "PR-7-04")
async def test_grants_are_discovered_as_they_are_given_changed_and_taken(bubble_server: BubbleServer) -> None:
    account = await bubble_server.register("helper", kind="bot")
    admin = bubble_server.admin
    first = (await admin.create_thread(participants={"helper": "participant"})).thread_id
    second = (await admin.create_thread()).thread_id
    async with bubble_server.connect(account) as bot, bot.subscribe_grants() as changes:

        async def told() -> tuple[str, str, str]:
            with anyio.fail_after(10):
                change = await anext(changes)
            return change.change, change.grant.thread_id, change.grant.role

        assert set(changes.grants) == {first}
        assert await told() == ("granted", first, "participant")
        await admin.put_grant(second, "helper", "observer")
        assert await told() == ("granted", second, "observer")
        await admin.put_grant(second, "helper", "owner")
        assert await told() == ("updated", second, "owner")
        await admin.remove_grant(first, "helper")
        assert await told() == ("revoked", first, "participant")
        assert set(changes.grants) == {second}


async def test_a_thousand_subscriptions_that_come_and_go_leave_nothing_behind(bubble_server: BubbleServer) -> None:
    thread_id = await filled(bubble_server.admin, 3)
    async with bubble_server.connect(bubble_server.admin_token) as client:
        async with client.subscribe_thread(thread_id) as events:
            assert await read(events, 3) == [1, 2, 3]
        before = len(asyncio.all_tasks())
        for _ in range(1_000):
            async with client.subscribe_thread(thread_id) as events:
                assert await read(events, 1) == [1]
        assert len(asyncio.all_tasks()) <= before + 2
        assert client._sockets.connections == 1
        assert all(len(socket._threads) <= 1 for socket in client._sockets._running)


async def test_entering_twice_is_a_mistake_that_is_told(bubble_client: BubbleConnection) -> None:
    thread_id = await filled(bubble_client, 1)
    subscription = bubble_client.subscribe_thread(thread_id)
    with pytest.raises(RuntimeError, match="not been entered"):
        _ = subscription.through_seq
    async with subscription:
        with pytest.raises(RuntimeError, match="entered once"):
            await subscription.__aenter__()
