"""Who is calling over HTTP: the bearer of the `Authorization` header, or the session cookie of the server's own page.

A request with an `Authorization` header never falls back to its cookie: a client that presents a bearer means that bearer (protocol,
section 4).
"""

from __future__ import annotations

from bubble.auth.browser import CSRF_HEADER
from bubble.auth.identity import Identity
from bubble.protocol.errors import Unauthenticated
from bubble.server.reading import RequestHeaders
from bubble.server.services import Services

__all__ = ["bearer_of", "identify"]

_CSRF = CSRF_HEADER.lower().encode("ascii")


async def identify(services: Services, headers: RequestHeaders, *, method: str) -> Identity:
    """The identity behind a request. Raises `Unauthenticated`, and `Forbidden` for a cookie from a page that is not the server's."""
    try:
        bearer = bearer_of(headers)
        if bearer is not None:
            return services.authenticator.known(bearer) or await services.authenticator.authenticate(bearer)
        return await _by_cookie(services, headers, method)
    except Unauthenticated:
        services.metrics.refused("http")
        raise


def bearer_of(headers: RequestHeaders) -> str | None:
    """The bearer of the `Authorization` header; None without one. `Unauthenticated` for a header of another kind, or two."""
    values = headers.all(b"authorization")
    if not values:
        return None
    scheme, _, bearer = values[0].partition(" ")
    if len(values) > 1 or scheme.lower() != "bearer" or not bearer.strip():
        raise Unauthenticated("`Authorization` must be `Bearer <token>`.")
    return bearer.strip()


async def _by_cookie(services: Services, headers: RequestHeaders, method: str) -> Identity:
    cookie = services.browser.read_cookie("; ".join(headers.all(b"cookie")))
    if cookie is None:
        raise Unauthenticated("No bearer came with the request.")
    identity = await services.authenticator.authenticate_session(cookie)
    services.browser.require_own_page(method, cookie=cookie, origin=headers.one(b"origin"), csrf=headers.one(_CSRF))
    return identity
