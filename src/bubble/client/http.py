"""Requests and answers: one pooled HTTP client, typed errors, and retries of what may safely be repeated.

Which failure is tried again:

    nothing was sent (refused connection)       always
    `rate_limited`                              always: the server did nothing; after `Retry-After`
    `unavailable`, or no answer came            if the request may be repeated: it reads, sets or deletes, or carries a key
    `unauthenticated`                           once, with another bearer, if a callable gives one
    anything else                               never
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import TypeVar

import httpx2
import msgspec
from msgspec import UNSET, UnsetType

from bubble.client.backoff import Backoff
from bubble.client.outage import Reach
from bubble.client.paths import no_route_at
from bubble.client.tokens import TokenSource
from bubble.client.wire import decode_resource
from bubble.protocol.errors import (
    BubbleError,
    Conflict,
    Forbidden,
    InternalError,
    InvalidRequest,
    NotFound,
    PayloadTooLarge,
    RateLimited,
    Unauthenticated,
    Unavailable,
    error_from_code,
    route_not_found,
)
from bubble.protocol.jsontext import JSONValue, dump_json
from bubble.protocol.version import VERSION

__all__ = ["Answer", "Call", "HttpClient", "Routes", "json_body", "or_unset"]

T = TypeVar("T")

# For an answer that is not the server's own: a proxy's page, or no Bubble at all.
_BY_STATUS: Mapping[int, type[BubbleError]] = {
    400: InvalidRequest,
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    408: Unavailable,
    409: Conflict,
    413: PayloadTooLarge,
    429: RateLimited,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request. `repeatable`: sending it twice does no more than sending it once. `patience`: seconds beyond the usual timeout."""

    method: str
    path: str
    body: bytes | None = None
    params: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool
    patience: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A successful answer's body."""

    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failure:
    error: BubbleError
    was_sent: bool = True
    wait: float | None = None


class _Problem(msgspec.Struct):
    code: str
    message: str
    details: dict[str, JSONValue] | UnsetType | None = UNSET


def json_body(**members: object) -> bytes:
    """A JSON object of those members that are not UNSET."""
    return dump_json({name: value for name, value in members.items() if value is not UNSET})


def or_unset(value: T | None) -> T | UnsetType:
    """UNSET in place of None: the member is left out."""
    return UNSET if value is None else value


class HttpClient:
    """One pool of connections to a server. `close()` it."""

    def __init__(
        self,
        base_url: str,
        tokens: TokenSource,
        *,
        transport: httpx2.AsyncBaseTransport | None = None,
        ssl_context: ssl.SSLContext | None = None,
        timeout: float = 30.0,
        retry_for: float = 30.0,
        backoff: Backoff | None = None,
        reach: Reach | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.base_url = base_url
        self._tokens = tokens
        self._timeout = timeout
        self._retry_for = retry_for
        self._backoff = backoff or Backoff()
        self._reach = reach or Reach(base_url)
        self._sleep = sleep
        self._monotonic = monotonic
        self._client = httpx2.AsyncClient(
            transport=transport,
            verify=ssl_context if ssl_context is not None else True,
            headers={"Accept": "application/json", "User-Agent": f"bubble-threads/{VERSION}"},
        )

    async def close(self) -> None:
        """Closes every connection."""
        await self._client.aclose()

    async def get(self, path: str, kind: type[T], **params: str | int | None) -> T:
        """The resource at `path`; a parameter that is None is left out."""
        given = {name: str(value) for name, value in params.items() if value is not None}
        return decode_resource(
            (await self.send(Call(method="GET", path=path, params=given, repeatable=True))).body, kind
        )

    async def post(self, path: str, kind: type[T], body: bytes) -> T:
        """Creates something: not repeated unless it is certain that nothing happened."""
        return decode_resource(
            (await self.send(Call(method="POST", path=path, body=body, repeatable=False))).body, kind
        )

    async def put(self, path: str, kind: type[T], body: bytes) -> T:
        """Sets something."""
        return decode_resource((await self.send(Call(method="PUT", path=path, body=body, repeatable=True))).body, kind)

    async def patch(self, path: str, kind: type[T], body: bytes) -> T:
        """Changes fields to given values."""
        return decode_resource(
            (await self.send(Call(method="PATCH", path=path, body=body, repeatable=True))).body, kind
        )

    async def delete(self, path: str) -> None:
        """Removes something. Where an attempt's answer was lost and the next one finds nothing, that attempt did it."""
        await self.send(Call(method="DELETE", path=path, repeatable=True))

    async def send(self, call: Call) -> Answer:
        """The answer of a call that succeeded, after as many attempts as `retry_for` allows. Raises `BubbleError`s."""
        deadline = self._monotonic() + self._retry_for
        was_lost = False
        for attempt in count():
            outcome = await self._attempt(call)
            if isinstance(outcome, Answer) or not isinstance(outcome.error, Unavailable):
                self._reach.found()
            if isinstance(outcome, Answer):
                return outcome
            if call.method == "DELETE" and was_lost and isinstance(outcome.error, NotFound):
                return Answer(body=b"")
            was_lost = was_lost or (outcome.was_sent and isinstance(outcome.error, Unavailable))
            wait = self._wait_before_retry(call, outcome, attempt)
            if wait is None or self._monotonic() + wait > deadline:
                raise outcome.error
            if isinstance(outcome.error, Unavailable):
                self._reach.lost(outcome.error)
            await self._sleep(wait)
        raise AssertionError

    def _wait_before_retry(self, call: Call, failure: _Failure, attempt: int) -> float | None:
        if isinstance(failure.error, RateLimited):
            return failure.error.retry_after + self._backoff.wait(attempt)
        if isinstance(failure.error, Unavailable) and (call.repeatable or not failure.was_sent):
            return max(failure.wait or 0.0, self._backoff.wait(attempt))
        return None

    async def _attempt(self, call: Call) -> Answer | _Failure:
        token = await self._tokens.get()
        outcome = await self._exchange(call, token)
        if isinstance(outcome, Answer) or not isinstance(outcome.error, Unauthenticated):
            return outcome
        try:
            token = await self._tokens.renew(refused=token)
        except Unauthenticated:
            return outcome
        return await self._exchange(call, token)

    async def _exchange(self, call: Call, token: str) -> Answer | _Failure:
        headers = {"Authorization": f"Bearer {token}", **call.headers}
        if call.body is not None:
            headers["Content-Type"] = "application/json"
        try:
            response = await self._client.request(
                call.method,
                self.base_url + call.path,
                params=call.params or None,
                content=call.body,
                headers=headers,
                timeout=httpx2.Timeout(self._timeout, read=self._timeout + call.patience),
            )
        except (httpx2.LocalProtocolError, httpx2.UnsupportedProtocol) as error:
            return _Failure(error=InvalidRequest(f"The request cannot be sent: {error}."), was_sent=False)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
            return _Failure(error=self._unreachable(error), was_sent=False)
        except httpx2.RequestError as error:
            return _Failure(error=self._unreachable(error))
        return self._judge(response)

    def _unreachable(self, error: httpx2.RequestError) -> Unavailable:
        reason = str(error) or type(error).__name__
        return Unavailable(f"Cannot reach {self.base_url}: {reason}.")

    def _judge(self, response: httpx2.Response) -> Answer | _Failure:
        if response.is_success:
            if response.content and not _may_be_json(response.headers.get("content-type")):
                return _Failure(error=self._foreign(response, None))
            return Answer(body=response.content)
        wait = _retry_after(response.headers.get("retry-after"))
        try:
            problem = msgspec.json.decode(response.content, type=_Problem)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return _Failure(error=self._foreign(response, wait), wait=wait)
        details = problem.details or None
        if problem.code == RateLimited.code:
            return _Failure(
                error=RateLimited(problem.message, retry_after=1.0 if wait is None else wait, details=details)
            )
        if problem.code == NotFound.code and problem.message == route_not_found().message:
            return _Failure(error=no_route_at(self.base_url))
        return _Failure(error=error_from_code(problem.code, problem.message, details=details), wait=wait)

    def _foreign(self, response: httpx2.Response, wait: float | None) -> BubbleError:
        if response.is_redirect:
            return InvalidRequest(f"{self.base_url} redirects to {response.headers['location']}: use that address.")
        message = f"{response.request.url.copy_with(query=None)} answered {response.status_code}, and not as a Bubble server does."
        kind = _BY_STATUS.get(response.status_code, InternalError)
        return RateLimited(message, retry_after=wait or 1.0) if kind is RateLimited else kind(message)


def _may_be_json(content_type: str | None) -> bool:
    return content_type is None or content_type.partition(";")[0].strip().lower() == "application/json"


class Routes:
    """Some of the server's routes, for `BubbleConnection` to inherit."""

    def __init__(self, http: HttpClient) -> None:
        self._http = http


def _retry_after(text: str | None) -> float | None:
    try:
        return None if text is None else max(0.0, float(text))
    except ValueError:  # a date: clocks differ, so the usual backoff is the better answer
        return None
