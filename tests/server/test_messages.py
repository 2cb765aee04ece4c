"""Pages of messages over HTTP. That a page out of part of the log is exact is shown in tests/server/messages."""

from __future__ import annotations

import asyncio
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from tests.server.world import Json, Person, World

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("PR-6-32")]

FILE: Json = {"type": "file", "url": "data:,x", "mediaType": "text/plain"}

Page = dict[str, Any]


async def page(person: Person, thread_id: str, query: str = "") -> Page:
    answer: Page = (await person.get(f"/v1/threads/{thread_id}/messages{query}")).json()
    return answer


def ids(page: Page) -> list[str]:
    return [message["id"] for message in page["messages"]]


@pytest.fixture
async def thread(alice: Person, bob: Person) -> str:
    """Two messages about who is there (seqs 1 and 2), and ten that Alice says in runs of four events (3 to 42)."""
    thread_id = await alice.thread(participants=[{"principalId": bob.principal_id}])
    events = [event for number in range(10) for event in alice.message(f"r{number}", f"text {number}")]
    await alice.post(f"/v1/threads/{thread_id}/events:batch", {"events": events})
    return thread_id


async def test_a_page_is_the_newest_messages_and_tells_where_the_page_before_ends(alice: Person, thread: str) -> None:
    assert ids(await page(alice, thread)) == ["~1", "~2", *(f"r{number}" for number in range(10))]
    newest = await page(alice, thread, "?limit=3")
    assert (ids(newest), newest["headSeq"], newest["nextBefore"]) == (["r7", "r8", "r9"], 42, 32)
    before = await page(alice, thread, "?limit=3&before=32")
    assert (ids(before), before["headSeq"], before["nextBefore"]) == (["r4", "r5", "r6"], 42, 20)
    first = await page(alice, thread, "?limit=6&before=20")
    assert (ids(first), first["nextBefore"]) == (["~1", "~2", "r0", "r1", "r2", "r3"], None)


async def test_before_is_a_seq_and_excludes_what_opened_there(alice: Person, thread: str) -> None:
    for before, last in ((1, []), (2, ["~1"]), (4, ["~2"]), (5, ["r0"]), (9, ["r1"]), (43, ["r9"]), (10**15, ["r9"])):
        assert ids(await page(alice, thread, f"?before={before}&limit=1")) == last


async def test_a_message_is_whole_with_what_the_log_knows_of_it(alice: Person, bob: Person, thread: str) -> None:
    reaction: Json = {"kind": "reaction", "targetSeq": 5, "emoji": "\U0001f44d", "op": "add"}
    await bob.append(thread, bob.starts("b"))
    await bob.append(thread, bob.part("b", reaction, version="bubble-v1"))
    (message,) = (await page(alice, thread, "?before=5&limit=1"))["messages"]
    stored = (await alice.get(f"/v1/threads/{thread}/events?fromSeq=4")).json()["events"]
    assert message == {
        "id": "r0",
        "role": "assistant",
        "parts": [{"type": "text", "text": "text 0", "state": "done"}],
        "metadata": {
            "bubble": {
                "principalId": "alice",
                "runId": "r0",
                "firstSeq": 4,
                "lastSeq": 44,
                "createdAt": stored[0]["createdAt"],
                "updatedAt": stored[-1]["createdAt"],
                "status": "finished",
                "reactions": {"\U0001f44d": ["bob"]},
            }
        },
    }


async def test_a_page_ends_before_the_message_that_would_bring_it_beyond_4_mib(alice: Person, thread: str) -> None:
    for number in range(6):
        await alice.post(
            f"/v1/threads/{thread}/events:batch", {"events": alice.message(f"long{number}", "x" * 900_000)}
        )
    newest = await page(alice, thread)
    assert ids(newest) == [f"long{number}" for number in range(2, 6)]
    before = await page(alice, thread, f"?before={newest['nextBefore']}")
    assert (ids(before)[-3:], len(ids(before)), before["nextBefore"]) == (["r9", "long0", "long1"], 14, None)


@pytest.mark.parametrize(
    ("query", "expected"),
    [("", ["r", "r~1", "r~2"]), ("?grouping=speaker", ["r", "r~1", "r~2"]), ("?grouping=run", ["r", "r~1"])],
)
async def test_grouping_says_when_a_message_ends(
    alice: Person, bob: Person, thread: str, query: str, expected: list[str]
) -> None:
    await alice.append(thread, alice.starts("r"))
    for who in (alice, bob, alice):
        await who.append(thread, who.part("r", FILE))
    assert ids(await page(alice, thread, query))[12:] == expected


async def test_a_page_has_50_messages_unless_asked_and_200_at_most(alice: Person) -> None:
    thread = await alice.thread()
    for first in range(0, 250, 125):
        events = [event for number in range(first, first + 125) for event in alice.message(f"r{number}")]
        await alice.post(f"/v1/threads/{thread}/events:batch", {"events": events})
    for query, count in (("", 50), ("?limit=1", 1), ("?limit=200", 200), ("?limit=201", 200), ("?limit=9999999", 200)):
        assert ids(await page(alice, thread, query)) == [f"r{number}" for number in range(250 - count, 250)]


@pytest.mark.requirement("PR-2-11", "PR-2-14")
@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=-1", "limit=x", "before=0", "before=x", "before=9007199254740992", "grouping=x", "after=1"],
)
async def test_a_page_that_cannot_be_is_refused(alice: Person, thread: str, query: str) -> None:
    answer = await alice.get(f"/v1/threads/{thread}/messages?{query}", expect=400)
    assert query.partition("=")[0] in answer.json()["message"]


async def test_messages_that_one_event_opened_are_on_one_page(alice: Person, bob: Person, thread: str) -> None:
    # Bob's decision waits for the call, and is shown with it.
    call: Json = {"type": "tool-input-available", "toolCallId": "c", "toolName": "t", "input": {}}
    await alice.append(thread, alice.starts("r"))
    about: Json = {"principalId": "bob", "runId": "r", "toolCallId": "c", "approved": True}
    await bob.append(thread, {"type": "tool_call_approval", **about})
    await alice.append(thread, alice.part("r", call))
    newest = await page(alice, thread, "?limit=1")
    assert (ids(newest), newest["nextBefore"]) == (["r", "r~1"], 45)
    assert ids(await page(alice, thread, "?limit=1&before=45")) == ["r9"]


async def test_a_thread_without_messages_has_an_empty_page(world: World) -> None:
    for events in ([], [{"type": "run_started", "principalId": "admin", "runId": "r"}]):
        for event in events:
            await world.store.append("bare", event)
        if events:
            assert await page(world.admin, "bare") == {"messages": [], "headSeq": 1, "nextBefore": None}


async def test_messages_fit_their_schema(world: World, alice: Person, bob: Person, thread: str) -> None:
    await alice.patch(f"/v1/threads/{thread}", {"title": "x"})
    await bob.append(thread, {**bob.starts("b"), "kind": "agent_work"})
    parts: list[Json] = [
        {"type": "start", "messageId": "m", "messageMetadata": {"model": "x"}},
        FILE,
        {"type": "tool-input-available", "toolCallId": "c", "toolName": "t", "input": {}},
        {"type": "error", "errorText": "oh"},
    ]
    for part in parts:
        await bob.append(thread, bob.part("b", part))
    await bob.append(thread, bob.part("b", {"kind": "x"}, version="bubble-v1"))
    await alice.append(thread, alice.part("b", FILE))
    reaction: Json = {"kind": "reaction", "targetSeq": 5, "emoji": "\U0001f44d", "op": "add"}
    await bob.append(thread, bob.part("b", reaction, version="bubble-v1"))
    await bob.append(thread, {**bob.finishes("b"), "outcome": "failed"})
    document = (await world.admin.get("/openapi.json")).json()
    schema = {"$ref": "#/components/schemas/MessagePage", "components": _closed(document["components"])}
    validator = jsonschema.Draft202012Validator(schema)
    answer = await page(alice, thread)
    validator.validate(answer)
    told = {name for message in answer["messages"] for name in message["metadata"]["bubble"]}
    assert told == set(document["components"]["schemas"]["BubbleMetadata"]["properties"]) - {"producerMetadata"}
    assert not validator.is_valid({**answer, "messages": [{"id": "x"}]})


def _closed(components: dict[str, Any]) -> dict[str, Any]:
    """The same schemas, in which Bubble's own metadata may have nothing that they do not tell of."""
    schemas = components["schemas"]
    return {
        **components,
        "schemas": {**schemas, "BubbleMetadata": {**schemas["BubbleMetadata"], "additionalProperties": False}},
    }


async def test_a_page_that_takes_long_gives_everybody_their_turn(alice: Person, thread: str) -> None:
    await alice.append(thread, alice.starts("long"))
    await alice.append(thread, alice.part("long", {"type": "text-start", "id": "1"}))
    for _ in range(10):
        await alice.post(f"/v1/threads/{thread}/events:batch", {"events": [alice.says("long", "x")] * 1_000})
    long = asyncio.create_task(page(alice, thread, "?limit=1"))
    turns = 0
    while not long.done():
        await asyncio.sleep(0)
        turns += 1
    assert ids(await long) == ["long"]
    # Each event was read, looked at and folded, and none of that was done for many of them in one turn.
    assert turns > 3 * 10_000 / 512
