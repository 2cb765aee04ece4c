"""A thread's messages as server-sent events."""

from __future__ import annotations

import json
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from bubble.protocol.sse import SseEvent
from tests.server.streams import Stream, streaming
from tests.server.world import Json, Person

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
