"""HTTP to one agent: where the bearer goes, which redirects are followed, where it may lead, what is heard as silence.

The pool has no bound: a stream may last for hours, and there is one per thread that is being answered.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from typing import Final

import httpx2

from bubble.protocol.jsontext import dump_json
from bubble.protocol.version import VERSION
from bubble.reef.addresses import absolute, origin
from bubble.reef.dialects.base import Request
from bubble.reef.discretion import keep_secret, shown_url
from bubble.reef.failures import AgentFailure, Broken, Refused, Silent, Unreachable
from bubble.reef.peers import Peers

__all__ = ["CONNECT_SECONDS", "IDLE_SECONDS", "AgentHttp", "Bearer"]

CONNECT_SECONDS: Final = 10.0
IDLE_SECONDS: Final = 120.0

Bearer = Callable[[], str | None]
"""The bearer of the moment; None for none. It is asked before each request, so that a rotated secret is used."""

_REDIRECTS: Final = 3
_FOLLOWED: Final = {"GET": {301, 302, 303, 307, 308}, "POST": {307, 308}}


class AgentHttp:
    """One pool of connections. `close()` it.

    `trusted` are the origins that the bearer goes to, that of the card among them. `peers` decides which addresses are connected to.
    `idle_seconds` is how long an agent may be silent, without a byte; there is no other limit to how long an answer takes.
    """

    def __init__(
        self,
        *,
        bearer: Bearer,
        trusted: Collection[str],
        peers: Peers,
        idle_seconds: float = IDLE_SECONDS,
        connect_seconds: float = CONNECT_SECONDS,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._bearer = bearer
        self._trusted = frozenset(trusted)
        self._peers = peers
        self._idle_seconds = idle_seconds
        self._client = httpx2.AsyncClient(
            transport=transport,
            headers={"User-Agent": f"bubble-threads/{VERSION}"},
            timeout=httpx2.Timeout(idle_seconds, connect=connect_seconds, pool=None),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=64, keepalive_expiry=4.0),
        )

    async def close(self) -> None:
        """Closes every connection."""
        await self._client.aclose()

    @asynccontextmanager
    async def send(self, request: Request, *, accept: str) -> AsyncIterator[httpx2.Response]:
        """The answer to a request, its body yet to be read.

        Raises `Unreachable` where nobody took the request, `Silent` and `Broken` where the answer stopped, also while the caller reads.
        """
        try:
            response = await self._answer(request, accept=accept)
            try:
                yield response
            finally:
                await response.aclose()
        except httpx2.TransportError as error:
            raise self._failure(error, request.url) from error
        except httpx2.InvalidURL as error:
            raise Broken(f"{shown_url(request.url)} is no URL that can be called.") from error
        except httpx2.DecodingError as error:
            raise Broken("The agent's answer is not compressed as it says.") from error

    async def _answer(self, request: Request, *, accept: str) -> httpx2.Response:
        url = request.url
        for _ in range(_REDIRECTS):
            response = await self._client.send(self._built(request, url, accept), stream=True)
            if not response.has_redirect_location or response.status_code not in _FOLLOWED[request.method]:
                return response
            await response.aclose()
            url = _redirected(url, response)
        raise Refused("The agent redirects without end.")

    def _built(self, request: Request, url: str, accept: str) -> httpx2.Request:
        headers = {"Accept": accept, **request.headers}
        if origin(url) in self._trusted and (bearer := self._bearer()) is not None:
            keep_secret(bearer)
            headers["Authorization"] = f"Bearer {bearer}"
        if request.body is None:
            content = None
        else:
            headers["Content-Type"] = "application/json"
            content = dump_json(request.body)
        extensions = {"trace": self._peers.tracer(url)}
        return self._client.build_request(request.method, url, headers=headers, content=content, extensions=extensions)

    def _failure(self, error: httpx2.TransportError, url: str) -> AgentFailure:
        where = origin(url)
        if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.UnsupportedProtocol):
            return Unreachable(f"The agent at {where} cannot be reached.")
        if isinstance(error, httpx2.TimeoutException):
            return Silent(f"The agent at {where} has been silent for {self._idle_seconds:g} seconds.")
        return Broken(f"The connection to the agent at {where} was lost.")


def _redirected(url: str, response: httpx2.Response) -> str:
    """Where a redirect leads, which is within the origin. Raises `Refused`."""
    location = response.headers["Location"]
    try:
        target = absolute(location, base=url)
    except ValueError as error:
        raise Refused(
            f"The agent redirects (Location) to {shown_url(location)}, which cannot be called: {error}.",
            status=response.status_code,
        ) from None
    if origin(target) != origin(url):
        raise Refused(
            f"The agent redirects to {shown_url(target)}, which is not followed.", status=response.status_code
        )
    return target
