"""What every answer has, whatever is in it: protocol version, request id, the shape of errors, a line in the log, a count."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

from starlette.types import Message, Scope, Send

from bubble.protocol import PROTOCOL_VERSION
from bubble.protocol.errors import BubbleError, InternalError
from bubble.server.answers import Header, error_body, error_headers, send_whole
from bubble.server.logs import logger
from bubble.server.reading import ClientGone

if TYPE_CHECKING:
    from bubble.server.metrics import Metrics
    from bubble.server.tracing import Tracing

__all__ = [
    "APPEND_ROUTE",
    "Exchange",
    "WrongMethod",
    "enclose",
    "exchange_of",
    "new_request_id",
    "request_id_of",
    "standing_headers",
]

_VERSION: Header = (b"bubble-protocol-version", b"%d" % PROTOCOL_VERSION)
_NO_SNIFFING: Header = (b"x-content-type-options", b"nosniff")
_SANE_ID = re.compile(rb"[A-Za-z0-9._\-]{1,128}")
_UNROUTED = "-"

#: Where single events are appended. What succeeds there is counted, but has no line in the log: there are too many.
APPEND_ROUTE = "/v1/threads/{threadId}/events"
_GONE = 499  # for log and metrics: nobody is there to be answered


class WrongMethod(BubbleError):
    """The path exists, the method on it does not."""

    code = "invalid_request"
    http_status = 405

    def __init__(self, allowed: str) -> None:
        super().__init__(f"This path allows {allowed}.")
        self.allowed = allowed


@dataclass(slots=True)
class Exchange:
    """One request and its answer, as seen from outside. `route` is the path's template."""

    method: str
    path: str
    request_id: bytes
    route: str = _UNROUTED
    principal_id: str | None = None
    status: int = 0
    is_stream: bool = False
    began: float = field(default_factory=time.perf_counter)

    def headers(self) -> list[Header]:
        """The headers of every answer."""
        return [_VERSION, _NO_SNIFFING, (b"x-request-id", self.request_id)]


def standing_headers() -> list[Header]:
    """The headers of an answer to what was no request yet."""
    return [_VERSION, _NO_SNIFFING, (b"x-request-id", new_request_id())]


def exchange_of(scope: Scope) -> Exchange:
    """The exchange that a scope belongs to."""
    exchange: Exchange = scope["bubble.exchange"]
    return exchange


def request_id_of(headers: list[Header]) -> bytes:
    """The caller's own request id if it is a sane one, else a new one."""
    for name, value in headers:
        if name == b"x-request-id" and _SANE_ID.fullmatch(value):
            return value
    return new_request_id()


#: Request ids are told apart, not guarded: a random beginning per process and a number cost less than randomness for each.
_IDS = (b"%b%08x" % (secrets.token_hex(4).encode("ascii"), number) for number in count(1))


def new_request_id() -> bytes:
    """An id that no other request has."""
    return next(_IDS)


Inside = Callable[[Scope, Send], Awaitable[None]]


async def enclose(inside: Inside, scope: Scope, send: Send, *, metrics: Metrics, tracing: Tracing, log: bool) -> None:
    """Runs `inside` and answers whatever it raises; nothing but a cancellation gets out of here."""
    exchange = Exchange(scope["method"], scope["path"], request_id_of(scope["headers"]))
    scope["bubble.exchange"] = exchange

    async def send_enclosed(message: Message) -> None:
        if message["type"] == "http.response.start":
            exchange.status = message["status"]
            message = {**message, "headers": [*message["headers"], *exchange.headers()]}
        await send(message)

    with tracing.request(exchange.method, scope["headers"]) as span:
        await _answered(inside, scope, send_enclosed, exchange)
        span.answered(route=exchange.route, status=exchange.status, request_id=exchange.request_id.decode())
    seconds = time.perf_counter() - exchange.began
    metrics.request(exchange.method, exchange.route, exchange.status, seconds=None if exchange.is_stream else seconds)
    if log and (exchange.status, exchange.route) != (201, APPEND_ROUTE):
        _log(exchange, seconds)


async def _answered(inside: Inside, scope: Scope, send: Send, exchange: Exchange) -> None:
    try:
        await inside(scope, send)
    except ClientGone:
        exchange.status = exchange.status or _GONE
    except BubbleError as error:
        await _refuse(error, send, exchange)
    except Exception:  # noqa: BLE001 - whatever it was, the client gets an answer and the log gets the stack
        logger.exception("request failed", request_id=exchange.request_id.decode(), route=exchange.route)
        await _refuse(InternalError("The server failed at this request."), send, exchange)


async def _refuse(error: BubbleError, send: Send, exchange: Exchange) -> None:
    if exchange.status:  # the answer has begun: all that is left is to break it off
        return
    headers = error_headers(error)
    if isinstance(error, WrongMethod):
        headers.append((b"allow", error.allowed.encode("ascii")))
    if error.code in ("payload_too_large", "unavailable"):
        headers.append((b"connection", b"close"))
    await send_whole(
        send, status=error.http_status, body=error_body(error), media_type=b"application/json", headers=headers
    )


def _log(exchange: Exchange, seconds: float) -> None:
    logger.info(
        "request",
        method=exchange.method,
        path=exchange.path,
        status=exchange.status,
        ms=round(seconds * 1000, 2),
        principal=exchange.principal_id,
        request_id=exchange.request_id.decode(),
    )
