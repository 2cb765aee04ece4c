"""The OpenAPI and AsyncAPI documents say exactly what is there."""

from __future__ import annotations

import json
import re
from typing import Any, get_args

import httpx2
import jsonschema  # type: ignore[import-untyped]
import msgspec
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator
from starlette.applications import Starlette
from starlette.routing import Mount, Route

from bubble.protocol.frames import ClientFrame, ServerFrame
from bubble.server.routes import OPERATIONS
from bubble.server.routing import make_router
from bubble.testing.asgi import StreamingASGITransport
from tests.server.world import URL, World

pytestmark = pytest.mark.anyio

# What the design's table of routes names for this version, one line per row.
TABLE = """
GET /healthz | GET /readyz | GET /metrics
GET /v1/whoami
GET /v1/protocol
POST /v1/threads
GET /v1/threads
GET /v1/threads/{threadId} | PATCH /v1/threads/{threadId} | DELETE /v1/threads/{threadId}
POST /v1/threads/{threadId}/events
POST /v1/threads/{threadId}/events:batch
GET /v1/threads/{threadId}/events
GET /v1/threads/{threadId}/events/stream
GET /v1/threads/{threadId}/messages
GET /v1/threads/{threadId}/messages/stream
GET /v1/bots/{botId}/events
POST /v1/threads/{threadId}/import
GET /v1/threads/{threadId}/runs
GET /v1/threads/{threadId}/cursor | PUT /v1/threads/{threadId}/cursor
GET /v1/threads/{threadId}/grants
PUT /v1/threads/{threadId}/grants/{principalId} | DELETE /v1/threads/{threadId}/grants/{principalId}
GET /v1/grants
POST /v1/principals | GET /v1/principals | GET /v1/principals/{principalId} | PATCH /v1/principals/{principalId}
POST /v1/principals/{principalId}/tokens | GET /v1/principals/{principalId}/tokens
DELETE /v1/principals/{principalId}/tokens/{tokenId}
DELETE /v1/principals/{principalId}/connections
POST /v1/sessions | DELETE /v1/sessions | POST /v1/ws/tickets
GET /openapi.json | GET /asyncapi.json | GET /docs
GET /v1/ws
GET / | GET /login | GET /assets/{version}/{file}
"""

Document = dict[str, Any]


@pytest.fixture
async def openapi(world: World) -> Document:
    """The document as served."""
    document: Document = (await world.nobody.get("/openapi.json")).json()
    return document


@pytest.fixture
async def asyncapi(world: World) -> Document:
    """The document as served."""
    document: Document = (await world.nobody.get("/asyncapi.json")).json()
    return document


def operations_of(document: Document) -> set[str]:
    return {f"{method.upper()} {path}" for path, item in document["paths"].items() for method in item}


@pytest.mark.requirement("PR-6-04")
async def test_the_openapi_document_is_valid(openapi: Document) -> None:
    assert openapi["openapi"] == "3.1.0"
    assert list(OpenAPIV31SpecValidator(openapi).iter_errors()) == []


@pytest.mark.requirement("PR-6-05")
async def test_the_document_and_the_routes_are_the_same_set(world: World, openapi: Document) -> None:
    routed = {
        f"{method} {route.path}"
        for route in make_router(OPERATIONS, lambda _: world.app.services).routes
        if isinstance(route, Route)
        for method in route.endpoint._by_method  # type: ignore[attr-defined]
        if method != "HEAD"
    }
    assert operations_of(openapi) == routed


async def test_the_document_has_every_route_of_the_design(openapi: Document) -> None:
    assert operations_of(openapi) == set(re.findall(r"[A-Z]+ [^ |\n]+", TABLE))


async def test_every_operation_has_a_name_of_its_own_and_tells_about_itself(openapi: Document) -> None:
    operations = [operation for item in openapi["paths"].values() for operation in item.values()]
    assert len({operation["operationId"] for operation in operations}) == len(operations)
    for operation in operations:
        assert operation["summary"]
        assert operation["description"]
        assert {"400", "500"} <= operation["responses"].keys()


async def test_operations_that_need_a_bearer_say_so(openapi: Document) -> None:
    for path, item in openapi["paths"].items():
        for method, operation in item.items():
            if operation["security"]:
                assert {"401", "429"} <= operation["responses"].keys(), (method, path)
                needs_csrf = any("csrf" in way for way in operation["security"])
                assert needs_csrf == (method != "get")
                assert "403" in operation["responses"] or method == "get"
            if "requestBody" in operation:
                assert "413" in operation["responses"], (method, path)


async def test_every_reference_leads_somewhere(openapi: Document, asyncapi: Document) -> None:
    for document in (openapi, asyncapi):
        for reference in re.findall(r'"\$ref": "#/([^"]+)"', json.dumps(document)):
            place: Any = document
            for step in reference.split("/"):
                place = place[step]


async def test_every_component_is_used(openapi: Document) -> None:
    text = json.dumps(openapi)
    for kind in ("schemas", "headers"):
        unused = [name for name in openapi["components"][kind] if f'"#/components/{kind}/{name}"' not in text]
        assert unused == []


async def test_the_document_knows_where_it_is_mounted(world: World) -> None:
    outer = Starlette(routes=[Mount("/inner", app=world.app)])
    async with httpx2.AsyncClient(transport=StreamingASGITransport(outer), base_url=URL) as client:
        document = (await client.get("/inner/openapi.json")).json()
    assert document["servers"] == [{"url": "/inner"}]


# --- schemas against the code -----------------------------------------------------------------------------------------------------


def validator(document: Document, name: str) -> jsonschema.Draft202012Validator:
    schema = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
    return jsonschema.Draft202012Validator(schema)


GOOD = {"type": "message_part", "principalId": "a", "runId": "r", "version": "ai-sdk-v6", "part": {"type": "x", "y": 1}}
APPROVAL = {"type": "tool_call_approval", "principalId": "a", "runId": "r", "toolCallId": "c", "approved": True}


@pytest.mark.parametrize(
    ("event", "valid"),
    [
        (GOOD, True),
        ({**GOOD, "version": "bubble-v1", "part": {"kind": "x"}}, True),
        ({**GOOD, "version": "bubble-v1"}, False),
        ({**GOOD, "part": {"kind": "x"}}, False),
        ({**GOOD, "part": 1}, False),
        ({**GOOD, "runId": "a~b"}, False),
        ({**GOOD, "principalId": "a b"}, False),
        ({**GOOD, "seq": 1}, False),
        (APPROVAL, True),
        ({**APPROVAL, "reason": "x"}, False),
        ({**APPROVAL, "approved": False, "reason": "x"}, True),
        ({"type": "participant_joined", "byPrincipalId": "a", "principalId": "a"}, False),
        ({"type": "nonsense"}, False),
    ],
)
async def test_the_schema_of_an_event_and_the_server_agree(
    world: World, openapi: Document, event: object, *, valid: bool
) -> None:
    assert validator(openapi, "AppendableEvent").is_valid(event) is valid
    thread = await world.admin.thread()
    answer = await world.admin.call("POST", f"/v1/threads/{thread}/events", json=event, expect=None)
    assert (answer.status_code == 400) is not valid


async def test_stored_events_fit_their_schema(world: World, openapi: Document) -> None:
    thread = await world.admin.thread(title="x")
    await world.admin.patch(f"/v1/threads/{thread}", {"title": "y"})
    await world.admin.append(thread, world.admin.starts("r"))
    await world.admin.append(thread, world.admin.says("r"))
    await world.admin.append(thread, {**world.admin.finishes("r"), "outcome": "success"})
    check = validator(openapi, "StoredEvent")
    for event in (await world.admin.get(f"/v1/threads/{thread}/events")).json()["events"]:
        check.validate(event)


# --- AsyncAPI ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("PR-6-44")
async def test_the_asyncapi_document_has_exactly_the_frames(asyncapi: Document) -> None:
    def names(union: object) -> set[str]:
        return {str(kind.__struct_config__.tag) for kind in get_args(union)}

    def told(operation: str) -> set[str]:
        found = set()
        for message in asyncapi["operations"][operation]["messages"]:
            key = message["$ref"].rpartition("/")[2]
            assert asyncapi["channels"]["socket"]["messages"][key] == {"$ref": f"#/components/messages/{key}"}
            found.add(asyncapi["components"]["messages"][key]["name"])
        return found

    assert asyncapi["asyncapi"] == "3.0.0"
    assert asyncapi["channels"]["socket"]["address"] == "/v1/ws"
    assert told("receiveFrames") == names(ClientFrame)
    assert told("sendFrames") == names(ServerFrame)


@pytest.mark.requirement("PR-6-44")
@pytest.mark.parametrize(
    ("frame", "valid"),
    [
        ({"type": "thread.subscribe", "threadId": "t"}, True),
        ({"type": "thread.subscribe", "threadId": "t", "fromSeq": 0}, False),
        ({"type": "thread.append", "threadId": "t", "event": GOOD, "ref": "x" * 64}, True),
        ({"type": "thread.append", "threadId": "t", "event": GOOD, "ref": "x" * 65}, False),
        ({"type": "thread.append", "threadId": "t"}, False),
        ({"type": "grants.subscribe"}, True),
        ({"type": "grants.subscribe", "x": 1}, False),
        ({"type": "auth.refresh", "token": "x"}, True),
    ],
)
async def test_the_schemas_of_frames_and_the_decoder_agree(asyncapi: Document, frame: Document, *, valid: bool) -> None:
    names = {message["name"]: key for key, message in asyncapi["components"]["messages"].items()}
    assert validator(asyncapi, names[frame["type"]]).is_valid(frame) is valid
    try:
        msgspec.json.decode(json.dumps(frame), type=ClientFrame)
    except msgspec.ValidationError:
        assert not valid
    else:
        assert valid


def test_the_asyncapi_document_names_the_public_address() -> None:
    from bubble.server.asyncapi import asyncapi_document

    servers: Any = asyncapi_document(url="https://bubble.example.com/inner")["servers"]
    assert servers["this"]["host"] == "bubble.example.com"
    assert servers["this"]["protocol"] == "wss"
    assert servers["this"]["pathname"] == "/inner"
