"""A bot of this server, watched over HTTP: what it says and does on a thread, as a page gets it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any

import pytest

from bubble.protocol.jsontext import JSONValue, dump_json
from bubble.protocol.sse import SseEvent
from bubble.server.watching import following
from bubble.server.watching.slices import counter_of, seq_of
from bubble.watch import WatchCursor
from tests.server.streams import Stream, streaming
from tests.server.watchers import folded
from tests.server.world import NOW, Person, Tails, World, a_world

pytestmark = pytest.mark.anyio

Json = dict[str, Any]


@pytest.fixture
async def alice(world: World) -> Person:
    """A user who may name threads."""
    return await world.user("alice", role="admin")


@pytest.fixture
async def bot(world: World, alice: Person) -> Person:
    """Alice's bot."""
    return await world.bot("helper", owner=alice)


@pytest.fixture
async def thread(alice: Person, bot: Person) -> str:
    """Alice's thread with her bot: events 1 and 2 are that they joined."""
    return await alice.thread(threadId="t", participants=[{"principalId": bot.principal_id}])


def watching(who: Person, query: str = "sessionId=t", **headers: str) -> AbstractAsyncContextManager[Stream]:
    return streaming(who, f"/v1/bots/helper/events?{query}", **headers)


async def until(stream: Stream, kind: str) -> Json:
    """The data of the next event of that type."""
    while (event := await stream.next()).event != kind:
        pass
    data: Json = json.loads(event.data)
    return data


async def states(stream: Stream) -> None:
    """Passes over what everybody is told in the beginning."""
    assert [(await stream.next()).event for _ in range(2)] == ["connected", "agent.state"]


async def shown(stream: Stream, marker: str) -> list[SseEvent]:
    """Everything up to the row `marker`."""
    events = [await stream.next()]
    while json.loads(events[-1].data).get("entryId") != marker:
        events.append(await stream.next())
    return events


async def says(bot: Person, *parts: Mapping[str, JSONValue], run: str = "r", thread: str = "t") -> None:
    for part in parts:
        version = "bubble-v1" if "kind" in part else "ai-sdk-v6"
        event = dump_json(bot.part(run, part, version=version))  # which knows half characters
        path, kind = f"/v1/threads/{thread}/events", {"content-type": "application/json"}
        await bot.call("POST", path, content=event, headers=kind, expect=201)


def control(name: str, **data: JSONValue) -> Json:
    return {"kind": "agent_event", "name": name, "data": data} if data else {"kind": "agent_event", "name": name}


BEGIN: Json = {"type": "text-start", "id": "1"}


def delta(text: str, id: str = "1") -> Json:
    return {"type": "text-delta", "id": id, "delta": text}


# --- rows -----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("PR-6-31", "WA-02", "WA-74", "WA-83")
async def test_a_bots_text_grows_as_one_message(alice: Person, bot: Person, thread: str) -> None:
    await bot.append(thread, bot.starts("r"))
    async with watching(alice) as stream:
        connected = json.loads((await stream.next()).data)
        assert connected["serverTimeMs"] == str(NOW)
        await says(bot, BEGIN)
        first = await until(stream, "message")
        await says(bot, delta("Hel"))
        second = await until(stream, "message")
        await says(bot, delta("lo"))
        third = await until(stream, "message")
    assert [message["text"] for message in (first, second, third)] == ["", "Hel", "Hello"]
    for message in (first, second, third):
        assert (message["entryId"], message["seq"], message["operation"]) == ("r", "4", "upsert")
        assert (message["generation"], message["replay"]) == (0, False)
    counters = [int(message["updatedSeq"]) for message in (first, second, third)]
    assert [seq_of(counter) for counter in counters] == [4, 5, 6]


@pytest.mark.requirement("WA-21", "WA-74")
async def test_what_was_there_before_is_a_replay_and_all_of_it(alice: Person, bot: Person, thread: str) -> None:
    for event in alice.message("q", "Who are you?"):
        await alice.append(thread, event)
    await bot.append(thread, bot.starts("r"))
    await says(bot, BEGIN, delta("A bot."), {"type": "text-end", "id": "1"})
    tool: Json = {"type": "tool-input-available", "toolCallId": "c", "toolName": "look", "input": {"n": 1}}
    await says(bot, tool, {"type": "tool-approval-request", "approvalId": "a", "toolCallId": "c"}, control("mood", n=1))
    approval = {"type": "tool_call_approval", "principalId": "alice", "runId": "r", "toolCallId": "c", "approved": True}
    await alice.append(thread, approval)
    async with watching(alice) as stream:
        events = await shown(stream, "r~1~part-0")
    rows = [json.loads(event.data) for event in events if event.event in ("message", "entry")]
    assert all(row["replay"] for row in rows)
    kinds = {row["entryId"]: row.get("entryKind", "message!") for row in rows}
    assert kinds == {
        "~1": "event",
        "~2": "event",
        "q": "message",
        "r": "message!",
        "r~part-1": "tool-call",
        "r~part-2": "event",
        "r~1~part-0": "approval",
    }
    page = folded(events)
    assert page["q"][1]["content"] == "Who are you?"
    assert page["q"][1]["principalId"] == "alice"
    assert page["r"] == ("message", "A bot.")
    assert page["r~part-1"][1]["part"]["input"] == {"n": 1}
    assert page["r~1~part-0"][1]["part"]["data"]["approved"] is True


@pytest.mark.requirement("WA-75")
async def test_a_text_that_grows_does_not_bring_the_rest_of_its_message_again(
    alice: Person, bot: Person, thread: str
) -> None:
    await bot.append(thread, bot.starts("r"))
    tool: Json = {"type": "tool-input-available", "toolCallId": "c", "toolName": "look", "input": "x" * 1_000}
    await says(bot, tool, BEGIN, delta("a"))
    async with watching(alice) as stream:
        await shown(stream, "r~part-0")
        await says(bot, delta("b"), delta("c"))
        await says(bot, {"type": "tool-output-available", "toolCallId": "c", "output": 7})
        events = await shown(stream, "r~part-0")
    ids = [json.loads(event.data)["entryId"] for event in events]
    assert ids[-1] == "r~part-0"
    assert set(ids[:-1]) == {"r"}


@pytest.mark.requirement("WA-22", "WA-74")
async def test_what_others_say_in_the_bots_run_is_theirs(alice: Person, bot: Person, thread: str) -> None:
    await bot.append(thread, bot.starts("r"))
    await says(bot, BEGIN, delta("mine"))
    await alice.append(thread, alice.part("r", BEGIN))
    await alice.append(thread, alice.says("r", "hers"))
    async with watching(alice) as stream:
        page = folded(await shown(stream, "r~1"))
    assert page["r"] == ("message", "mine")
    assert page["r~1"][0] == "entry"
    assert page["r~1"][1]["content"] == "hers"


@pytest.mark.requirement("WA-74")
async def test_texts_around_a_tool_call_are_one_text_with_a_line_between(
    alice: Person, bot: Person, thread: str
) -> None:
    await bot.append(thread, bot.starts("r"))
    tool: Json = {"type": "tool-input-available", "toolCallId": "c", "toolName": "look", "input": 1}
    await says(bot, BEGIN, delta("Let me look."), tool, {"type": "text-start", "id": "2"}, delta("Found.", "2"))
    async with watching(alice) as stream:
        assert (await until(stream, "message"))["text"] == "Let me look.\n\nFound."


# --- deletes and clears ---------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("WA-07", "WA-76")
async def test_a_deleted_row_is_gone_for_good(alice: Person, bot: Person, thread: str) -> None:
    await bot.append(thread, bot.starts("r"))
    await bot.append(thread, bot.starts("s"))
    await says(bot, BEGIN, delta("regretted"))
    async with watching(alice) as stream:
        await until(stream, "message")
        await says(bot, control("message_deleted", entryId="r"))
        assert (await until(stream, "message.deleted"))["entryId"] == "r"
        await says(bot, delta(" and more"))  # a stale text does not bring it back
        await says(bot, BEGIN, delta("fine"), run="s")
        events = await shown(stream, "s")
        assert "r" not in folded(events)
    async with watching(alice) as stream:
        assert "r" not in folded(await shown(stream, "s"))


@pytest.mark.requirement("WA-08", "WA-54", "WA-76")
async def test_a_cleared_session_begins_a_generation_with_what_came_after(
    alice: Person, bot: Person, thread: str
) -> None:
    await bot.append(thread, bot.starts("r"))
    await says(bot, BEGIN, delta("old"))
    async with watching(alice) as stream:
        await until(stream, "message")
        await says(bot, control("session_cleared"))
        reset = await stream.next()
        while reset.event != "reset":
            reset = await stream.next()
        assert json.loads(reset.data) == {"botId": "helper", "sessionId": "t", "generation": 1}
        assert WatchCursor.decode(reset.id).after_updated_seq == 0
        await says(bot, {"type": "text-start", "id": "2"}, delta("new", "2"))
        while not (message := await until(stream, "message"))["text"]:
            pass  # it may come before the text has begun
        assert (message["text"], message["generation"]) == ("new", 1)
    async with watching(alice) as stream:
        page = folded(await shown(stream, "r"))
        assert page == {"r": ("message", "new")}


async def settled(alice: Person) -> Mapping[str, tuple[str, Any]]:
    """What somebody is shown who comes now: the facts of the thread's beginning left out."""
    await alice.append("t", alice.starts(marker := f"q{next(MARKERS)}"))
    await alice.append("t", alice.part(marker, {"type": "data-mark", "data": 1}))
    async with watching(alice) as stream:
        page = folded(await shown(stream, marker))
    return {entry: row for entry, row in page.items() if entry[0] not in "~q"}


MARKERS = itertools.count()
CLEAR: Json = control("session_cleared") | {"id": "c"}


@pytest.mark.requirement("WA-08", "WA-76")
async def test_a_clear_that_is_said_again_in_the_same_place_clears_again(
    alice: Person, bot: Person, thread: str
) -> None:
    await bot.append(thread, bot.starts("r"))
    await says(bot, BEGIN, delta("old"), CLEAR, {"type": "text-start", "id": "2"}, delta("between", "2"))
    async with watching(alice) as stream:
        while (await until(stream, "message"))["text"] != "between":
            pass
        await says(bot, CLEAR)
        assert (await until(stream, "reset"))["generation"] == 2
        await says(bot, {"type": "text-start", "id": "3"}, delta("new", "3"))
        while not (text := (await until(stream, "message"))["text"]):
            pass
        assert text == "new"
    assert await settled(alice) == {"r": ("message", "new")}
    await says(bot, control("mood") | {"id": "c"})  # a clear that is no longer to be seen has cleared all the same
    assert (await settled(alice))["r"] == ("message", "new")


@pytest.mark.requirement("WA-76", "WA-93")
async def test_what_was_said_before_a_clear_does_not_come_back_when_its_run_ends(
    alice: Person, bot: Person, thread: str
) -> None:
    await bot.append(thread, bot.starts("r"))
    await says(bot, BEGIN, delta("old"))
    for event in alice.message("p"):  # what the bot says next is in another message of its run
        await alice.append(thread, event)
    await says(bot, control("session_cleared"), {"type": "text-start", "id": "2"}, delta("new", "2"))
    await bot.append(thread, bot.finishes("r"))
    assert await settled(alice) == {"r~1": ("message", "new")}


@pytest.mark.requirement("WA-76", "WA-93")
async def test_what_was_open_at_a_clear_goes_on_after_it(alice: Person, bot: Person, thread: str) -> None:
    call: Json = {"type": "tool-input-available", "toolCallId": "c", "toolName": "look", "input": {"n": 1}}
    for run in ("r", "s"):
        await bot.append(thread, bot.starts(run))
    await says(bot, call | {"toolCallId": "d"}, run="s")
    await says(bot, BEGIN, delta("hel"), call)
    async with watching(alice) as stream:
        await shown(stream, "r~part-1")
        await says(bot, control("session_cleared"))
        assert (await until(stream, "reset"))["generation"] == 1
        await says(bot, delta("lo"))
        live = folded(await shown(stream, "r"))
        assert live == {"r": ("message", "lo")}
        await says(bot, {"type": "tool-output-available", "toolCallId": "c", "output": 7})
        await says(bot, {"type": "tool-output-available", "toolCallId": "d", "output": 8}, run="s")
        live = folded(await shown(stream, "s~part-0"), live)
    came = await settled(alice)
    assert came == live
    assert came["r"] == ("message", "lo")
    parts = {entry: row[1]["part"] for entry, row in came.items() if entry != "r"}
    assert {entry: (part["input"], part["output"]) for entry, part in parts.items()} == {
        "r~part-1": ({"n": 1}, 7),
        "s~part-0": ({"n": 1}, 8),
    }


@pytest.mark.requirement("WA-76", "WA-93")
@pytest.mark.parametrize("word", ["", "-delta", "text-delta"])
async def test_what_is_said_again_after_a_clear_is_shown_though_it_is_the_same(
    alice: Person, bot: Person, thread: str, word: str
) -> None:
    mood: Json = control(f"mood{word}", n=word) | {"id": f"m{word}"}
    data: Json = {"type": f"data-{word or 'x'}", "id": f"d{word}", "data": {"type": word}}
    await bot.append(thread, bot.starts("r"))
    await says(bot, mood, data, {"type": "data-y", "id": "d", "data": 5}, BEGIN, delta("hel"))
    async with watching(alice) as stream:
        await shown(stream, "r")
        await says(bot, control("session_cleared"), delta("lo"))
        await until(stream, "reset")
        live = folded(await shown(stream, "r"))
        assert live == await settled(alice) == {"r": ("message", "lo")}
        await says(bot, mood)
        live = folded(await shown(stream, "r~part-0"), live)
        await says(bot, data)
        live = folded(await shown(stream, "r~part-1"), live)
    page = await settled(alice)
    assert page == {entry: row for entry, row in live.items() if entry[0] == "r"}
    assert page.keys() == {"r", "r~part-0", "r~part-1"}


@pytest.mark.requirement("WA-76", "WA-93")
async def test_what_somebody_else_goes_on_saying_after_a_clear_is_shown(
    alice: Person, bot: Person, thread: str
) -> None:
    await bot.append(thread, bot.starts("r"))
    await says(bot, CLEAR)
    await alice.append(thread, alice.starts("a"))
    await alice.append(thread, alice.part("a", BEGIN))
    await alice.append(thread, alice.says("a", "before and "))
    await says(bot, CLEAR)  # in the place of the first one, so that nobody took the floor
    await alice.append(thread, alice.says("a", "after"))
    assert (await settled(alice))["a"][1]["content"] == "after"


@pytest.mark.requirement("WA-76", "WA-93", "WA-80")
async def test_after_a_clear_a_run_that_nobody_began_goes_on() -> None:
    async with a_world(run_integrity="off") as lenient:
        alice = await lenient.user("alice", role="admin")
        bot = await lenient.bot("helper", owner=alice)
        await alice.thread(threadId="t", participants=[{"principalId": "helper"}])
        await says(bot, BEGIN, delta("hel"), control("session_cleared"), delta("lo"))
        assert await settled(alice) == {"r": ("message", "lo")}


@pytest.mark.requirement("WA-31", "WA-53", "WA-76")
@pytest.mark.parametrize("generation", [0, 7])
async def test_who_comes_back_with_another_generation_is_reset(
    alice: Person, bot: Person, thread: str, generation: int
) -> None:
    await bot.append(thread, bot.starts("r"))
    await says(bot, control("session_cleared"), BEGIN, delta("new"))
    cursor = WatchCursor(bot_id="helper", session_id="t", generation=generation, after_updated_seq=70_000)
    async with watching(alice, **{"Last-Event-ID": cursor.encode()}) as stream:
        assert (await until(stream, "reset"))["generation"] == 1
        assert (await until(stream, "message"))["text"] == "new"


@pytest.mark.requirement("WA-76")
async def test_only_the_bot_itself_clears_and_deletes(alice: Person, bot: Person, thread: str) -> None:
    await bot.append(thread, bot.starts("r"))
    await says(bot, BEGIN, delta("stays"))
    for part in (control("session_cleared"), control("message_deleted", entryId="r")):
        await alice.append(thread, alice.part("r", part, version="bubble-v1"))
    await alice.append(thread, alice.starts("s"))
    await says(bot, BEGIN, delta("marker"), run="s")
    async with watching(alice) as stream:
        page = folded(await shown(stream, "s"))
    assert page["r"] == ("message", "stays")


@pytest.mark.requirement("WA-76")
@pytest.mark.parametrize("data", [{}, {"entryId": ""}, {"entryId": 3}, {"id": "r"}])
async def test_a_delete_that_names_nothing_deletes_nothing(alice: Person, bot: Person, thread: str, data: Json) -> None:
    await bot.append(thread, bot.starts("r"))
    await says(bot, BEGIN, delta("stays"), {**control("message_deleted"), "data": data}, {"kind": "agent_event"})
    async with watching(alice) as stream:
        assert (await until(stream, "message"))["text"] == "stays"


# --- beside the transcript ------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("WA-10", "WA-77")
@pytest.mark.parametrize(
    ("parts", "outcome", "code", "summary"),
    [
        ([{"type": "error", "errorText": "No key."}], None, "INTERNAL", "No key."),
        ([{"type": "error", "errorText": "Later.", "code": "RATE_LIMIT"}], "failed", "RATE_LIMIT", "Later."),
        ([{"type": "error", "errorText": "x", "code": 4}], "success", 4, "x"),
        ([{"type": "error", "errorText": "x"}, {"type": "finish-step"}, {"type": "finish"}], None, "INTERNAL", "x"),
        ([], "failed", "INTERNAL", ""),
    ],
)
async def test_a_run_that_ends_in_an_error_is_a_failed_turn(
    alice: Person, bot: Person, thread: str, parts: list[Json], outcome: str | None, code: object, summary: str
) -> None:
    await bot.append(thread, bot.starts("r"))
    async with watching(alice) as stream:
        await states(stream)
        await says(bot, BEGIN, delta("well"), *parts)
        await bot.append(thread, bot.finishes("r") | ({} if outcome is None else {"outcome": outcome}))
        failed = await until(stream, "turn.failed")
    assert failed == {
        "botId": "helper",
        "sessionId": "t",
        "turnId": "r",
        "code": code,
        "summary": summary,
        "failedAtMs": str(NOW),
    }


@pytest.mark.requirement("WA-77")
async def test_a_run_that_went_on_after_an_error_did_not_fail(alice: Person, bot: Person, thread: str) -> None:
    await bot.append(thread, bot.starts("r"))
    async with watching(alice) as stream:
        await states(stream)
        await says(bot, BEGIN, {"type": "error", "errorText": "again"}, delta("it worked"))
        await bot.append(thread, bot.finishes("r"))
        for event in alice.message("q"):
            await alice.append(thread, event)
        events = await shown(stream, "q")
    assert "turn.failed" not in [event.event for event in events]


@pytest.mark.requirement("WA-60", "WA-77")
async def test_a_failure_of_somebody_else_is_not_the_bots(alice: Person, bot: Person, thread: str) -> None:
    await bot.append(thread, bot.starts("own"))
    async with watching(alice) as stream:
        await states(stream)
        await alice.append(thread, alice.starts("q"))
        await alice.append(thread, alice.part("q", {"type": "error", "errorText": "hers"}))
        await alice.append(thread, alice.finishes("q") | {"outcome": "failed"})
        await says(bot, BEGIN, delta("x"), run="own")
        events = await shown(stream, "own")
    assert "turn.failed" not in [event.event for event in events]


@pytest.mark.requirement("WA-13", "WA-78")
async def test_open_runs_are_what_the_bot_is_doing(alice: Person, bot: Person, thread: str) -> None:
    await bot.append(thread, {**bot.starts("r"), "kind": "agent_work"})
    async with watching(alice) as stream:
        state = await until(stream, "agent.state")
        row = {"agentId": "helper", "sessionId": "t", "runId": "r", "kind": "agent_work", "startedAtMs": str(NOW)}
        assert state == {"botId": "helper", "sessionId": "t", "snapshot": True, "live": [row], "client": []}
        await bot.append(thread, bot.starts("s"))
        assert [row["runId"] for row in (await until(stream, "agent.state"))["live"]] == ["r", "s"]
        await bot.append(thread, bot.finishes("r"))
        await bot.append(thread, bot.finishes("s"))
        while (state := await until(stream, "agent.state"))["live"]:
            pass
        assert state["snapshot"]


@pytest.mark.requirement("WA-16", "WA-78")
async def test_a_new_title_is_told(alice: Person, thread: str) -> None:
    async with watching(alice) as stream:
        await states(stream)
        await alice.patch(f"/v1/threads/{thread}", {"title": "Lunch"})
        changed = await until(stream, "page.title.changed")
    assert changed == {
        "storeId": "threads",
        "documentId": "t",
        "title": "Lunch",
        "changedAtMs": str(NOW),
        "contentChanged": False,
    }


@pytest.mark.requirement("WA-12", "WA-78")
async def test_how_the_bot_is_listed_is_told_when_it_changes(
    world: World, alice: Person, thread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "ROSTER_SECONDS", 0.01)
    async with watching(alice) as stream:
        await states(stream)
        await world.admin.patch("/v1/principals/helper", {"displayName": "The helper"})
        updated = await until(stream, "bot.updated")
        assert (updated["kind"], updated["changedFields"]) == ("updated", ["displayName"])
        assert updated["bot"] == {"principalId": "helper", "kind": "bot", "displayName": "The helper"}
        await alice.delete(f"/v1/threads/{thread}/grants/helper")
        left = await until(stream, "bot.updated")
        assert (left["kind"], left["bot"]) == ("left", None)
        await alice.put(f"/v1/threads/{thread}/grants/helper", {"role": "participant"}, expect=201)
        joined = await until(stream, "bot.updated")
        assert joined["kind"] == "joined"
        assert joined["bot"]["displayName"] == "The helper"


@pytest.mark.requirement("WA-12", "WA-78")
@pytest.mark.parametrize("is_followed", [True, False])
async def test_who_comes_back_is_told_of_a_bot_that_left_that_it_did(
    world: World, alice: Person, bot: Person, thread: str, monkeypatch: pytest.MonkeyPatch, *, is_followed: bool
) -> None:
    monkeypatch.setattr(following, "ROSTER_SECONDS", 0.01)
    await bot.append(thread, bot.starts("r"))
    await says(bot, BEGIN, delta("one"))
    grant = f"/v1/threads/{thread}/grants/helper"
    async with watching(alice) as stream:
        last = (await shown(stream, "r"))[-1].id

    async def told(end: str) -> list[tuple[str, bool]]:
        async with watching(alice, **{"Last-Event-ID": last}) as again:
            await alice.patch(f"/v1/threads/{thread}", {"title": end})
            events = [await again.next()]
            while json.loads(events[-1].data).get("title") != end:
                events.append(await again.next())
        updates = [json.loads(event.data) for event in events if event.event == "bot.updated"]
        return [(update["kind"], update["bot"] is None) for update in updates]

    async with AsyncExitStack() as stack:
        if is_followed:
            await states(await stack.enter_async_context(watching(alice)))
        assert await told("1") == [("listed", False)]
        await alice.delete(grant)
        await world.admin.patch("/v1/principals/helper", {"displayName": "Gone"})
        assert set(await told("2")) == {("left", True)}
        await alice.put(grant, {"role": "participant"}, expect=201)
        again = await told("3")
        assert (again[0], again[-1]) == (("listed", False), ("joined", False))


@pytest.mark.requirement("WA-11", "WA-14", "WA-15", "WA-78")
async def test_what_a_bot_says_by_name_is_passed_on(alice: Person, bot: Person, thread: str) -> None:
    await bot.append(thread, bot.starts("r"))
    async with watching(alice) as stream:
        await states(stream)
        await says(bot, control("computer_actions", actions=[{"type": "CLICK", "x": 1, "y": 2, "agentId": "other"}]))
        actions = (await until(stream, "computer.actions"))["actions"]
        assert [(each["agentId"], each["type"], each["x"], each["atMs"]) for each in actions] == [
            ("helper", "CLICK", 1, str(NOW))
        ]
        await says(bot, control("box_state", state={"runState": "RUNNING"}, imageTag="v1"))
        box = await until(stream, "box.state")
        assert (box["snapshot"], box["state"], box["imageTag"]) == (False, {"runState": "RUNNING"}, "v1")
        await says(bot, control("state_changed", families=["memory"]))
        assert await until(stream, "bot.state.changed") == {
            "botId": "helper",
            "families": ["memory"],
            "changedAtMs": str(NOW),
        }
        await says(bot, control("box_state", state=5), control("computer_actions", actions=7), BEGIN, delta("x"))
        events = await shown(stream, "r")
    assert [event.event for event in events] == [
        "message"
    ]  # what it said the wrong way is nothing, and none of it is a row
    async with watching(alice) as stream:
        box = await until(stream, "box.state")
        assert (box["snapshot"], box["state"]) == (True, {"runState": "RUNNING"})


@pytest.mark.requirement("WA-76", "WA-78")
async def test_half_a_character_in_what_a_bot_says_about_its_session_changes_nothing(
    alice: Person, bot: Person, thread: str
) -> None:
    half = "\ud83d"
    await bot.append(thread, bot.starts("r"))
    await says(bot, BEGIN, delta("old"))
    async with watching(alice) as stream:
        await until(stream, "message")
        await says(bot, control("box_state", state={"title": half}), control("state_changed", families=[half]))
        assert (await until(stream, "box.state"))["state"] == {"title": half}
        assert (await until(stream, "bot.state.changed"))["families"] == [half]
        await says(bot, control("computer_actions", actions=[{"type": "TYPE", "text": half}]))
        assert [each["type"] for each in (await until(stream, "computer.actions"))["actions"]] == ["TYPE"]
        await says(bot, control("message_deleted", entryId="r", why=half))
        assert (await until(stream, "message.deleted"))["entryId"] == "r"
        await says(bot, control("session_cleared", why=half))
        assert (await until(stream, "reset"))["generation"] == 1


@pytest.mark.requirement("WA-81")
async def test_all_fifteen_types_but_one_come_from_a_real_thread(
    alice: Person, bot: Person, thread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "ROSTER_SECONDS", 0.01)
    seen: set[str] = set()
    await bot.append(thread, bot.starts("r"))
    async with watching(alice) as stream:
        await states(stream)
        await says(bot, BEGIN, delta("x"), control("box_state", state={}), control("state_changed", families=["f"]))
        await says(bot, control("computer_actions", actions=[{}]))
        while not {"message", "box.state", "bot.state.changed", "computer.actions"} <= seen:
            seen.add((await stream.next()).event)
        await says(bot, control("message_deleted", entryId="r"))
        await until(stream, "message.deleted")
        await alice.patch(f"/v1/threads/{thread}", {"title": "T"})
        await alice.delete(f"/v1/threads/{thread}/grants/helper")
        await alice.put(f"/v1/threads/{thread}/grants/helper", {"role": "participant"}, expect=201)
        await bot.append(thread, bot.starts("s"))
        await says(bot, control("session_cleared"), {"type": "error", "errorText": "e"}, run="s")
        await bot.append(thread, bot.finishes("s"))
        while not {"turn.failed", "reset", "bot.updated", "page.title.changed"} <= seen:
            seen.add((await stream.next()).event)
    async with watching(alice, f"sessionId=t&resumeFrom={ahead()}") as stream:
        seen |= {(await stream.next()).event for _ in range(2)}
    async with a_world(streams={"keep_alive": "10ms"}) as other:
        owner = await other.user("alice", role="admin")
        await other.bot("helper", owner=owner)
        await owner.thread(threadId="t")
        async with watching(owner) as stream:
            await until(stream, "heartbeat")
    assert seen >= {"resync-required", "connected"}


def ahead() -> str:
    return WatchCursor(bot_id="helper", session_id="t", generation=1, after_updated_seq=counter_of(1_000)).encode()


# --- coming back ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("WA-09", "WA-79")
async def test_a_cursor_ahead_of_the_thread_cannot_be_resumed_from(alice: Person, thread: str) -> None:
    cursor = WatchCursor(bot_id="helper", session_id=thread, generation=0, after_updated_seq=counter_of(1_000))
    async with watching(alice, **{"Last-Event-ID": cursor.encode()}) as stream:
        assert [(await stream.next()).event for _ in range(3)] == ["connected", "resync-required", "stream.closed"]
        with pytest.raises(StopAsyncIteration):
            await stream.next()


@pytest.mark.requirement("WA-32", "WA-80", "WA-83")
@pytest.mark.parametrize("way", ["header", "query", "both", "empty header"])
async def test_a_page_goes_on_where_it_was(alice: Person, bot: Person, thread: str, way: str) -> None:
    await bot.append(thread, bot.starts("r"))
    await says(bot, BEGIN, delta("one"))
    async with watching(alice) as stream:
        events = await shown(stream, "r")
    await says(bot, delta(" two"))
    old, last = events[2].id, events[-1].id
    query = {"header": "", "query": f"&resumeFrom={last}", "both": f"&resumeFrom={old}"}.get(way, f"&resumeFrom={last}")
    headers = {
        "header": {"Last-Event-ID": last},
        "both": {"Last-Event-ID": last},
        "empty header": {"Last-Event-ID": ""},
    }
    async with watching(alice, f"sessionId=t{query}", **headers.get(way, {})) as stream:
        assert [(await stream.next()).event for _ in range(3)] == ["connected", "agent.state", "bot.updated"]
        message = json.loads((await stream.next()).data)
    assert (message["text"], message["replay"]) == ("one two", True)


@pytest.mark.requirement("WA-77", "WA-80")
async def test_a_failure_that_was_missed_is_told_to_who_comes_back_and_to_nobody_else(
    alice: Person, bot: Person, thread: str
) -> None:
    await bot.append(thread, bot.starts("r"))
    await says(bot, BEGIN, delta("one"))
    async with watching(alice) as stream:
        last = (await shown(stream, "r"))[-1].id
    await says(bot, {"type": "error", "errorText": "missed"})
    await bot.append(thread, bot.finishes("r"))
    async with watching(alice, f"sessionId=t&resumeFrom={last}") as stream:
        assert (await until(stream, "turn.failed"))["summary"] == "missed"
    async with watching(alice) as stream:
        events = await shown(stream, "r")
    assert "turn.failed" not in [event.event for event in events]


# --- the door -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("PR-6-31", "WA-83")
async def test_it_needs_the_right_to_follow_the_thread(world: World, alice: Person, thread: str) -> None:
    carol = await world.user("carol")
    await carol.get(f"/v1/bots/helper/events?sessionId={thread}", expect=404)
    await alice.put(f"/v1/threads/{thread}/grants/carol", {"role": "observer"}, expect=201)
    async with watching(carol) as stream:
        await states(stream)
        await alice.delete(f"/v1/threads/{thread}/grants/carol")
        closed = await stream.next()
        while closed.event != "error":
            closed = await stream.next()
        assert json.loads(closed.data) == {"code": "not_found"}
        with pytest.raises(StopAsyncIteration):
            await stream.next()


@pytest.mark.requirement("WA-84")
@pytest.mark.parametrize("name", ["alice", "nobody"])
async def test_who_is_no_bot_is_not_found(alice: Person, thread: str, name: str) -> None:
    answer = await alice.get(f"/v1/bots/{name}/events?sessionId={thread}", expect=404)
    assert answer.json()["code"] == "not_found"


@pytest.mark.requirement("WA-82")
@pytest.mark.parametrize("query", ["", "sessionId="])
async def test_all_threads_at_once_are_refused_in_so_many_words(alice: Person, thread: str, query: str) -> None:
    del thread
    answer = await alice.get(f"/v1/bots/helper/events?{query}", expect=400)
    assert answer.json()["message"] == "`sessionId` must name a thread: a bot is watched on one at a time."


@pytest.mark.requirement("WA-63", "WA-84")
@pytest.mark.parametrize("cursor", ["nonsense", "other bot", "other thread"])
async def test_a_bad_cursor_is_an_invalid_request_with_its_code(alice: Person, thread: str, cursor: str) -> None:
    bot, session = ("other", thread) if cursor == "other bot" else ("helper", "other")
    text = (
        "x"
        if cursor == "nonsense"
        else WatchCursor(bot_id=bot, session_id=session, generation=0, after_updated_seq=1).encode()
    )
    answer = await alice.get(f"/v1/bots/helper/events?sessionId={thread}", headers={"Last-Event-ID": text}, expect=400)
    assert answer.json()["code"] == "invalid_request"
    assert answer.json()["details"] == {"watchCode": "invalid_cursor"}


@pytest.mark.requirement("WA-29")
async def test_the_stream_is_neither_cached_nor_buffered(alice: Person, thread: str) -> None:
    async with alice.http.stream("GET", f"/v1/bots/helper/events?sessionId={thread}") as answer:
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert answer.headers["cache-control"] == "no-cache, no-transform"
        assert answer.headers["x-accel-buffering"] == "no"


@pytest.mark.requirement("WA-03", "WA-28")
async def test_a_quiet_stream_gets_a_comment_and_a_heartbeat() -> None:
    async with a_world(streams={"keep_alive": "10ms"}) as world:
        alice = await world.user("alice", role="admin")
        await world.bot("helper", owner=alice)
        await alice.thread(threadId="t")
        async with watching(alice) as stream:
            beat = await until(stream, "heartbeat")
            assert beat == {"serverTimeMs": str(NOW)}
            assert b": keepalive\n\nevent: heartbeat\n" in stream.bytes


@pytest.mark.requirement("WA-61")
async def test_deleting_the_thread_ends_its_watches(alice: Person, thread: str) -> None:
    async with watching(alice) as stream:
        await states(stream)
        await alice.delete(f"/v1/threads/{thread}")
        event = await stream.next()
        while event.event == "entry":
            event = await stream.next()
        assert (event.event, json.loads(event.data)) == ("error", {"code": "not_found"})


@pytest.mark.requirement("WA-61")
async def test_a_server_that_stops_says_that_it_is_worth_coming_back(world: World, alice: Person, thread: str) -> None:
    del thread
    async with watching(alice) as stream:
        await states(stream)
        await world.app.drain()
        event = await stream.next()
        while event.event == "entry":
            event = await stream.next()
        assert (event.event, json.loads(event.data)) == ("error", {"code": "unavailable"})


async def figures(world: World) -> bytes:
    return (await world.nobody.get("/metrics")).content


@pytest.mark.requirement("WA-67")
async def test_when_the_last_watcher_goes_nothing_is_left(world: World, alice: Person, thread: str) -> None:
    del thread
    tails = Tails(world)
    async with watching(alice) as stream:
        await states(stream)
        assert b"bubble_bot_watchers 1.0" in await figures(world)
    await tails.are(0)
    assert b"bubble_bot_watchers 0.0" in await figures(world)
    assert world.app.services.watches.statistics().sessions == 0
