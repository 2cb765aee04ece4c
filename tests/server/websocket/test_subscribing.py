"""Subscriptions over a real socket, sentence by sentence, on both skins."""

from __future__ import annotations

import asyncio

import pytest

from bubble.protocol.errors import ERROR_CODES
from tests.server.websocket.live import ADMIN_TOKEN, Frame, Live, part

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("WS-01", "WS-02", "WS-03", "PR-4-04")
async def test_the_bearer_of_http_opens_the_socket(live: Live) -> None:
    await live.thread("t1")
    async with live.peer(ADMIN_TOKEN) as peer:
        assert (await peer.subscribe("t1"))["type"] == "thread.subscription_opened"


@pytest.mark.requirement("WS-10", "WS-15", "WS-18", "WS-22", "WS-23", "PR-7-06", "WS-57", "EV-39")
async def test_opened_once_then_backlog_then_live(live: Live) -> None:
    bob = await live.person("bob")
    await live.thread("t1", bob="participant")
    for number in range(3):
        await live.append("t1", part(str(number)))
    async with live.peer(bob) as peer:
        opened = await peer.subscribe("t1")
        assert opened == {"type": "thread.subscription_opened", "threadId": "t1", "throughSeq": 6}
        backlog = await peer.events(6)
        await live.call("PUT", "/v1/threads/t1/grants/bob", {"role": "observer"})
        live_events = await peer.events(1)
        assert [event["seq"] for event in backlog + live_events] == list(range(1, 8))
        assert backlog[1] | {"createdAt": ""} == {
            "seq": 2,
            "createdAt": "",
            "type": "participant_joined",
            "byPrincipalId": "admin",
            "principalId": "bob",
        }
        assert live_events[0]["type"] == "participant_left"
        assert all(frame["threadId"] == "t1" for frame in peer.seen)
        assert await peer.settled() == []


@pytest.mark.requirement("WS-19", "WS-20")
async def test_from_seq_is_inclusive_and_is_where_a_client_resumes(live: Live) -> None:
    await live.thread("t1")
    for number in range(4):
        await live.append("t1", part(str(number)))
    async with live.peer() as peer:
        await peer.subscribe("t1", from_seq=3)
        first = await peer.events(2)
        await peer.send({"type": "thread.unsubscribe", "threadId": "t1"})
        await peer.settled()
    async with live.peer() as again:
        await again.subscribe("t1", from_seq=first[-1]["seq"] + 1)
        rest = await again.events(2)
    assert [event["seq"] for event in first + rest] == [3, 4, 5, 6]


@pytest.mark.requirement("WS-21", "PR-7-08", "EV-49")
async def test_from_beyond_the_head_comes_all_that_is_live(live: Live) -> None:
    await live.thread("t1")
    async with live.peer() as peer:
        opened = await peer.subscribe("t1", from_seq=2**53 - 1)
        assert opened["throughSeq"] == 2
        await live.append("t1", part())
        assert [event["seq"] for event in await peer.events(1)] == [3]


@pytest.mark.parametrize("from_seq", [0, -1, 2**53, 1.5, "1", None, True])
async def test_a_from_seq_out_of_range_is_a_scoped_invalid_request(live: Live, from_seq: object) -> None:
    await live.thread("t1")
    async with live.peer() as peer:
        await peer.send({"type": "thread.subscribe", "threadId": "t1", "fromSeq": from_seq})
        error = await peer.frame()
        assert (error["type"], error["code"], error["threadId"]) == ("error", "invalid_request", "t1")
        assert "fromSeq" in error["message"]


@pytest.mark.requirement("WS-24", "WS-47")
async def test_paging_first_and_subscribing_then_gives_every_event_once(live: Live) -> None:
    await live.thread("t1")
    for number in range(5):
        await live.append("t1", part(str(number)))
    paged = [event["seq"] for event in await live.page("t1")]
    await live.append("t1", part("between"))
    async with live.peer() as peer:
        opened = await peer.subscribe("t1", from_seq=paged[-1] + 1)
        await live.append("t1", part("after"))
        events = await peer.events(2)
    assert paged + [event["seq"] for event in events] == list(range(1, 10))
    assert [event["seq"] <= opened["throughSeq"] for event in events] == [True, False]


@pytest.mark.requirement("WS-25")
async def test_an_observer_subscribes_without_being_able_to_append(live: Live) -> None:
    olga = await live.person("olga")
    await live.thread("t1", olga="observer")
    async with live.peer(olga) as peer:
        await peer.subscribe("t1")
        await peer.events(2)
        await peer.append("t1", part(by="olga"))
        assert (await peer.frame())["code"] == "forbidden"


@pytest.mark.requirement("WS-26", "WS-27", "WS-13")
async def test_a_second_subscribe_is_a_conflict_and_the_first_goes_on(live: Live) -> None:
    await live.thread("t1")
    async with live.peer() as peer:
        await peer.subscribe("t1")
        await peer.events(2)
        assert await peer.subscribe("t1") == {
            "type": "error",
            "threadId": "t1",
            "code": "conflict",
            "message": 'Connection is already subscribed to thread "t1".',
        }
        await live.append("t1", part())
        assert (await peer.events(1))[0]["seq"] == 3


@pytest.mark.requirement("WS-17", "WS-28", "WS-29", "PR-8-14")
async def test_unsubscribing_is_silent_and_another_from_seq_may_follow(live: Live) -> None:
    await live.thread("t1")
    async with live.peer() as peer:
        await peer.subscribe("t1")
        await peer.events(2)
        await peer.send({"type": "thread.unsubscribe", "threadId": "t1"})
        await peer.send({"type": "thread.unsubscribe", "threadId": "never"})
        assert await peer.settled() == []
        await live.append("t1", part())
        assert await peer.settled() == []
        await peer.subscribe("t1", from_seq=2)
        assert [event["seq"] for event in await peer.events(2)] == [2, 3]


@pytest.mark.requirement("WS-34")
async def test_a_denial_cannot_be_told_from_a_thread_that_does_not_exist(live: Live) -> None:
    eve = await live.person("eve")
    await live.thread("secret")
    async with live.peer(eve) as peer:
        existing = await peer.subscribe("secret")
        missing = await peer.subscribe("nothere")
    assert existing["code"] == missing["code"] == "not_found"
    assert existing["message"].replace("secret", "*") == missing["message"].replace("nothere", "*")
    assert existing.keys() == missing.keys()


@pytest.mark.requirement("WS-05", "WS-06", "WS-39", "WS-41")
async def test_one_socket_carries_many_threads_and_every_subscriber_gets_the_event(live: Live) -> None:
    names = [f"t{number}" for number in range(10)]
    for name in names:
        await live.thread(name)
    async with live.peer() as writer, live.peer() as reader:
        for peer in (writer, reader):
            for name in names:
                await peer.subscribe(name, from_seq=3)
        for name in names:
            await writer.append(name, part(name))
        for peer in (writer, reader):
            got = [await peer.frame() for _ in names]
            assert {frame["threadId"]: frame["event"]["part"]["delta"] for frame in got} == {
                name: name for name in names
            }
            assert all(frame["event"]["seq"] == 3 and frame["event"]["createdAt"] for frame in got)


@pytest.mark.requirement(
    "WS-14", "WS-16", "WS-31", "WS-32", "WS-33", "WS-52", "WS-53", "WS-12", "WS-49", "EV-40", "PR-5-26", "PR-5-29"
)
@pytest.mark.parametrize("role", ["participant", "observer"])
async def test_removed_while_events_pour_in(live: Live, role: str) -> None:
    bob = await live.person("bob")
    await live.thread("t1", bob=role)
    async with live.peer(bob) as reader, live.peer() as writer:
        await reader.subscribe("t1")

        async def pour(count: int) -> None:
            for number in range(count):
                await writer.append("t1", part(str(number)))

        await pour(200)
        removing = asyncio.create_task(live.call("DELETE", "/v1/threads/t1/grants/bob"))
        await pour(200)
        await removing
        began = asyncio.get_running_loop().time()
        closed = await reader.frame_of("thread.subscription_closed")
        assert asyncio.get_running_loop().time() - began < 1
        assert closed == {"type": "thread.subscription_closed", "threadId": "t1", "reason": "not_found"}
        assert closed["reason"] in ERROR_CODES
        explanation = reader.seen[-2]
        assert (explanation["type"], explanation["threadId"], explanation["code"]) == ("error", "t1", "not_found")
        await pour(50)
        await writer.settled()
        assert await reader.settled() == []
        seqs = [frame["event"]["seq"] for frame in reader.seen if frame["type"] == "thread.event"]
        assert seqs == list(range(1, len(seqs) + 1))
        left = [event for event in await live.page("t1") if event["type"] == "participant_left"]
        if role == "participant":
            assert len(seqs) < left[0]["seq"], "the revoked saw its own participant_left, or later"
        await live.call("PUT", "/v1/threads/t1/grants/bob", {"role": "observer"})
        await reader.subscribe("t1", from_seq=len(seqs) + 1)
        assert (await reader.events(1))[0]["seq"] == len(seqs) + 1


@pytest.mark.requirement("PR-7-19")
async def test_closing_a_socket_leaves_nothing_behind(live: Live) -> None:
    await live.thread("t1")
    async with live.peer() as peer:
        await peer.subscribe("t1")
        assert live.app.services.hub.statistics().subscriptions == 1
        await peer.events(2)
        await peer.socket.close(1000)
        assert [frame["type"] for frame in peer.seen] == ["thread.subscription_opened", "thread.event", "thread.event"]
    async with live.peer() as other:
        await other.settled()
        assert live.app.services.hub.statistics().connections == 1


@pytest.mark.requirement("PR-7-03", "PR-7-04", "PR-7-05")
async def test_grants_are_told_as_a_snapshot_and_changes(live: Live) -> None:
    bob = await live.person("bob")
    await live.thread("t1", bob="participant")
    await live.thread("t2")
    async with live.peer(bob) as peer:
        await peer.send({"type": "grants.subscribe"})
        snapshot = await peer.frame()
        assert snapshot["type"] == "grants.snapshot"
        assert [(grant["threadId"], grant["role"]) for grant in snapshot["grants"]] == [("t1", "participant")]
        await live.call("PUT", "/v1/threads/t2/grants/bob", {"role": "observer"})
        await live.call("PUT", "/v1/threads/t2/grants/bob", {"role": "participant"})
        await live.call("DELETE", "/v1/threads/t2/grants/bob")
        changes = [await peer.frame() for _ in range(3)]
        assert [(frame["type"], frame["change"], frame["grant"]["role"]) for frame in changes] == [
            ("grants.changed", "granted", "observer"),
            ("grants.changed", "updated", "participant"),
            ("grants.changed", "revoked", "participant"),
        ]
        await peer.send({"type": "grants.subscribe"})
        assert (await peer.frame())["code"] == "conflict"
        await peer.send({"type": "grants.unsubscribe"})
        await peer.settled()
        await live.call("PUT", "/v1/threads/t2/grants/bob", {"role": "observer"})
        assert await peer.settled() == []


async def test_a_bearer_that_is_narrowed_to_threads_is_told_of_grants_on_those_alone(live: Live) -> None:
    await live.person("bob")
    for thread_id in ("t1", "t2", "t3"):
        await live.thread(thread_id, bob="participant")
    narrow, other = await live.token("bob", threads=["t1"]), await live.token("bob", threads=["t1", "t2"])
    async with live.peer(narrow) as peer:
        await peer.send({"type": "grants.subscribe"})
        assert [grant["threadId"] for grant in (await peer.frame())["grants"]] == ["t1"]
        await live.call("PUT", "/v1/threads/t2/grants/bob", {"role": "observer"})
        await live.call("PUT", "/v1/threads/t1/grants/bob", {"role": "observer"})
        assert _told(await peer.frame()) == ("updated", "t1", "observer")
        await peer.send({"type": "auth.refresh", "token": other})
        assert _told(await peer.frame()) == ("granted", "t2", "observer")
        await live.call("DELETE", "/v1/threads/t3/grants/bob")
        await live.call("DELETE", "/v1/threads/t1/grants/bob")
        assert _told(await peer.frame()) == ("revoked", "t1", "observer")
        await peer.send({"type": "auth.refresh", "token": narrow})
        assert _told(await peer.frame()) == ("revoked", "t2", "observer")


def _told(frame: Frame) -> tuple[str, str, str]:
    assert frame["type"] == "grants.changed", frame
    return frame["change"], frame["grant"]["threadId"], frame["grant"]["role"]
