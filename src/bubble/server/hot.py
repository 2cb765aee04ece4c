"""The short way of the one request that matters most: `POST /v1/threads/:threadId/events`.

*Theory of operation.* Where `bubble serve` owns the connection, an ordinary append does not need what a general request needs: no task, no
scope, no router, no messages. `HotAppends.understand` looks at a request's url and headers and keeps what they mean as a `HotHead`, if
everything about them is ordinary: a bearer that was resolved a moment ago, one JSON body of a known length, no header with a meaning of its
own. A client that keeps its connection sends the same head again and again; it need not be parsed again, only be the same to the byte.
`prepare` makes a store command of a head and a body.

Whatever is not ordinary, every mistake included, is left to the general way (`routes.events`), which gives the same answers and knows how
to explain. So there is one place that decides about errors of a request, and one that is quick. What the store refuses is answered here.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from typing import Final

from bubble.auth.identity import Identity
from bubble.auth.identity_cache import KnownBearer
from bubble.auth.policy import IdentityGuard
from bubble.protocol.errors import BubbleError
from bubble.protocol.identifiers import is_name
from bubble.server.answers import Header, error_body, error_headers
from bubble.server.appending import decode_appendable
from bubble.server.envelope import APPEND_ROUTE, new_request_id
from bubble.server.logs import logger
from bubble.server.services import Services
from bubble.store.commands import AppendCommand, AppendResult, IdempotencyKey

__all__ = ["HotAnswer", "HotAppends", "HotHead", "is_append"]

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
_IGNORED: Final = frozenset({b"host", b"user-agent", b"accept", b"accept-encoding", b"connection", b"accept-language"})


def is_append(url: bytes) -> bool:
    """Whether this is the url of an append, without a query."""
    return url.startswith(_BEFORE) and url.endswith(_AFTER) and b"?" not in url and b"%" not in url


class HotHead:
    """What url and headers of an append mean. `length` is that of the body, None where no header tells."""

    __slots__ = ("bearer", "guard", "is_repeatable", "key", "known", "length", "request_id", "thread_id")

    def __init__(self, thread_id: str, bearer: str, known: KnownBearer, guard: IdentityGuard) -> None:
        self.thread_id = thread_id
        self.bearer = bearer
        self.known = known
        self.guard = guard
        self.length: int | None = None
        self.key: str | None = None
        self.request_id: bytes | None = None
        self.is_repeatable = False


class HotAnswer:
    """One append on its way: what is needed to answer it."""

    __slots__ = ("began", "command", "principal_id", "request_id")

    def __init__(self, command: AppendCommand, request_id: bytes | None, principal_id: str) -> None:
        self.command = command
        self.request_id = request_id
        self.principal_id = principal_id
        self.began = time.perf_counter()


class HotAppends:
    """Makes commands of requests, and answers of outcomes."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._guards: dict[Identity, IdentityGuard] = {}
        self._stored = services.metrics.many("POST", APPEND_ROUTE, 201)

    def understand(self, url: bytes, headers: Sequence[Header]) -> HotHead | None:
        """What a request's url and headers mean; None if it is to go the general way."""
        named: dict[bytes, bytes] = {}
        for name, value in headers:
            if name in named:
                return None
            if name not in _IGNORED:
                named[name] = value
        bearer, length = named.pop(b"authorization", b""), named.pop(b"content-length", None)
        key, request_id = named.pop(b"idempotency-key", None), named.pop(b"x-request-id", None)
        is_json = named.pop(b"content-type", b"application/json") == b"application/json"
        thread_id = url[len(_BEFORE) : -len(_AFTER)].decode("latin-1")
        if named or not is_json or not bearer.startswith(b"Bearer ") or not is_name(thread_id):
            return None
        head = self._head(thread_id, bearer[7:].decode("latin-1"))
        if head is not None:
            head.length = int(length) if length is not None and length.isdigit() else None
            head.key = None if key is None else key.decode("latin-1")
            head.request_id = request_id
            head.is_repeatable = key is None and request_id is None and head.length is not None
        return head if self._is_ordinary(head) else None

    def _head(self, thread_id: str, bearer: str) -> HotHead | None:
        known = self._services.authenticator.recall(bearer)
        return None if known is None else HotHead(thread_id, bearer, known, self._guard(known.identity))

    def _is_ordinary(self, head: HotHead | None) -> bool:
        return (
            head is not None
            and (head.key is None or 1 <= len(head.key) <= 128)
            and (head.request_id is None or (head.request_id.isalnum() and len(head.request_id) <= 128))
        )

    def prepare(self, head: HotHead, body: bytes) -> HotAnswer | None:
        """The append that a request asks for; None if it is to go the general way."""
        services = self._services
        if services.draining.is_set() or services.tracing.is_on:
            return None
        if not services.authenticator.still_known(head.known) and not self._remember(head):
            return None
        try:
            event = decode_appendable(body, limits=services.limits)
            services.rates.take(head.guard.principal_id)
        except BubbleError:
            return None
        key = None
        if head.key is not None:
            key = IdempotencyKey(head.guard.principal_id, head.key, hashlib.sha256(body).digest())
        command = AppendCommand(thread_id=head.thread_id, events=(event,), guard=head.guard, idempotency=key)
        return HotAnswer(command, head.request_id, head.guard.principal_id)

    def _remember(self, head: HotHead) -> bool:
        known = self._services.authenticator.recall(head.bearer)
        if known is None:
            return False
        head.known = known
        head.guard = self._guard(known.identity)
        return True

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
        seconds = time.perf_counter() - answer.began
        lines = b"connection: close\r\n" if closes else b""
        if isinstance(result, BubbleError):
            status, body = result.http_status, error_body(result)
            lines += b"".join(b"%b: %b\r\n" % header for header in error_headers(result))
            self._refused(answer, status, seconds)
        else:
            status, body = 201, result.events[0].text
            if result.replayed:
                lines += _REPLAYED
            self._stored(seconds)
        return (
            b"%bcontent-type: application/json\r\ncontent-length: %d\r\nbubble-protocol-version: 1\r\n"
            b"x-content-type-options: nosniff\r\nx-request-id: %b\r\n%b%b\r\n%b"
        ) % (_STATUS_LINES[status], len(body), answer.request_id or new_request_id(), standing, lines, body)

    def _refused(self, answer: HotAnswer, status: int, seconds: float) -> None:
        answer.request_id = answer.request_id or new_request_id()
        self._services.metrics.request("POST", APPEND_ROUTE, status, seconds=seconds)
        if self._services.settings.log.requests:
            logger.info(
                "request",
                method="POST",
                path=f"/v1/threads/{answer.command.thread_id}/events",
                status=status,
                ms=round(seconds * 1000, 2),
                principal=answer.principal_id,
                request_id=answer.request_id.decode(),
            )
