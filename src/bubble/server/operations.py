"""Operations: one declaration per method and path, from which routing, decoding and the OpenAPI document all follow.

*Theory of operation.* A handler's own signature says what it takes: path parameters by name, `query` and `body` by a struct, and what it
returns is its answer. `Operations.add` reads that signature once. What the document says and what the server does come from the same
annotations, so they cannot drift apart.
"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import msgspec

from bubble.protocol.errors import BubbleErrorCode
from bubble.server.answers import Answer

__all__ = ["Access", "Method", "Operation", "Operations", "Schema"]

Method: TypeAlias = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
Access: TypeAlias = Literal["bearer", "none"]
Schema: TypeAlias = Mapping[str, object]
Handler: TypeAlias = Callable[..., Awaitable[object]]
Size: TypeAlias = Literal["body_bytes", "event_bytes", "batch_bytes", "import_bytes"]

_PARAMETER = re.compile(r"\{(\w+)\}")
_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One method on one path. `errors` are the codes that come beside those that every operation of its kind has.

    A handler that takes or gives `bytes` takes or gives an event, unless `body_shape` or `media_type` say otherwise. `size` names the limit
    of the body. `streams` marks a handler that sends its answer itself, `while_draining` one that answers to the last.
    """

    method: Method
    path: str
    name: str
    summary: str
    description: str
    tag: str
    handler: Handler
    access: Access
    status: int
    statuses: Sequence[int]
    errors: Sequence[BubbleErrorCode]
    parameters: Sequence[str]
    query: type[msgspec.Struct] | None
    body: type[msgspec.Struct] | None
    takes_bytes: bool
    body_required: bool
    body_shape: type[msgspec.Struct] | None
    content: object
    media_type: str
    size: Size
    request_headers: Sequence[str]
    answer_headers: Sequence[str]
    streams: bool
    while_draining: bool
    decoder: msgspec.json.Decoder[msgspec.Struct] | None = field(repr=False, compare=False)

    @property
    def takes_body(self) -> bool:
        """Whether there is a body to read."""
        return self.body is not None or self.takes_bytes


class Operations:
    """The table. Order is that of the document."""

    def __init__(self) -> None:
        self._all: list[Operation] = []

    def __iter__(self) -> typing.Iterator[Operation]:
        return iter(self._all)

    def include(self, other: Operations) -> None:
        """Takes over another table's operations."""
        self._all.extend(other._all)

    def add(
        self,
        method: Method,
        path: str,
        *,
        summary: str,
        tag: str,
        access: Access = "bearer",
        status: int = 200,
        statuses: Sequence[int] = (),
        errors: Sequence[BubbleErrorCode] = (),
        body_required: bool = True,
        body_shape: type[msgspec.Struct] | None = None,
        media_type: str = "application/json",
        size: Size = "body_bytes",
        request_headers: Sequence[str] = (),
        answer_headers: Sequence[str] = (),
        streams: bool = False,
        while_draining: bool = False,
    ) -> Callable[[Handler], Handler]:
        """Declares the decorated handler as an operation; its docstring is the description."""

        def declare(handler: Handler) -> Handler:
            hints = typing.get_type_hints(handler, include_extras=True)
            body = hints.get("body")
            is_struct = isinstance(body, type) and issubclass(body, msgspec.Struct)
            content = _content(hints["return"])
            operation = Operation(
                method=method,
                path=path,
                name=_camel(handler.__name__),
                summary=summary,
                description=inspect.getdoc(handler) or "",
                tag=tag,
                handler=handler,
                access=access,
                status=204 if content is type(None) and not streams and status == 200 else status,
                statuses=statuses,
                errors=errors,
                parameters=_PARAMETER.findall(path),
                query=hints.get("query"),
                body=body if is_struct else None,
                takes_bytes=body is bytes,
                body_required=body_required,
                body_shape=body_shape,
                content=content,
                media_type=media_type,
                size=size,
                request_headers=request_headers,
                answer_headers=answer_headers,
                streams=streams,
                while_draining=while_draining,
                decoder=msgspec.json.Decoder(body) if is_struct else None,
            )
            _check(operation, hints)
            self._all.append(operation)
            return handler

        return declare


def _check(operation: Operation, hints: Mapping[str, object]) -> None:
    expected = {snake(name) for name in operation.parameters} | {"call", "return"}
    expected |= {name for name in ("query", "body") if name in hints}
    if set(hints) != expected:
        raise TypeError(f"{operation.name} takes {sorted(hints)}, but its path and bodies give {sorted(expected)}")


def _content(returned: object) -> object:
    if typing.get_origin(returned) is Answer:
        return typing.get_args(returned)[0]
    return returned


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def snake(name: str) -> str:
    """`threadId` → `thread_id`."""
    return _CAPITAL.sub("_", name).lower()
