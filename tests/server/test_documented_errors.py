"""Every error that the OpenAPI document tells of an operation can really be had from it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import httpx2
import pytest

from bubble.protocol.errors import BubbleErrorCode
from bubble.server.openapi import errors_of
from bubble.server.operations import Operation
from bubble.server.routes import OPERATIONS
from bubble.server.routing import make_router
from tests.server.world import ADMIN_TOKEN, Person, World, a_world

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("PR-3-01", "PR-3-03", "PR-6-05")]

ALL = list(OPERATIONS)
STATUS: dict[BubbleErrorCode, int] = {
    "invalid_request": 400,
    "unauthenticated": 401,
    "forbidden": 403,
    "not_found": 404,
    "conflict": 409,
    "payload_too_large": 413,
    "rate_limited": 429,
    "internal": 500,
    "unavailable": 503,
}


def named(operations: list[Operation]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("operation", operations, ids=lambda operation: operation.name)


def path_of(operation: Operation) -> str:
    """A path that the operation takes."""
    path = operation.path
    for name in operation.parameters:
        path = path.replace(f"{{{name}}}", "docs.js" if name == "file" else "x")
    return path


async def refused(
    client: httpx2.AsyncClient, operation: Operation, code: BubbleErrorCode, *, query: str = "", content: bytes = b""
) -> httpx2.Response:
    """The operation's answer, which must be that error."""
    answer = await client.request(operation.method, path_of(operation) + query, content=content)
    assert (answer.status_code, answer.json()["code"]) == (STATUS[code], code), answer.text
    assert code in errors_of(operation)
    return answer


# --- errors that come to every operation of a kind --------------------------------------------------------------------------------


@named(ALL)
async def test_invalid_request(world: World, operation: Operation) -> None:
    await refused(world.admin.http, operation, "invalid_request", query="?no-such-parameter=1")


@named([operation for operation in ALL if operation.access == "bearer"])
async def test_unauthenticated(world: World, operation: Operation) -> None:
    answer = await refused(world.nobody, operation, "unauthenticated")
    assert answer.headers["www-authenticate"]


@named([operation for operation in ALL if operation.access == "bearer"])
async def test_rate_limited(operation: Operation) -> None:
    async with a_world(rates={"requests_per_second": 0.001, "requests_burst": 1}) as world:
        await world.admin.get("/v1/whoami")
        answer = await refused(world.admin.http, operation, "rate_limited")
        assert int(answer.headers["retry-after"]) >= 1


@named([operation for operation in ALL if operation.access == "bearer" and operation.method != "GET"])
async def test_forbidden_to_other_sites(world: World, operation: Operation) -> None:
    opened = await world.nobody.post("/v1/sessions", json={"token": ADMIN_TOKEN})
    world.nobody.cookies.clear()
    cookie = opened.headers["set-cookie"].partition(";")[0]
    await refused(world.client(Cookie=cookie, Origin="http://evil.example"), operation, "forbidden")


@named([operation for operation in ALL if operation.takes_body])
async def test_payload_too_large(operation: Operation) -> None:
    small = {"body_bytes": 300, "event_bytes": 300, "batch_bytes": 300, "import_bytes": 300}
    async with a_world(limits=small) as world:
        await refused(world.admin.http, operation, "payload_too_large", content=b" " * 301)


@named([operation for operation in ALL if not operation.while_draining])
async def test_unavailable(world: World, operation: Operation) -> None:
    await world.app.drain()
    await refused(world.admin.http, operation, "unavailable")


@named([operation for operation in ALL if operation.while_draining])
async def test_available_to_the_last(world: World, operation: Operation) -> None:
    await world.app.drain()
    assert (await world.nobody.get(path_of(operation))).status_code == 200
    assert "unavailable" not in errors_of(operation)


@named(ALL)
async def test_internal(world: World, operation: Operation) -> None:
    async def fails(*_: object, **__: object) -> None:
        raise RuntimeError("on purpose")

    broken = replace(operation, handler=fails, body=None, takes_bytes=False)
    world.app._router = make_router([broken], lambda _: world.app.services)
    await refused(world.admin.http, operation, "internal")


# --- errors of single operations --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Case:
    """One request of `who` and the error it gets. `t` is alice's thread, on which bob observes; carol and a bot are strangers."""

    operation: str
    code: BubbleErrorCode
    who: str
    method: str
    path: str
    body: object = None


def starts(who: str) -> dict[str, object]:
    return {"type": "run_started", "principalId": who, "runId": "r"}


BOT = {"kind": "bot", "displayName": "B"}
IMPORT: dict[str, object] = {"events": []}
OWNER = {"role": "owner"}
CASES = [
    Case(operation="createThread", code="forbidden", who="bot", method="POST", path="/v1/threads", body={}),
    Case(
        operation="createThread",
        code="not_found",
        who="alice",
        method="POST",
        path="/v1/threads",
        body={"participants": [{"principalId": "nobody"}]},
    ),
    Case(
        operation="createThread",
        code="conflict",
        who="admin",
        method="POST",
        path="/v1/threads",
        body={"threadId": "t"},
    ),
    Case(operation="getThread", code="not_found", who="carol", method="GET", path="/v1/threads/t"),
    Case(operation="updateThread", code="forbidden", who="bob", method="PATCH", path="/v1/threads/t", body={}),
    Case(operation="updateThread", code="not_found", who="carol", method="PATCH", path="/v1/threads/t", body={}),
    Case(operation="deleteThread", code="forbidden", who="bob", method="DELETE", path="/v1/threads/t"),
    Case(operation="deleteThread", code="not_found", who="carol", method="DELETE", path="/v1/threads/t"),
    Case(
        operation="appendEvent",
        code="forbidden",
        who="bob",
        method="POST",
        path="/v1/threads/t/events",
        body=starts("bob"),
    ),
    Case(
        operation="appendEvent",
        code="not_found",
        who="carol",
        method="POST",
        path="/v1/threads/t/events",
        body=starts("carol"),
    ),
    Case(
        operation="appendEvent",
        code="conflict",
        who="alice",
        method="POST",
        path="/v1/threads/t/events",
        body=starts("alice"),
    ),
    Case(
        operation="appendEvents",
        code="forbidden",
        who="bob",
        method="POST",
        path="/v1/threads/t/events:batch",
        body={"events": [starts("bob")]},
    ),
    Case(
        operation="appendEvents",
        code="not_found",
        who="carol",
        method="POST",
        path="/v1/threads/t/events:batch",
        body={"events": [starts("carol")]},
    ),
    Case(
        operation="appendEvents",
        code="conflict",
        who="alice",
        method="POST",
        path="/v1/threads/t/events:batch",
        body={"events": [starts("alice")]},
    ),
    Case(operation="getEvents", code="not_found", who="carol", method="GET", path="/v1/threads/t/events"),
    Case(operation="streamEvents", code="not_found", who="carol", method="GET", path="/v1/threads/t/events/stream"),
    Case(
        operation="importThread",
        code="forbidden",
        who="alice",
        method="POST",
        path="/v1/threads/new/import",
        body=IMPORT,
    ),
    Case(
        operation="importThread",
        code="not_found",
        who="admin",
        method="POST",
        path="/v1/threads/new/import",
        body={**IMPORT, "ownerPrincipalId": "nobody"},
    ),
    Case(
        operation="importThread", code="conflict", who="admin", method="POST", path="/v1/threads/t/import", body=IMPORT
    ),
    Case(operation="listGrants", code="not_found", who="carol", method="GET", path="/v1/threads/t/grants"),
    Case(
        operation="putGrant", code="forbidden", who="bob", method="PUT", path="/v1/threads/t/grants/carol", body=OWNER
    ),
    Case(
        operation="putGrant", code="not_found", who="carol", method="PUT", path="/v1/threads/t/grants/carol", body=OWNER
    ),
    Case(
        operation="putGrant",
        code="conflict",
        who="alice",
        method="PUT",
        path="/v1/threads/t/grants/alice",
        body={"role": "observer"},
    ),
    Case(operation="removeGrant", code="forbidden", who="bob", method="DELETE", path="/v1/threads/t/grants/alice"),
    Case(operation="removeGrant", code="not_found", who="alice", method="DELETE", path="/v1/threads/t/grants/carol"),
    Case(operation="removeGrant", code="conflict", who="alice", method="DELETE", path="/v1/threads/t/grants/alice"),
    Case(operation="getMessages", code="not_found", who="carol", method="GET", path="/v1/threads/t/messages"),
    Case(operation="streamMessages", code="not_found", who="carol", method="GET", path="/v1/threads/t/messages/stream"),
    Case(operation="watchBot", code="not_found", who="carol", method="GET", path="/v1/bots/bot/events?sessionId=t"),
    Case(operation="listRuns", code="not_found", who="carol", method="GET", path="/v1/threads/t/runs"),
    Case(operation="getCursor", code="forbidden", who="carol", method="GET", path="/v1/threads/open/cursor"),
    Case(operation="getCursor", code="not_found", who="carol", method="GET", path="/v1/threads/t/cursor"),
    Case(
        operation="advanceCursor",
        code="forbidden",
        who="carol",
        method="PUT",
        path="/v1/threads/open/cursor",
        body={"seq": 0},
    ),
    Case(
        operation="advanceCursor",
        code="not_found",
        who="carol",
        method="PUT",
        path="/v1/threads/t/cursor",
        body={"seq": 0},
    ),
    Case(operation="createPrincipal", code="forbidden", who="bot", method="POST", path="/v1/principals", body=BOT),
    Case(
        operation="createPrincipal",
        code="not_found",
        who="admin",
        method="POST",
        path="/v1/principals",
        body={**BOT, "ownerPrincipalId": "nobody"},
    ),
    Case(
        operation="createPrincipal",
        code="conflict",
        who="alice",
        method="POST",
        path="/v1/principals",
        body={**BOT, "principalId": "bot"},
    ),
    Case(operation="listPrincipals", code="forbidden", who="alice", method="GET", path="/v1/principals"),
    Case(operation="getPrincipal", code="forbidden", who="bot", method="GET", path="/v1/principals/alice"),
    Case(operation="getPrincipal", code="not_found", who="alice", method="GET", path="/v1/principals/nobody"),
    Case(operation="updatePrincipal", code="forbidden", who="bob", method="PATCH", path="/v1/principals/bot", body={}),
    Case(
        operation="updatePrincipal",
        code="not_found",
        who="admin",
        method="PATCH",
        path="/v1/principals/nobody",
        body={},
    ),
    Case(
        operation="updatePrincipal",
        code="conflict",
        who="admin",
        method="PATCH",
        path="/v1/principals/admin",
        body={"disabled": True},
    ),
    Case(
        operation="closeConnections",
        code="forbidden",
        who="alice",
        method="DELETE",
        path="/v1/principals/alice/connections",
    ),
    Case(
        operation="closeConnections",
        code="not_found",
        who="admin",
        method="DELETE",
        path="/v1/principals/nobody/connections",
    ),
    Case(operation="mintToken", code="forbidden", who="bob", method="POST", path="/v1/principals/bot/tokens", body={}),
    Case(
        operation="mintToken",
        code="not_found",
        who="admin",
        method="POST",
        path="/v1/principals/nobody/tokens",
        body={},
    ),
    Case(operation="mintToken", code="conflict", who="admin", method="POST", path="/v1/principals/off/tokens", body={}),
    Case(operation="listTokens", code="forbidden", who="bob", method="GET", path="/v1/principals/bot/tokens"),
    Case(operation="listTokens", code="not_found", who="admin", method="GET", path="/v1/principals/nobody/tokens"),
    Case(operation="revokeToken", code="forbidden", who="bob", method="DELETE", path="/v1/principals/bot/tokens/x"),
    Case(operation="revokeToken", code="not_found", who="alice", method="DELETE", path="/v1/principals/bot/tokens/x"),
    Case(
        operation="openSession",
        code="unauthenticated",
        who="alice",
        method="POST",
        path="/v1/sessions",
        body={"code": "nonsense"},
    ),
    Case(operation="getAsset", code="not_found", who="alice", method="GET", path="/assets/0/nothing.js"),
]
# Shown in a test of their own: they need a header, or a store that is out of reach.
ELSEWHERE = {("openSession", "forbidden"), ("closeSession", "forbidden"), ("readyz", "unavailable")}


@pytest.fixture
async def people(world: World) -> dict[str, Person]:
    """Everybody that the cases name."""
    alice, bob, carol = [await world.user(name) for name in ("alice", "bob", "carol")]
    bot = await world.bot("bot", owner=alice)
    await world.register("off")
    await world.admin.patch("/v1/principals/off", {"disabled": True})
    seats = [{"principalId": "alice", "role": "owner"}, {"principalId": "bob", "role": "observer"}]
    await world.admin.post("/v1/threads", {"threadId": "t", "participants": seats})
    await world.admin.delete("/v1/threads/t/grants/admin")
    await world.admin.post("/v1/threads", {"threadId": "open", "joinPolicy": "open"})
    await alice.append("t", alice.starts("r"))
    return {"alice": alice, "bob": bob, "carol": carol, "bot": bot, "admin": world.admin}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.operation} {case.code}")
async def test_an_error_of_one_operation(people: dict[str, Person], case: Case) -> None:
    answer = await people[case.who].call(case.method, case.path, json=case.body, expect=STATUS[case.code])
    assert answer.json()["code"] == case.code


def test_no_documented_error_is_left_out() -> None:
    documented = {(operation.name, code) for operation in ALL for code in operation.errors}
    assert documented == {(case.operation, case.code) for case in CASES} | ELSEWHERE
