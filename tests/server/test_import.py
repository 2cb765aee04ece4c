"""Importing a whole thread."""

from __future__ import annotations

import json

import pytest

from tests.server.world import Person, World, a_world

pytestmark = pytest.mark.anyio


def at(seq: int, event: dict[str, object], *, time: str = "2020-01-02T03:04:05.678Z") -> dict[str, object]:
    return {"seq": seq, "createdAt": time, **event}


RUN = {"principalId": "alice", "runId": "r"}
TOOL = {**RUN, "toolCallId": "c"}
NINE = [
    at(1, {"type": "participant_joined", "byPrincipalId": "alice", "principalId": "alice"}),
    at(2, {"type": "participant_joined", "byPrincipalId": "alice", "principalId": "gone"}),
    at(3, {"type": "thread_title_updated", "byPrincipalId": "alice", "title": "Old times"}),
    at(4, {"type": "run_started", **RUN, "kind": "agent_work", "snapshotSeq": 3}),
    at(5, {"type": "message_part", **RUN, "part": {"type": "x"}, "version": "ai-sdk-v6"}),
    at(6, {"type": "tool_call_approval", **TOOL, "principalId": "gone", "approved": False, "reason": "no"}),
    at(7, {"type": "tool_call_result", **TOOL, "input": None, "output": [1]}),
    at(8, {"type": "run_interrupt_requested", **RUN, "principalId": "gone"}),
    at(9, {"type": "run_finished", **RUN, "outcome": "interrupted"}),
    at(10, {"type": "participant_left", "byPrincipalId": "gone", "principalId": "gone"}),
]


@pytest.mark.requirement("PR-6-29", "PR-1-01")
async def test_all_nine_shapes_keep_their_seq_and_time(world: World, alice: Person) -> None:
    body = {"events": NINE, "ownerPrincipalId": "alice", "metadata": {"from": "elsewhere"}}
    thread = (await world.admin.post("/v1/threads/old/import", body)).json()
    assert (thread["headSeq"], thread["title"], thread["metadata"]) == (10, "Old times", {"from": "elsewhere"})
    assert (await alice.get("/v1/threads/old/events")).json()["events"] == NINE
    assert (await alice.get("/v1/threads/old")).json()["role"] == "owner"
    assert [run["state"] for run in (await alice.get("/v1/threads/old/runs")).json()["runs"]] == ["finished"]
    await alice.append("old", alice.starts("r"), expect=409)
    assert (await alice.append("old", alice.starts("new")))["seq"] == 11


async def test_an_import_may_leave_everybody_out_but_its_owner(world: World, alice: Person) -> None:
    events = [*NINE, at(11, {"type": "participant_joined", "byPrincipalId": "gone", "principalId": "alice"})]
    await world.admin.post("/v1/threads/kept/import", {"events": events})
    await alice.get("/v1/threads/kept")
    await world.admin.post("/v1/threads/quiet/import", {"events": events, "keepParticipants": False})
    await alice.get("/v1/threads/quiet", expect=404)


@pytest.mark.requirement("PR-6-28")
async def test_an_import_is_for_admins_and_for_a_thread_that_does_not_exist(world: World, alice: Person) -> None:
    await alice.post("/v1/threads/old/import", {"events": NINE}, expect=403)
    await world.admin.post("/v1/threads/old/import", {"events": NINE})
    await world.admin.post("/v1/threads/old/import", {"events": NINE}, expect=409)
    await world.admin.delete("/v1/threads/old")
    await world.admin.post("/v1/threads/old/import", {"events": NINE}, expect=409)


@pytest.mark.requirement("PR-6-30")
@pytest.mark.parametrize(
    ("events", "where"),
    [
        (NINE[1:], "events[0]"),
        ([*NINE[:3], *NINE[4:]], "events[3]"),
        ([*NINE[:3], NINE[2]], "events[3]"),
        ([NINE[0], at(2, {"type": "run_started", **RUN}, time="2019-01-01T00:00:00.000Z")], "events[1]"),
        ([NINE[0], at(2, {"type": "run_started", **RUN}, time="yesterday")], "events[1]"),
        ([NINE[0], {"seq": 2, "type": "run_started", **RUN}], "events[1]"),
        ([NINE[0], at(2, {"type": "nonsense"})], "events[1]"),
        ([NINE[0], at(2, {"type": "run_started", **RUN, "x": 1})], "events[1]"),
        ([NINE[0], at(2, {"type": "run_finished", **RUN})], "events[1]"),
        ([NINE[0], 7], "events[1]"),
    ],
)
async def test_an_import_that_does_not_fit_names_the_event_and_leaves_nothing_behind(
    world: World, events: list[object], where: str
) -> None:
    refusal = await world.admin.call("POST", "/v1/threads/old/import", json={"events": events}, expect=None)
    assert refusal.status_code in (400, 409), refusal.text
    assert where in refusal.json()["message"]
    await world.admin.get("/v1/threads/old", expect=404)
    await world.admin.post("/v1/threads", {"threadId": "old"})


async def test_payloads_are_imported_to_the_byte(world: World) -> None:
    part = b'{"type":"x", "s":"\\ud83d", "n":1e400}'
    started = json.dumps(at(1, {"type": "run_started", **RUN})).encode()
    event = b'{"createdAt":"2020-01-02T03:04:05.678Z","seq":2,"type":"message_part","principalId":"alice","runId":"r",'
    body = b'{"events":[%b, %b"part":%b,"version":"ai-sdk-v6"}]}' % (started, event, part)
    await world.admin.call("POST", "/v1/threads/old/import", content=body, expect=201)
    assert part in (await world.admin.get("/v1/threads/old/events")).content


async def test_a_large_body_is_taken_from_admins_only() -> None:
    async with a_world(limits={"body_bytes": 4_096}) as world:
        alice = await world.user("alice")
        large = {"events": NINE, "metadata": {"x": "y" * 8_000}}
        await alice.post("/v1/threads/old/import", large, expect=413)
        await world.admin.post("/v1/threads/old/import", large)


@pytest.mark.parametrize("thread_id", ["system:x", "a%20b"])
async def test_an_import_needs_an_id_that_can_be_one(world: World, thread_id: str) -> None:
    await world.admin.post(f"/v1/threads/{thread_id}/import", {"events": NINE}, expect=400)
