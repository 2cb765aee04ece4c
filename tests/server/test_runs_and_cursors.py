"""Runs and consumer cursors over HTTP, and the runs that a crash left open."""

from __future__ import annotations

import asyncio

import pytest

from bubble.server.background import finish_lost_runs
from tests.server.world import Person, Tails, World, a_world

pytestmark = pytest.mark.anyio

HOUR_MS = 3_600_000


@pytest.fixture
async def thread(alice: Person, bob: Person) -> str:
    """Alice's thread, on which Bob takes part."""
    return await alice.thread(participants=[{"principalId": bob.principal_id}])


async def runs(person: Person, thread_id: str, query: str = "") -> list[str]:
    found = (await person.get(f"/v1/threads/{thread_id}/runs{query}")).json()["runs"]
    return [run["runId"] for run in found]


@pytest.mark.requirement("PR-6-33", "PR-1-43")
async def test_runs_are_listed_by_state_and_principal(alice: Person, bob: Person, thread: str) -> None:
    await alice.append(thread, {**alice.starts("a1"), "kind": "agent_work", "snapshotSeq": 2})
    await bob.append(thread, bob.starts("b1"))
    await alice.append(thread, alice.starts("a2"))
    await alice.append(thread, {**alice.finishes("a1"), "outcome": "failed"})
    assert await runs(alice, thread) == ["a1", "b1", "a2"]
    assert await runs(alice, thread, "?state=open") == ["b1", "a2"]
    assert await runs(alice, thread, "?state=finished") == ["a1"]
    assert await runs(alice, thread, "?principalId=alice") == ["a1", "a2"]
    assert await runs(alice, thread, "?principalId=alice&state=open") == ["a2"]
    [run] = (await alice.get(f"/v1/threads/{thread}/runs?state=finished")).json()["runs"]
    assert run == {
        "threadId": thread,
        "runId": "a1",
        "principalId": "alice",
        "state": "finished",
        "kind": "agent_work",
        "snapshotSeq": 2,
        "startedSeq": 3,
        "startedAt": "2026-05-06T12:34:56.789Z",
        "lastSeq": 6,
        "lastEventAt": "2026-05-06T12:34:56.789Z",
        "finishedSeq": 6,
        "finishedAt": "2026-05-06T12:34:56.789Z",
        "outcome": "failed",
    }


async def test_runs_are_listed_from_where_they_began(alice: Person, thread: str) -> None:
    for number in range(4):
        await alice.append(thread, alice.starts(f"r{number}"))
    (second,) = (await alice.get(f"/v1/threads/{thread}/runs?limit=2")).json()["runs"][1:]
    assert await runs(alice, thread, f"?fromSeq={second['startedSeq']}") == ["r1", "r2", "r3"]
    assert await runs(alice, thread, f"?fromSeq={second['startedSeq'] + 1}&limit=1") == ["r2"]
    page = (await alice.get(f"/v1/threads/{thread}/runs?fromSeq={second['startedSeq']}&limit=2")).json()
    rest = await runs(alice, thread, f"?fromSeq={second['startedSeq']}&after={page['nextAfter']}")
    assert rest == ["r3"]
    for wrong in ("0", "-1", "x", str(2**63)):
        await alice.get(f"/v1/threads/{thread}/runs?fromSeq={wrong}", expect=400)


@pytest.mark.requirement("PR-6-33")
async def test_runs_are_listed_page_by_page(alice: Person, thread: str) -> None:
    for number in range(5):
        await alice.append(thread, alice.starts(f"r{number}"))
    found: list[str] = []
    after = ""
    while True:
        page = (await alice.get(f"/v1/threads/{thread}/runs?limit=2{after}")).json()
        found += [run["runId"] for run in page["runs"]]
        if page["nextAfter"] is None:
            break
        after = f"&after={page['nextAfter']}"
    assert found == [f"r{number}" for number in range(5)]


@pytest.mark.parametrize("query", ["state=running", "principalId=a%20b", "after=zzz", "limit=0", "q=x"])
async def test_a_list_of_runs_that_cannot_be_is_refused(alice: Person, thread: str, query: str) -> None:
    await alice.get(f"/v1/threads/{thread}/runs?{query}", expect=400)


@pytest.mark.requirement("PR-6-34")
async def test_runs_are_for_those_who_may_subscribe(alice: Person, bob: Person) -> None:
    thread = await alice.thread(joinPolicy="open")
    await bob.get(f"/v1/threads/{thread}")
    await bob.get(f"/v1/threads/{thread}/runs", expect=404)
    await bob.put(f"/v1/threads/{thread}/grants/bob", {"role": "observer"}, expect=201)
    await bob.get(f"/v1/threads/{thread}/runs")


@pytest.mark.requirement("PR-8-06", "PR-1-32", "PR-1-33", "PR-1-34", "PR-1-35", "PR-3-08")
async def test_a_run_rule_that_is_broken_tells_the_run_and_its_state(alice: Person, thread: str) -> None:
    async def details(event: object) -> object:
        return (await alice.append(thread, event, expect=409))["details"]

    assert await details(alice.says("r")) == {"runId": "r", "state": "unknown"}
    assert await details(alice.finishes("r")) == {"runId": "r", "state": "unknown"}
    await alice.append(thread, alice.starts("r"))
    assert await details(alice.starts("r")) == {"runId": "r", "state": "open"}
    await alice.append(thread, alice.finishes("r"))
    for event in (alice.says("r"), alice.starts("r"), alice.finishes("r")):
        assert await details(event) == {"runId": "r", "state": "finished"}


@pytest.mark.requirement("PR-8-04", "PR-1-41", "PR-8-07")
async def test_a_second_decision_is_told_the_first(world: World, alice: Person, bob: Person, thread: str) -> None:
    bot = await world.bot("helper", owner=alice)
    await alice.put(f"/v1/threads/{thread}/grants/helper", {"role": "participant"}, expect=201)
    await bot.append(thread, bot.starts("r"))
    decision = {"type": "tool_call_approval", "runId": "r", "toolCallId": "c"}
    first = await bob.append(thread, {**decision, "principalId": "bob", "approved": False, "reason": "no"})
    refusal = await alice.append(thread, {**decision, "principalId": "alice", "approved": True}, expect=409)
    assert refusal["details"] == {"approved": False, "principalId": "bob", "seq": first["seq"]}


@pytest.mark.requirement("PR-5-19", "PR-5-20")
async def test_decisions_are_for_users_on_runs_of_others(world: World, alice: Person, bob: Person, thread: str) -> None:
    bot = await world.bot("helper", owner=alice)
    await alice.put(f"/v1/threads/{thread}/grants/helper", {"role": "participant"}, expect=201)
    await alice.append(thread, alice.starts("r"))
    decision = {"type": "tool_call_approval", "runId": "r", "toolCallId": "c", "approved": True}
    await bot.append(thread, {**decision, "principalId": "helper"}, expect=403)
    await alice.append(thread, {**decision, "principalId": "alice"}, expect=403)
    await bob.append(thread, {**decision, "principalId": "bob"})


@pytest.mark.requirement("PR-1-36", "PR-1-37", "PR-1-44")
async def test_a_run_is_finished_by_its_starter_or_an_owner(
    world: World, alice: Person, bob: Person, thread: str
) -> None:
    carol = await world.user("carol")
    await alice.put(f"/v1/threads/{thread}/grants/carol", {"role": "participant"}, expect=201)
    await bob.append(thread, bob.starts("r1"))
    await bob.append(thread, bob.starts("r2"))
    await carol.append(thread, carol.finishes("r1"), expect=403)
    await alice.append(thread, alice.finishes("r1"))
    for run in await runs(bob, thread, "?state=open&principalId=bob"):
        await bob.append(thread, {**bob.finishes(run), "outcome": "interrupted"})
    assert await runs(bob, thread, "?state=open") == []


@pytest.mark.requirement("PR-1-30")
async def test_the_run_rules_can_be_switched_off() -> None:
    async with a_world(run_integrity="off") as world:
        thread = await world.admin.thread()
        await world.admin.append(thread, world.admin.says("never started"))


@pytest.mark.parametrize("integrity", ["strict", "off"])
async def test_nobody_decides_on_their_own_run_whatever_is_enforced_of_runs(integrity: str) -> None:
    async with a_world(run_integrity=integrity) as world:
        bob = await world.user("bob")
        thread = await world.admin.thread(participants=[{"principalId": "bob"}])
        decision = {"type": "tool_call_approval", "runId": "r", "toolCallId": "c", "approved": True}
        await bob.append(thread, bob.starts("r"))
        await bob.append(thread, {**decision, "principalId": "bob"}, expect=403)
        await world.admin.append(thread, {**decision, "principalId": "admin"})


@pytest.mark.parametrize("name", ["system:bubble", "system:x"])
async def test_nobody_writes_as_the_server_not_even_a_bridge(world: World, name: str) -> None:
    thread = await world.admin.thread()
    await world.admin.append(thread, {**world.admin.starts("r"), "principalId": "somebody"})
    refused = await world.admin.append(thread, {**world.admin.finishes("r"), "principalId": name}, expect=403)
    assert refused["message"] == f'Principal "admin" cannot write as "{name}".'


# --- lost runs --------------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("PR-1-45", "PR-1-48")
async def test_a_run_without_a_sign_of_life_is_finished_once_as_lost(
    world: World, alice: Person, bob: Person, thread: str
) -> None:
    await alice.append(thread, alice.starts("old"))
    world.clock.pass_ms(HOUR_MS - 1)
    await bob.append(thread, bob.starts("new"))
    await finish_lost_runs(world.app.services)
    assert await runs(alice, thread, "?state=open") == ["old", "new"]
    world.clock.pass_ms(2)
    for _ in range(2):
        await finish_lost_runs(world.app.services)
    assert await runs(alice, thread, "?state=open") == ["new"]
    events = (await alice.get(f"/v1/threads/{thread}/events?fromSeq=3")).json()["events"]
    finishes = [event for event in events if event["type"] == "run_finished"]
    assert [(event["principalId"], event["runId"], event["outcome"]) for event in finishes] == [
        ("system:bubble", "old", "lost")
    ]


@pytest.mark.requirement("PR-1-46")
async def test_a_leap_of_the_clock_loses_no_run_of_who_is_connected(
    world: World, alice: Person, bob: Person, thread: str
) -> None:
    await alice.append(thread, alice.starts("hers"))
    await bob.append(thread, bob.starts("his"))
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        following = group.create_task(alice.get(f"/v1/threads/{thread}/events/stream"))
        await Tails(world).are(1)
        world.clock.pass_ms(2 * HOUR_MS)
        await finish_lost_runs(world.app.services)
        following.cancel()
    assert await runs(alice, thread, "?state=open") == ["hers"]


def test_lost_after_is_an_hour_by_default() -> None:
    from bubble.server.settings import Settings

    assert Settings().runs.lost_after == 3_600


@pytest.mark.requirement("PR-1-46")
async def test_nothing_is_lost_where_that_is_switched_off() -> None:
    async with a_world(runs={"lost_after": 0}) as off, a_world() as on:
        assert [len(world.app.background) for world in (off, on)] == [2, 3]


# --- cursors ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("PR-6-35", "PR-6-36", "PR-6-37")
async def test_a_cursor_is_ones_own_moves_forward_and_not_beyond_the_head(
    alice: Person, bob: Person, thread: str
) -> None:
    path = f"/v1/threads/{thread}/cursor"
    assert (await bob.get(path)).json() == {"seq": 0}
    assert (await bob.put(path, {"seq": 2})).json() == {"seq": 2}
    assert (await bob.put(path, {"seq": 1})).json() == {"seq": 2}
    assert (await bob.get(path)).json() == {"seq": 2}
    assert (await alice.get(path)).json() == {"seq": 0}
    assert (await bob.put(path, {"seq": 3}, expect=400)).json()["code"] == "invalid_request"
    assert (await bob.get(path)).json() == {"seq": 2}


@pytest.mark.parametrize("body", [{}, {"seq": -1}, {"seq": 1.5}, {"seq": "1"}, {"seq": 2**53}, {"seq": 1, "x": 1}])
async def test_a_cursor_that_is_no_seq_is_refused(alice: Person, thread: str, body: object) -> None:
    await alice.put(f"/v1/threads/{thread}/cursor", body, expect=400)


async def test_cursors_are_for_those_who_have_a_role(alice: Person, bob: Person) -> None:
    thread = await alice.thread(joinPolicy="open")
    await bob.get(f"/v1/threads/{thread}/cursor", expect=403)
    await bob.put(f"/v1/threads/{thread}/cursor", {"seq": 1}, expect=403)
