"""The server about itself: alive, ready, measured, described; and who the caller is."""

from __future__ import annotations

from functools import cache
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from bubble.auth.browser import csrf_token
from bubble.extensions import installed_extensions
from bubble.protocol import PROTOCOL_VERSION
from bubble.protocol.errors import InvalidRequest
from bubble.protocol.limits import Limits
from bubble.protocol.resources import Principal
from bubble.protocol.timestamps import format_ms
from bubble.protocol.version import VERSION
from bubble.server.answers import Answer
from bubble.server.asyncapi import asyncapi_document
from bubble.server.calls import Call
from bubble.server.metrics import CONTENT_TYPE
from bubble.server.openapi import openapi_document
from bubble.server.operations import Operations
from bubble.server.routes.shapes import Query

__all__ = ["OPERATIONS"]

OPERATIONS = Operations()

_NO_STORE = (b"cache-control", b"no-store")


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """All is well."""

    status: str


class Extension(msgspec.Struct, frozen=True, kw_only=True):
    """An extension of the protocol that this server has."""

    name: str
    version: int


class ProtocolInfo(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a client may rely on here. Sizes are bytes, times milliseconds unless their names say otherwise."""

    protocol_version: int
    server_version: str
    limits: Limits
    extensions: list[Extension]


class Caller(Principal, frozen=True, kw_only=True):
    """The caller's principal, and what its bearer is: when it ends and what it is narrowed to. `csrfToken` is for sessions."""

    expires_at: str | UnsetType = UNSET
    capabilities: list[str] | UnsetType = UNSET
    threads: list[str] | UnsetType = UNSET
    csrf_token: str | UnsetType = UNSET


class Upgrade(Query, frozen=True, kw_only=True):
    """The ticket of a browser, which cannot set a header."""

    ticket: Annotated[str, Meta(max_length=512)] | None = None


@OPERATIONS.add("GET", "/healthz", summary="Is the process alive?", tag="Service", access="none", while_draining=True)
async def healthz(call: Call) -> Answer[Health]:  # noqa: ARG001 - it is alive if it answers
    """Always yes, while it answers at all."""
    return Answer(content=Health(status="ok"), headers=[_NO_STORE])


@OPERATIONS.add("GET", "/readyz", summary="Can it serve?", tag="Service", access="none", errors=("unavailable",))
async def readyz(call: Call) -> Answer[Health]:
    """Yes, if the store can be reached and the server is not draining."""
    await call.services.store.ping()
    return Answer(content=Health(status="ready"), headers=[_NO_STORE])


@OPERATIONS.add(
    "GET",
    "/metrics",
    summary="Figures for Prometheus",
    tag="Service",
    access="none",
    media_type=CONTENT_TYPE,
    while_draining=True,
)
async def metrics(call: Call) -> Answer[bytes]:
    """Counts, times and what is open now, in the Prometheus text format."""
    return Answer(content=call.services.metrics.text(), headers=[_NO_STORE])


@OPERATIONS.add("GET", "/v1/protocol", summary="What this server speaks", tag="Service", access="none")
async def get_protocol(call: Call) -> ProtocolInfo:
    """The protocol's version, the limits in force, and the extensions that are installed."""
    return ProtocolInfo(
        protocol_version=PROTOCOL_VERSION,
        server_version=VERSION,
        limits=call.services.limits,
        extensions=_extensions(),
    )


@cache
def _extensions() -> list[Extension]:
    # What is installed does not change while the process lives.
    return [Extension(name=each.name, version=each.version) for each in installed_extensions()]


@OPERATIONS.add("GET", "/v1/whoami", summary="Who am I?", tag="Service")
async def whoami(call: Call) -> Caller:
    """The principal behind the bearer."""
    identity = call.identity
    cookie = None
    if identity.source == "session":
        cookie = call.services.browser.read_cookie("; ".join(call.headers.all(b"cookie")))
    return Caller(
        **msgspec.structs.asdict(identity.principal),
        expires_at=UNSET if identity.expires_ms is None else format_ms(identity.expires_ms),
        capabilities=UNSET if identity.capabilities is None else sorted(identity.capabilities),
        threads=UNSET if identity.threads is None else sorted(identity.threads),
        csrf_token=UNSET if cookie is None else csrf_token(cookie),
    )


@OPERATIONS.add("GET", "/v1/ws", summary="The WebSocket", tag="Events", access="none", status=101, streams=True)
async def websocket(call: Call, query: Upgrade) -> None:  # noqa: ARG001 - described for what an upgrade takes
    """An upgrade request opens the WebSocket, which `/asyncapi.json` describes. Any other request is refused."""
    raise InvalidRequest("This is a WebSocket: it takes upgrade requests only.")


@OPERATIONS.add("GET", "/openapi.json", summary="This document", tag="Service", access="none")
async def get_openapi(call: Call) -> Answer[dict[str, object]]:
    """OpenAPI 3.1, made from the operations themselves."""
    from bubble.server.routes import OPERATIONS as ALL

    return Answer(content=openapi_document(ALL, root=call.scope.get("root_path", "")))


@OPERATIONS.add("GET", "/asyncapi.json", summary="The WebSocket's document", tag="Service", access="none")
async def get_asyncapi(call: Call) -> Answer[dict[str, object]]:
    """AsyncAPI 3, made from the frames themselves."""
    return Answer(content=asyncapi_document(url=call.services.url))
