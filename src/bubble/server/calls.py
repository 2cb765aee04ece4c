"""One request, from the routing to its handler and back."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus

import msgspec
from starlette.types import Receive, Scope, Send

from bubble.auth.identity import Identity
from bubble.auth.policy import IdentityGuard
from bubble.protocol.errors import Unauthenticated
from bubble.protocol.identifiers import check_name
from bubble.server.answers import Answer, encode_json, send_whole
from bubble.server.envelope import exchange_of
from bubble.server.identifying import identify
from bubble.server.operations import Operation, snake
from bubble.server.reading import RequestHeaders, decode_body, decode_query, read_body, require_json
from bubble.server.services import Services

__all__ = ["Call", "carry_out"]


# A body may take `body_timeout` for each of so many bytes that it may have.
_BYTES_IN_TIME = 8 * 1024 * 1024


class _NoQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What a handler may use beside its own parameters. `maybe_identity` is None only where an operation asks for no bearer."""

    services: Services
    headers: RequestHeaders
    maybe_identity: Identity | None
    scope: Scope
    receive: Receive
    send: Send

    @property
    def identity(self) -> Identity:
        """Who is calling."""
        if self.maybe_identity is None:
            raise Unauthenticated("This needs a bearer.")
        return self.maybe_identity

    @property
    def principal_id(self) -> str:
        """The caller's principal."""
        return self.identity.principal.principal_id

    @property
    def guard(self) -> IdentityGuard:
        """The caller's rights, for the store."""
        return self.services.policy.guard(self.identity)


async def carry_out(operation: Operation, services: Services, scope: Scope, receive: Receive, send: Send) -> None:
    """Identifies the caller, decodes, calls the handler, sends what it gives back. Raises `BubbleError` for every refusal."""
    headers = RequestHeaders(scope["headers"])
    identity = None
    if operation.access == "bearer":
        identity = await identify(services, headers, method=operation.method)
        exchange_of(scope).principal_id = identity.principal.principal_id
        services.rates.take(identity.principal.principal_id)
    call = Call(services=services, headers=headers, maybe_identity=identity, scope=scope, receive=receive, send=send)
    arguments = _arguments(operation, scope)
    if operation.takes_body:
        arguments["body"] = await _body(operation, call)
    result = await operation.handler(call, **arguments)
    if not operation.streams:
        await _send(operation, result, send)


def _arguments(operation: Operation, scope: Scope) -> dict[str, object]:
    given = scope["path_params"]
    arguments: dict[str, object] = {snake(name): check_name(given[name], path=name) for name in operation.parameters}
    query = decode_query(scope["query_string"], operation.query or _NoQuery)
    if operation.query is not None:
        arguments["query"] = query
    return arguments


async def _body(operation: Operation, call: Call) -> object:
    require_json(call.headers)
    limit = _limit(operation, call)
    seconds = call.services.settings.body_timeout * max(1.0, limit / _BYTES_IN_TIME)
    body = await read_body(call.receive, call.headers, limit=limit, seconds=seconds)
    if operation.decoder is None:
        return body
    if not body and not operation.body_required:
        body = b"{}"
    return decode_body(body, operation.decoder)


def _limit(operation: Operation, call: Call) -> int:
    limits = call.services.limits
    if operation.size == "import_bytes" and call.identity.principal.deployment_role != "admin":
        return limits.body_bytes  # the shape is checked before the capability, but not at any price
    return int(getattr(limits, operation.size))


async def _send(operation: Operation, result: object, send: Send) -> None:
    answer = result if isinstance(result, Answer) else Answer(content=result)
    status = operation.status if answer.status is None else answer.status
    if answer.content is None or status == HTTPStatus.NOT_MODIFIED:
        await send_whole(send, status=status, body=b"", media_type=None, headers=answer.headers)
        return
    body = answer.content if isinstance(answer.content, bytes) else encode_json(answer.content)
    media_type = answer.media_type or operation.media_type.encode("ascii")
    await send_whole(send, status=status, body=body, media_type=media_type, headers=answer.headers)
