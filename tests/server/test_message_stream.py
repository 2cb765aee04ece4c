"""A thread's messages as server-sent events."""

from __future__ import annotations

import json
import re
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from bubble.protocol.errors import Unavailable
from bubble.protocol.sse import SseEvent
from bubble.server.messages.growing import Growing
from tests.server.streams import Stream, streaming
from tests.server.world import Json, Person, World, a_world

pytestmark = pytest.mark.anyio

Message = dict[str, Any]


def watching(person: Person, thread_id: str, query: str = "", **headers: str) -> AbstractAsyncContextManager[Stream]:
    return streaming(person, f"/v1/threads/{thread_id}/messages/stream{query}", **headers)


async def messages(person: Person, thread_id: str, query: str = "") -> list[Message]:
    """What a page holds."""
    page: list[Message] = (await person.get(f"/v1/threads/{thread_id}/messages{query}")).json()["messages"]
    return page


def message(event: SseEvent) -> Message:
    """The message that an event brings."""
    assert event.event == "message"
    told: Message = json.loads(event.data)
    return told


def said(event: SseEvent) -> tuple[str, str]:
    """A message's id and its text."""
    told = message(event)
    return told["id"], "".join(part.get("text", "") for part in told["parts"])


async def say(person: Person, thread_id: str, *runs: str) -> int:
    """A whole message in each of the runs, at once; the head."""
    events = [event for run_id in runs for event in person.message(run_id, run_id)]
    stored = (await person.post(f"/v1/threads/{thread_id}/events:batch", {"events": events})).json()["events"]
    head: int = stored[-1]["seq"]
    return head


@pytest.fixture
async def thread(alice: Person, bob: Person) -> str:
    """Alice's thread, with two messages about who is there and one of hers that goes on (events 3 to 5)."""
    thread_id = await alice.thread(participants=[{"principalId": bob.principal_id}])
    await alice.append(thread_id, alice.starts("r"))
    await alice.append(thread_id, alice.part("r", {"type": "text-start", "id": "1"}))
    await alice.append(thread_id, alice.says("r", "one"))
    return thread_id


@pytest.mark.requirement("PR-6-27")
async def test_the_newest_messages_come_first_and_then_each_that_changes(alice: Person, thread: str) -> None:
    async with watching(alice, thread) as stream:
        opened, *page = await stream.take(4)
        assert (opened.event, opened.id) == ("subscription_opened", "")
        assert json.loads(opened.data) == {"threadId": thread, "throughSeq": 5}
        assert [message(event) for event in page] == await messages(alice, thread)
        assert [event.id for event in page] == ["", "", "5"]
        await alice.append(thread, alice.says("r", " two"))
        changed = await stream.next()
        assert (said(changed), changed.id) == (("r", "one two"), "6")
        assert message(changed) == (await messages(alice, thread))[-1]


@pytest.mark.requirement("PR-6-27")
async def test_of_what_one_event_caused_only_the_last_has_an_id(alice: Person, bob: Person, thread: str) -> None:
    async with watching(alice, thread) as stream:
        await stream.take(4)
        await bob.append(thread, bob.part("r", {"type": "file", "url": "data:,x", "mediaType": "text/plain"}))
        opened = await stream.next()
        assert (message(opened)["id"], opened.id) == ("r~1", "6")
        await alice.append(thread, alice.finishes("r"))
        ended = await stream.take(2)
        assert [message(event)["id"] for event in ended] == ["r", "r~1"]
        assert b"id: 7" not in stream.bytes[: stream.bytes.rindex(b"event: message\n")]
        assert ended[1].id == "7"


async def test_each_message_comes_whole_with_what_the_log_knows_of_it(alice: Person, bob: Person, thread: str) -> None:
    reaction: Json = {"kind": "reaction", "targetSeq": 5, "emoji": "🎉", "op": "add"}
    async with watching(alice, thread) as stream:
        await stream.take(4)
        await bob.append(thread, bob.starts("b"))
        await bob.append(thread, bob.part("b", reaction, version="bubble-v1"))
        told = await stream.next()
        assert message(told)["metadata"]["bubble"]["reactions"] == {"🎉": ["bob"]}
        assert (said(told), told.id) == (("r", "one"), "7")


@pytest.mark.parametrize(("grouping", "ids"), [("speaker", ["r", "r~1", "r~2"]), ("run", ["r", "r~1"])])
async def test_a_viewer_says_how_messages_are_cut(
    alice: Person, bob: Person, thread: str, grouping: str, ids: list[str]
) -> None:
    async with watching(alice, thread, f"?grouping={grouping}") as stream:
        await stream.take(4)
        file = {"type": "file", "url": "data:,x", "mediaType": "text/plain"}
        for who in (bob, alice):
            await who.append(thread, who.part("r", file))
        folded = {"r": ["text"]}
        while sum(map(len, folded.values())) < 3:
            told = message(await stream.next())
            folded[told["id"]] = [part["type"] for part in told["parts"]]
        assert sorted(folded) == ids


async def test_a_viewer_says_how_many_messages_come_first(alice: Person, thread: str) -> None:
    head = await say(alice, thread, "x", "y", "z")
    async with watching(alice, thread, "?limit=2") as stream:
        await stream.next()
        page = await stream.take(2)
        assert [(said(event), event.id) for event in page] == [(("y", "y"), ""), (("z", "z"), str(head))]


async def test_at_most_200_messages_come_first(alice: Person) -> None:
    thread = await alice.thread()
    await say(alice, thread, *map(str, range(210)))
    async with watching(alice, thread, "?limit=1000") as stream:
        await stream.next()
        page = await stream.take(200)
        assert [said(event)[0] for event in page] == [str(number) for number in range(10, 210)]
        await say(alice, thread, "live")
        assert said(await stream.next()) == ("live", "live")


@pytest.mark.requirement("PR-8-18", "PR-2-14")
@pytest.mark.parametrize("last", ["x", "-1", "1.5", " ", "9007199254740991", "1" * 5_000, "1,2"])
async def test_a_malformed_last_event_id_is_refused(alice: Person, thread: str, last: str) -> None:
    await alice.get(f"/v1/threads/{thread}/messages/stream", headers={"Last-Event-ID": last}, expect=400)


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=x", "grouping=person", "format=xml", "format=", "before=1", "fromSeq=1"]
)
async def test_a_stream_that_cannot_be_is_refused(alice: Person, thread: str, query: str) -> None:
    answer = await alice.get(f"/v1/threads/{thread}/messages/stream?{query}", expect=400)
    assert query.partition("=")[0] in answer.json()["message"]


# --- coming back ------------------------------------------------------------------------------------------------------------------


async def test_whoever_comes_back_gets_what_changed_since_and_nothing_else(
    alice: Person, bob: Person, thread: str
) -> None:
    file = {"type": "file", "url": "data:,x", "mediaType": "text/plain"}
    for who in (bob, alice):
        await who.append(thread, who.part("r", file))
    await say(bob, thread, "b")
    await alice.append(thread, alice.finishes("r"))
    there = await messages(alice, thread)
    head = 12
    for last in range(head + 3):
        changed = [one for one in there if one["metadata"]["bubble"]["lastSeq"] > last]
        async with watching(alice, thread, **{"Last-Event-ID": str(last)}) as stream:
            opened, *told = await stream.take(1 + len(changed))
            assert json.loads(opened.data)["throughSeq"] == head
            assert sorted(message(event)["id"] for event in told) == sorted(one["id"] for one in changed)
            assert [message(event) for event in told if message(event) not in there] == []
            assert [event.id for event in told[-1:]] == ["12"] * bool(told)
            assert stream.bytes.count(b"event: message\n") == len(changed)


async def test_whoever_comes_back_goes_on_live(alice: Person, thread: str) -> None:
    for last in ("0", "5", "9000"):
        async with watching(alice, thread, **{"Last-Event-ID": last}) as stream:
            await stream.next()
            await alice.append(thread, alice.says("r", f" {last}"))
            while not said(told := await stream.next())[1].endswith(f" {last}"):
                pass
            assert said(told)[0] == "r"


async def test_whoever_was_away_for_long_is_told_everything_in_the_end(alice: Person) -> None:
    thread = await alice.thread()
    await alice.append(thread, alice.starts("long"))
    await alice.append(thread, alice.part("long", {"type": "text-start", "id": "1"}))
    runs = [str(number) for number in range(3_000)]
    for first in range(0, 3_000, 200):
        await say(alice, thread, *runs[first : first + 200])
    await alice.append(thread, alice.says("long", "at last"))
    async with watching(alice, thread, **{"Last-Event-ID": "3"}) as stream:
        await stream.next()
        told = [await stream.next()]
        while said(told[-1])[0] != "long~1":
            told.append(await stream.next())
        assert dict(map(said, told)) == {run: run for run in runs} | {"long": "", "long~1": "at last"}
        assert told[-1].id == "12004"
        # On the way there were ids to come back with.
        assert len(set(re.findall(rb"^id: (\d+)$", stream.bytes, re.MULTILINE))) > 2


# --- the end ----------------------------------------------------------------------------------------------------------------------


async def test_a_stream_is_for_those_who_may_subscribe(world: World, thread: str) -> None:
    carol = await world.user("carol")
    for path in ("messages", "messages/stream"):
        await carol.get(f"/v1/threads/{thread}/{path}", expect=404)
        await carol.get(f"/v1/threads/nowhere/{path}", expect=404)


@pytest.mark.requirement("PR-8-16", "PR-5-26")
async def test_after_a_revocation_nothing_is_shown_of_what_was_said_behind_it(
    alice: Person, bob: Person, thread: str
) -> None:
    async with watching(bob, thread) as stream, watching(alice, thread) as other:
        await stream.take(4)
        await other.take(4)
        await alice.delete(f"/v1/threads/{thread}/grants/bob")
        await alice.append(thread, alice.says("r", " behind his back"))
        while said(await other.next()) != ("r~1", " behind his back"):
            pass
        closed = await stream.next()
        assert (closed.event, closed.id) == ("subscription_closed", "5")  # the id of the last message stays
        assert json.loads(closed.data) == {"threadId": thread, "reason": "not_found"}
        with pytest.raises(StopAsyncIteration):
            await stream.next()
    assert stream.bytes.count(b"event: message\n") == 3


@pytest.mark.requirement("PR-5-31")
async def test_deleting_the_thread_closes_its_streams(world: World, alice: Person, bob: Person, thread: str) -> None:
    async with watching(bob, thread) as stream:
        await stream.take(4)
        await alice.delete(f"/v1/threads/{thread}")
        assert json.loads((await stream.next()).data) == {"threadId": thread, "reason": "not_found"}
        with pytest.raises(StopAsyncIteration):
            await stream.next()
    assert world.app.services.followings.statistics().followings == 0


async def test_a_bearer_that_is_revoked_closes_its_streams(world: World, bob: Person, thread: str) -> None:
    async with watching(bob, thread) as stream:
        await stream.take(4)
        await world.admin.patch("/v1/principals/bob", {"disabled": True})
        assert json.loads((await stream.next()).data) == {"reason": "unauthenticated"}


async def test_a_draining_server_ends_its_streams(world: World, alice: Person, thread: str) -> None:
    async with watching(alice, thread) as stream:
        await stream.take(4)
        await world.app.drain()
        assert json.loads((await stream.next()).data)["reason"] == "unavailable"
        with pytest.raises(StopAsyncIteration):
            await stream.next()


async def test_a_store_out_of_reach_ends_the_stream_and_the_next_one_begins_anew(
    world: World, alice: Person, thread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_: object, **__: object) -> None:
        raise Unavailable("not now")

    with monkeypatch.context() as broken:
        broken.setattr(world.store, "read", fails)
        async with watching(alice, thread) as stream:
            opened, closed = await stream.take(2)
            assert (opened.event, closed.event) == ("subscription_opened", "subscription_closed")
            assert json.loads(closed.data)["reason"] == "unavailable"
    async with watching(alice, thread) as stream:
        assert [event.event for event in await stream.take(4)][1:] == ["message"] * 3


async def test_a_handler_that_fails_ends_the_stream_and_says_nothing_of_why(
    alice: Person, thread: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fails(*_: object, **__: object) -> None:
        raise RuntimeError("a secret")

    monkeypatch.setattr(Growing, "grow", fails)
    async with watching(alice, thread) as stream:
        await stream.take(4)
        await alice.append(thread, alice.says("r", "two"))
        assert json.loads((await stream.next()).data) == {"reason": "internal"}
    assert b"secret" not in stream.bytes
    assert "a secret" in caplog.text


# --- the stream itself ------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("PR-8-19")
async def test_the_stream_is_neither_cached_nor_buffered(alice: Person, thread: str) -> None:
    async with alice.http.stream("GET", f"/v1/threads/{thread}/messages/stream") as answer:
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert answer.headers["cache-control"] == "no-cache, no-transform"
        assert answer.headers["x-accel-buffering"] == "no"
        assert answer.headers["bubble-protocol-version"] == "1"


@pytest.mark.requirement("PR-8-20")
async def test_an_idle_stream_gets_a_comment_now_and_then() -> None:
    async with a_world(streams={"keep_alive": "20ms"}) as world:
        thread = await world.admin.thread()
        async with watching(world.admin, thread) as stream:
            await stream.take(2)
            await stream.comment()


async def test_an_empty_thread_has_a_stream_of_what_is_to_come(world: World, alice: Person) -> None:
    await world.store.append("empty", {"type": "run_started", "principalId": "alice", "runId": "r"})
    async with watching(world.admin, "empty") as stream:
        await stream.next()
        await world.store.append("empty", alice.part("r", {"type": "text-start", "id": "1"}))
        told = await stream.next()
        assert (message(told)["id"], told.id) == ("r", "2")


async def test_asking_for_the_headers_of_a_stream_begins_none(world: World, alice: Person, thread: str) -> None:
    answer = await alice.call("HEAD", f"/v1/threads/{thread}/messages/stream", expect=200)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert world.app.services.hub.statistics().connections == 0
    assert world.app.services.followings.statistics().viewers == 0


async def test_what_is_no_number_is_null_and_half_a_character_stays_an_escape(alice: Person, thread: str) -> None:
    part = b'{"type":"data-x","data":{"big":1e400,"half":"\\ud83d"}}'
    event = b'{"type":"message_part","principalId":"alice","runId":"r","part":%b,"version":"ai-sdk-v6"}' % part
    headers = {"content-type": "application/json"}
    async with watching(alice, thread) as stream:
        await stream.take(4)
        path = f"/v1/threads/{thread}/events"
        await alice.call("POST", path, content=event, expect=201, headers=headers)
        told = await stream.next()
        assert '"data":{"big":null,"half":"\\ud83d"}' in told.data
    answer = await alice.get(f"/v1/threads/{thread}/messages")
    assert b'"data":{"big":null,"half":"\\ud83d"}' in answer.content
