"""The short way of the one request that matters most: `POST /v1/threads/:threadId/events`.

*Theory of operation.* Where `bubble serve` owns the connection, an ordinary append does not need what a general request needs: no task, no
scope, no router, no messages. `HotAppends.prepare` looks at url, headers and body and makes a store command of them, if everything about
the request is ordinary: a bearer that was resolved a moment ago, one JSON body, no header with a meaning of its own. Whatever is not
ordinary, every mistake included, is left to the general way (`routes.events`), which gives the same answers and knows how to explain. So
there is one place that decides about errors of a request, and one that is quick. What the store refuses is answered here.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from typing import Final

from bubble.auth.identity import Identity
from bubble.auth.policy import IdentityGuard
from bubble.protocol.errors import BubbleError
from bubble.protocol.identifiers import is_name
from bubble.server.answers import Header, error_body, error_headers
from bubble.server.appending import decode_appendable
from bubble.server.envelope import APPEND_ROUTE, new_request_id
from bubble.server.logs import logger
from bubble.server.services import Services
from bubble.store.commands import AppendCommand, AppendResult, IdempotencyKey

__all__ = ["HotAnswer", "HotAppends", "is_append"]

_BEFORE: Final = b"/v1/threads/"
_AFTER: Final = b"/events"
_GUARDS: Final = 1_024
_REPLAYED: Final = b"idempotent-replay: true\r\n"
_STATUS_LINES: Final = {
    201: b"HTTP/1.1 201 Created\r\n",
    400: b"HTTP/1.1 400 Bad Request\r\n",
    403: b"HTTP/1.1 403 Forbidden\r\n",
    404: b"HTTP/1.1 404 Not Found\r\n",
    409: b"HTTP/1.1 409 Conflict\r\n",
    500: b"HTTP/1.1 500 Internal Server Error\r\n",
    503: b"HTTP/1.1 503 Service Unavailable\r\n",
}
#: Headers that an ordinary append may have; any other that means something here sends it the general way.
_IGNORED: Final = frozenset(
    {b"host", b"user-agent", b"accept", b"accept-encoding", b"content-length", b"connection", b"accept-language"}
)


def is_append(url: bytes) -> bool:
    """Whether this is the url of an append, without a query."""
    return url.startswith(_BEFORE) and url.endswith(_AFTER) and b"?" not in url and b"%" not in url


class HotAnswer:
    """One append on its way: what is needed to answer it."""

    __slots__ = ("began", "command", "principal_id", "request_id")

    def __init__(self, command: AppendCommand, request_id: bytes, principal_id: str) -> None:
        self.command = command
        self.request_id = request_id
        self.principal_id = principal_id
        self.began = time.perf_counter()


class HotAppends:
    """Makes commands of requests, and answers of outcomes."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._guards: dict[Identity, IdentityGuard] = {}

    def prepare(self, url: bytes, headers: Sequence[Header], body: bytes) -> HotAnswer | None:
        """The append that a request asks for; None if it is to go the general way."""
        services = self._services
        bearer = key = request_id = None
        for name, value in headers:
            if name == b"authorization" and bearer is None:
                bearer = value
            elif name == b"idempotency-key" and key is None:
                key = value
            elif name == b"x-request-id" and request_id is None:
                request_id = value
            elif name == b"content-type" and value == b"application/json":
                continue
            elif name not in _IGNORED:
                return None
        thread_id = url[len(_BEFORE) : -len(_AFTER)].decode("latin-1")
        if bearer is None or bearer[:7] != b"Bearer " or not is_name(thread_id):
            return None
        if services.draining.is_set() or services.tracing.is_on:
            return None
        identity = services.authenticator.known(bearer[7:].decode("latin-1"))
        if identity is None:
            return None
        return self._command(identity, thread_id, body, key, request_id)

    def _command(
        self, identity: Identity, thread_id: str, body: bytes, key: bytes | None, request_id: bytes | None
    ) -> HotAnswer | None:
        services = self._services
        guard = self._guard(identity)
        idempotency = None
        if key is not None:
            text = key.decode("latin-1")
            if not 1 <= len(text) <= 128:
                return None
            idempotency = IdempotencyKey(guard.principal_id, text, hashlib.sha256(body).digest())
        if request_id is not None and not request_id.isalnum():
            return None
        try:
            event = decode_appendable(body, limits=services.limits)
            services.rates.take(guard.principal_id)
        except BubbleError:
            return None
        command = AppendCommand(thread_id=thread_id, events=(event,), guard=guard, idempotency=idempotency)
        return HotAnswer(command, request_id or new_request_id(), guard.principal_id)

    def _guard(self, identity: Identity) -> IdentityGuard:
        guard = self._guards.get(identity)
        if guard is None:
            if len(self._guards) >= _GUARDS:
                self._guards.clear()
            guard = self._guards[identity] = self._services.policy.guard(identity)
        return guard

    def submit(self, answer: HotAnswer) -> None:
        """Hands the command to the store. Raises `Unavailable` if it takes none."""
        self._services.store.submit(answer.command)

    def answered(self, answer: HotAnswer, result: AppendResult, *, standing: bytes, closes: bool) -> bytes:
        """The bytes of the answer, and its place in log and metrics. `standing` are uvicorn's own header lines."""
        if isinstance(result, BubbleError):
            status, body, extra = result.http_status, error_body(result), error_headers(result)
        else:
            status, body, extra = 201, result.events[0].text, []
        lines = b"".join(b"%b: %b\r\n" % header for header in extra) if extra else b""
        if not isinstance(result, BubbleError) and result.replayed:
            lines += _REPLAYED
        if closes:
            lines += b"connection: close\r\n"
        seconds = time.perf_counter() - answer.began
        self._services.metrics.request("POST", APPEND_ROUTE, status, seconds=seconds)
        if status != 201 and self._services.settings.log.requests:
            self._log(answer, status, seconds)
        return (
            b"%bcontent-type: application/json\r\ncontent-length: %d\r\nbubble-protocol-version: 1\r\n"
            b"x-content-type-options: nosniff\r\nx-request-id: %b\r\n%b%b\r\n%b"
        ) % (_STATUS_LINES[status], len(body), answer.request_id, standing, lines, body)

    def _log(self, answer: HotAnswer, status: int, seconds: float) -> None:
        logger.info(
            "request",
            method="POST",
            path=f"/v1/threads/{answer.command.thread_id}/events",
            status=status,
            ms=round(seconds * 1000, 2),
            principal=answer.principal_id,
            request_id=answer.request_id.decode(),
        )
