"""Every operation on a thread, for every role: the table of the protocol's section 5 row by row, against the running server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest

from bubble.server.routes import OPERATIONS
from tests.server.world import Person, World

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.requirement(
        "PR-5-01", "PR-5-03", "PR-5-04", "PR-5-05", "PR-5-07", "PR-5-09", "PR-5-10", "PR-5-11", "PR-3-06", "PR-3-07"
    ),
]

OBSERVER = {"events.subscribe", "thread.read", "cursor.write", "grants.leave"}
PARTICIPANT = OBSERVER | {
    "events.run_started",
    "events.run_finished",
    "events.message_part",
    "events.tool_call_approval",
    "events.tool_call_result",
    "events.run_interrupt_requested",
}
OWNER = PARTICIPANT | {"thread.update", "thread.delete", "grants.manage", "runs.finish_any"}

# Who is asking, and what they may do. A stranger on an open thread may read it and join.
ROLES: dict[str, set[str]] = {
    "stranger": set(),
    "stranger on an open thread": {"thread.read", "grants.join"},
    "observer": OBSERVER,
    "participant": PARTICIPANT,
    "owner": OWNER,
    "admin": OWNER | {"grants.join"},
}
HIDDEN = {"events.subscribe", "thread.read"}


@dataclass(frozen=True, kw_only=True)
class Case:
    """One request that needs `capability`. `status` is the answer where it is there."""

    operation: str
    capability: str
    method: str
    path: str
    status: int
    body: Callable[[str], object] = lambda _: None


def event(kind: str, **fields: object) -> Callable[[str], object]:
    return lambda caller: {"type": kind, "principalId": caller, "runId": "open", **fields}


TOOL = {"toolCallId": "c"}
CASES = [
    Case(operation="getThread", capability="thread.read", method="GET", path="", status=200),
    Case(operation="updateThread", capability="thread.update", method="PATCH", path="", status=200, body=lambda _: {}),
    Case(operation="deleteThread", capability="thread.delete", method="DELETE", path="", status=204),
    Case(operation="getEvents", capability="events.subscribe", method="GET", path="/events", status=200),
    Case(
        operation="getEvents",
        capability="events.subscribe",
        method="GET",
        path="/events?fromSeq=99&waitMs=1",
        status=200,
    ),
    Case(operation="streamEvents", capability="events.subscribe", method="GET", path="/events/stream", status=200),
    Case(operation="getMessages", capability="events.subscribe", method="GET", path="/messages", status=200),
    Case(operation="streamMessages", capability="events.subscribe", method="GET", path="/messages/stream", status=200),
    Case(operation="listRuns", capability="events.subscribe", method="GET", path="/runs", status=200),
    Case(operation="getCursor", capability="cursor.write", method="GET", path="/cursor", status=200),
    Case(
        operation="advanceCursor",
        capability="cursor.write",
        method="PUT",
        path="/cursor",
        status=200,
        body=lambda _: {"seq": 1},
    ),
    Case(operation="listGrants", capability="thread.read", method="GET", path="/grants", status=200),
    Case(
        operation="putGrant",
        capability="grants.manage",
        method="PUT",
        path="/grants/other",
        status=201,
        body=lambda _: {"role": "observer"},
    ),
    Case(operation="removeGrant", capability="grants.manage", method="DELETE", path="/grants/guest", status=204),
    Case(
        operation="appendEvents",
        capability="events.message_part",
        method="POST",
        path="/events:batch",
        status=201,
        body=lambda caller: {
            "events": [event("message_part", part={"type": "x"}, version="ai-sdk-v6")(caller)],
        },
    ),
    *(
        Case(operation="appendEvent", capability=f"events.{kind}", method="POST", path="/events", status=201, body=body)
        for kind, body in {
            "run_started": lambda caller: {"type": "run_started", "principalId": caller, "runId": "new"},
            "message_part": event("message_part", part={"type": "x"}, version="ai-sdk-v6"),
            "tool_call_approval": event("tool_call_approval", approved=True, **TOOL),
            "tool_call_result": event("tool_call_result", input=1, output=2, **TOOL),
            "run_interrupt_requested": event("run_interrupt_requested"),
        }.items()
    ),
    Case(
        operation="appendEvent",
        capability="runs.finish_any",
        method="POST",
        path="/events",
        status=201,
        body=event("run_finished"),
    ),
]


def expected(capabilities: set[str], case: Case) -> int:
    """The status that the rules of section 5 give."""
    if case.capability in capabilities:
        return case.status
    return 404 if not capabilities or case.capability in HIDDEN else 403


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A thread with an open run of its founder, and whoever is to call."""

    thread_id: str
    caller: Person


@pytest.fixture
def stage(world: World) -> Callable[[str], Awaitable[Stage]]:
    """Sets up the thread and a caller in a role."""

    async def set_up(role: str) -> Stage:
        founder = await world.user("founder")
        await world.register("other")
        await world.register("guest")
        participants = [{"principalId": "guest", "role": "observer"}]
        caller = world.admin if role == "admin" else await world.user("caller")
        if role in ("observer", "participant", "owner"):
            participants.append({"principalId": "caller", "role": role})
        thread_id = await founder.thread(joinPolicy="open" if "open" in role else "invite", participants=participants)
        await founder.append(thread_id, founder.starts("open"))
        return Stage(thread_id=thread_id, caller=caller)

    return set_up


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.method} {case.path} {case.capability}")
async def test_a_role_may_do_what_the_table_says_and_nothing_else(
    stage: Callable[[str], Awaitable[Stage]], case: Case, role: str
) -> None:
    at = await stage(role)
    status = expected(ROLES[role], case)
    path = f"/v1/threads/{at.thread_id}{case.path}"
    body = case.body(at.caller.principal_id)
    if case.operation in ("streamEvents", "streamMessages"):
        async with at.caller.http.stream(case.method, path) as answer:
            assert answer.status_code == status
        return
    answer = await at.caller.call(case.method, path, json=body, expect=status)
    if status == 403:
        # Finishing another's run needs to be able to finish one at all.
        needed = {"runs.finish_any": ["events.run_finished"]}.get(case.capability, [])
        lacking = next(each for each in (*needed, case.capability) if each not in ROLES[role])
        assert answer.json()["message"] == (
            f'Principal "{at.caller.principal_id}" lacks "{lacking}" on thread "{at.thread_id}".'
        )


@pytest.mark.parametrize("role", ["observer", "participant", "owner"])
async def test_everybody_with_a_role_may_leave(stage: Callable[[str], Awaitable[Stage]], role: str) -> None:
    at = await stage(role)
    await at.caller.delete(f"/v1/threads/{at.thread_id}/grants/caller")


def test_every_operation_on_a_thread_is_in_the_matrix() -> None:
    on_threads = {
        operation.name
        for operation in OPERATIONS
        if "{threadId}" in operation.path and operation.name != "importThread"
    }
    assert {case.operation for case in CASES} == on_threads
