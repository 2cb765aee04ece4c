"""A thread as server-sent events."""

from __future__ import annotations

import json
from contextlib import AbstractAsyncContextManager

import pytest

from tests.server.streams import Stream, streaming
from tests.server.world import Person, Tails, World, a_world

pytestmark = pytest.mark.anyio


def following(person: Person, thread_id: str, query: str = "", **headers: str) -> AbstractAsyncContextManager[Stream]:
    return streaming(person, f"/v1/threads/{thread_id}/events/stream{query}", **headers)


@pytest.fixture
async def thread(alice: Person, bob: Person) -> str:
    """Alice's thread, on which Bob takes part, with five events."""
    thread_id = await alice.thread(participants=[{"principalId": bob.principal_id}])
    await alice.append(thread_id, alice.starts("r"))
    for text in ("one", "two"):
        await alice.append(thread_id, alice.says("r", text))
    return thread_id


@pytest.mark.requirement("PR-6-25", "PR-8-17")
async def test_the_stream_is_the_subscription(alice: Person, thread: str) -> None:
    async with following(alice, thread, "?fromSeq=4") as stream:
        opened, four, five = await stream.take(3)
        assert (opened.event, opened.id) == ("subscription_opened", "")
        assert json.loads(opened.data) == {"threadId": thread, "throughSeq": 5}
        stored = await alice.append(thread, alice.says("r", "live"))
        six = await stream.next()
    page = (await alice.get(f"/v1/threads/{thread}/events?fromSeq=4")).json()["events"]
    assert [(event.event, event.id, json.loads(event.data)) for event in (four, five, six)] == [
        ("event", str(event["seq"]), event) for event in page
    ]
    assert page[-1] == stored


@pytest.mark.requirement("PR-8-19")
async def test_the_stream_is_neither_cached_nor_buffered(alice: Person, thread: str) -> None:
    async with alice.http.stream("GET", f"/v1/threads/{thread}/events/stream") as answer:
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert answer.headers["cache-control"] == "no-cache, no-transform"
        assert answer.headers["x-accel-buffering"] == "no"
        assert answer.headers["bubble-protocol-version"] == "1"


@pytest.mark.requirement("PR-6-26")
@pytest.mark.parametrize(
    ("query", "headers", "first"),
    [
        ("", {}, "1"),
        ("?fromSeq=3", {}, "3"),
        ("?fromSeq=2", {"Last-Event-ID": "4"}, "5"),
        ("", {"Last-Event-ID": "0"}, "1"),
    ],
)
async def test_the_last_event_id_beats_from_seq(
    alice: Person, thread: str, query: str, headers: dict[str, str], first: str
) -> None:
    async with following(alice, thread, query, **headers) as stream:
        assert [event.id for event in await stream.take(2)][1] == first


@pytest.mark.requirement("PR-8-18", "PR-2-14")
@pytest.mark.parametrize("last", ["x", "-1", "1.5", " ", "9007199254740991", "1" * 5_000, "1,2"])
async def test_a_malformed_last_event_id_is_refused(alice: Person, thread: str, last: str) -> None:
    await alice.get(f"/v1/threads/{thread}/events/stream", headers={"Last-Event-ID": last}, expect=400)


@pytest.mark.requirement("PR-2-14")
@pytest.mark.parametrize("query", ["fromSeq=0", "fromSeq=x", "fromSeq=9007199254740992", "from=1", "limit=1"])
async def test_a_stream_that_cannot_be_is_refused(alice: Person, thread: str, query: str) -> None:
    await alice.get(f"/v1/threads/{thread}/events/stream?{query}", expect=400)


async def test_a_stream_is_for_those_who_may_subscribe(world: World, thread: str) -> None:
    carol = await world.user("carol")
    await carol.get(f"/v1/threads/{thread}/events/stream", expect=404)


@pytest.mark.requirement("PR-8-16", "PR-5-26")
async def test_a_revocation_closes_the_stream_after_saying_so(alice: Person, bob: Person, thread: str) -> None:
    async with following(bob, thread, "?fromSeq=100") as stream:
        await stream.next()
        await alice.delete(f"/v1/threads/{thread}/grants/bob")
        await alice.append(thread, alice.says("r", "behind his back"))
        closed = await stream.next()
        assert (closed.event, closed.id) == ("subscription_closed", "")
        assert json.loads(closed.data) == {"threadId": thread, "reason": "not_found"}
        with pytest.raises(StopAsyncIteration):
            await stream.next()


@pytest.mark.requirement("PR-5-31")
async def test_deleting_the_thread_closes_its_streams(alice: Person, bob: Person, thread: str) -> None:
    async with following(bob, thread, "?fromSeq=100") as stream:
        await stream.next()
        await alice.delete(f"/v1/threads/{thread}")
        assert (await stream.next()).event == "subscription_closed"


@pytest.mark.requirement("PR-8-20")
async def test_an_idle_stream_gets_a_comment_now_and_then() -> None:
    async with a_world(streams={"keep_alive": "20ms"}) as world:
        thread = await world.admin.thread()
        async with following(world.admin, thread) as stream:
            await stream.take(2)
            await stream.comment()
        assert world.app.settings.streams.keep_alive == 0.02


def test_the_comment_comes_every_15_seconds_by_default() -> None:
    from bubble.server.settings import Settings

    assert Settings().streams.keep_alive == 15


async def test_a_reader_that_leaves_leaves_nothing_behind(world: World, alice: Person, thread: str) -> None:
    tails = Tails(world)
    async with following(alice, thread) as stream:
        await stream.take(6)
        await tails.are(1)
    await tails.are(0)
    assert world.app.services.hub.statistics().connections == 0


async def test_a_draining_server_ends_its_streams(world: World, alice: Person, thread: str) -> None:
    async with following(alice, thread, "?fromSeq=100") as stream:
        await stream.next()
        await world.app.drain()
        assert json.loads((await stream.next()).data)["reason"] == "unavailable"
        with pytest.raises(StopAsyncIteration):
            await stream.next()


async def test_how_far_the_slowest_reader_is_behind_is_a_figure(world: World, alice: Person, thread: str) -> None:
    batch = {"events": [alice.says("r", "x" * 100_000)] * 50}
    async with following(alice, thread, "?fromSeq=100") as stream:
        await stream.next()
        await alice.post(f"/v1/threads/{thread}/events:batch", batch)
        assert world.app.services.hub.statistics().lag > 0
        await stream.take(50)
        assert world.app.services.hub.statistics().lag == 0


async def test_asking_for_the_headers_of_a_stream_begins_none(world: World, alice: Person, thread: str) -> None:
    answer = await alice.call("HEAD", f"/v1/threads/{thread}/events/stream", expect=200)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert world.app.services.hub.statistics().connections == 0
