"""Browser sessions: opened with a login code or a token, carried by a cookie, ended by the page (protocol, section 4)."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from bubble.auth.browser import csrf_token
from bubble.auth.sessions import OpenedSession
from bubble.protocol.errors import InvalidRequest
from bubble.protocol.resources import Principal
from bubble.protocol.timestamps import format_ms
from bubble.server.answers import Answer
from bubble.server.calls import Call
from bubble.server.operations import Operations
from bubble.server.routes.shapes import Body

__all__ = ["OPERATIONS"]

OPERATIONS = Operations()

Secret = Annotated[str, Meta(min_length=1, max_length=16 * 1024)]


class OpenSession(Body, frozen=True, kw_only=True):
    """Exactly one of the two: the `code` of a login link, or a `token`."""

    code: Secret | UnsetType = UNSET
    token: Secret | UnsetType = UNSET


class Session(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A session that began. Its cookie is beside it; requests that change something need `csrfToken` as `X-Bubble-CSRF`."""

    principal: Principal
    expires_at: str
    csrf_token: str


@OPERATIONS.add(
    "POST",
    "/v1/sessions",
    summary="Log a browser in",
    tag="Sessions",
    access="none",
    status=201,
    errors=("unauthenticated", "forbidden"),
    answer_headers=("Set-Cookie",),
)
async def open_session(call: Call, body: OpenSession) -> Answer[Session]:
    """Sets the session cookie. A login code is good once. Where the request names an `Origin`, it must be the server's own."""
    browser = call.services.browser
    origin = call.headers.one(b"origin")
    if origin is not None:
        browser.require_origin(origin)
    opened = await _open(call, body)
    seconds = max(1, (opened.expires_ms - call.services.clock()) // 1000)
    session = Session(
        principal=opened.identity.principal,
        expires_at=format_ms(opened.expires_ms),
        csrf_token=csrf_token(opened.cookie),
    )
    cookie = browser.set_cookie(opened.cookie, max_age_seconds=seconds)
    return Answer(content=session, headers=[(b"set-cookie", cookie.encode()), (b"cache-control", b"no-store")])


async def _open(call: Call, body: OpenSession) -> OpenedSession:
    authenticator = call.services.authenticator
    if (body.code is UNSET) == (body.token is UNSET):
        raise InvalidRequest("Exactly one of `$.code` and `$.token` must be given.")
    if body.code is not UNSET:
        return await authenticator.consume_login(body.code)
    assert body.token is not UNSET  # noqa: S101 - for the type checker
    return await authenticator.start_session(by=await authenticator.authenticate(body.token))


@OPERATIONS.add(
    "DELETE",
    "/v1/sessions",
    summary="Log the browser out",
    tag="Sessions",
    errors=("forbidden",),
    answer_headers=("Set-Cookie",),
)
async def close_session(call: Call) -> Answer[None]:
    """Ends the session that the request rests on, and what was made from it; its sockets are closed within a second."""
    await call.services.authenticator.end_session(call.identity)
    cookie = call.services.browser.clear_cookie()
    return Answer(content=None, headers=[(b"set-cookie", cookie.encode())])
