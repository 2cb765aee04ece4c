"""`/openapi.json`: OpenAPI 3.1, made from the table of operations, so that it describes exactly what is there."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Mapping
from functools import lru_cache
from http import HTTPStatus
from typing import Final

import msgspec

from bubble.auth.browser import CSRF_HEADER, SESSION_COOKIES
from bubble.protocol.errors import ERROR_CODES, BubbleErrorCode, error_from_code
from bubble.protocol.identifiers import MAX_SEQ, NAME_PATTERN
from bubble.protocol.sse import MAX_ID
from bubble.protocol.version import VERSION
from bubble.server.answers import ErrorBody
from bubble.server.operations import Operation, Operations
from bubble.server.schemas import (
    Schemas,
    event_components,
    message_components,
    reference,
    schema_of,
    struct_components,
)

__all__ = ["errors_of", "openapi_document"]

_SUMMARY: Final = "A durable log for conversations between people and agents"
_NAME: Final = {"type": "string", "pattern": NAME_PATTERN, "minLength": 1, "maxLength": 128}
_STATUS: Final[Mapping[BubbleErrorCode, int]] = {code: error_from_code(code, "").http_status for code in ERROR_CODES}
_REQUEST_HEADERS: Final[Mapping[str, Schemas]] = {
    "Idempotency-Key": {
        "description": "Makes a repeat answer with the first result. Kept 24 hours, for this thread and caller.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 128},
    },
    "Bubble-Expected-Head": {
        "description": "Append only if the thread's head is this seq.",
        "schema": {"type": "integer", "minimum": 0, "maximum": MAX_SEQ},
    },
    "Last-Event-ID": {
        "description": "The id of the last event received; beats `fromSeq`.",
        "schema": {"type": "integer", "minimum": 0, "maximum": MAX_SEQ - 1},
    },
}
# Where an operation means something else by the same name.
_OWN_REQUEST_HEADERS: Final[Mapping[tuple[str, str], Schemas]] = {
    ("watchBot", "Last-Event-ID"): {
        "description": "The id of the last event received, a cursor; beats `resumeFrom`.",
        "schema": {"type": "string", "maxLength": MAX_ID},
    },
}
_ANSWER_HEADERS: Final[Mapping[str, Schemas]] = {
    "Bubble-Protocol-Version": {"description": "The protocol's version.", "schema": {"type": "string", "const": "1"}},
    "X-Request-Id": {
        "description": "Names this request in the server's log; the caller's own if it sent a sane one.",
        "schema": {"type": "string"},
    },
    "Idempotent-Replay": {
        "description": "`true` where an earlier request with the same key stored this.",
        "schema": {"type": "string", "const": "true"},
    },
    "Set-Cookie": {"description": "The session cookie.", "schema": {"type": "string"}},
    "Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer", "minimum": 1}},
    "WWW-Authenticate": {"description": "`Bearer`.", "schema": {"type": "string"}},
}
# Lists that are raw in the structs: events, because they are kept to the byte, and messages, which are encoded one by one.
_RAW_LISTS: Final = {
    "Batch": ("events", "AppendableEvent"),
    "ImportThread": ("events", "StoredEvent"),
    "StoredEvents": ("events", "StoredEvent"),
    "EventPage": ("events", "StoredEvent"),
    "MessagePage": ("messages", "BubbleMessage"),
}
_EVERYWHERE: Final = ("Bubble-Protocol-Version", "X-Request-Id")
_WITH_STATUS: Final = {401: ("WWW-Authenticate",), 429: ("Retry-After",)}
_SECURITY: Final[Schemas] = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "A local token, or a JWT of the configured issuer."},
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": SESSION_COOKIES[1],
        "description": f"The bundled page's session; under TLS the cookie is called `{SESSION_COOKIES[0]}`.",
    },
    "csrf": {
        "type": "apiKey",
        "in": "header",
        "name": CSRF_HEADER,
        "description": "The session's `csrfToken`; unsafe methods by cookie need it, and the page's `Origin`. A read that carries "
        "another session's is refused.",
    },
}


@lru_cache(maxsize=8)
def openapi_document(operations: Operations, *, root: str = "") -> dict[str, object]:
    """The document; `root` is the path under which the application is mounted."""
    paths: dict[str, dict[str, object]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Bubble",
            "version": VERSION,
            "summary": _SUMMARY,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": root or "/"}],
        "tags": [{"name": tag} for tag in dict.fromkeys(operation.tag for operation in operations)],
        "paths": paths,
        "components": {
            "schemas": _schemas(operations),
            "headers": _ANSWER_HEADERS,
            "securitySchemes": _SECURITY,
        },
    }


def _schemas(operations: Iterable[Operation]) -> Schemas:
    structs: dict[str, type[msgspec.Struct]] = {"ErrorBody": ErrorBody}
    for operation in operations:
        for annotation in (operation.body, operation.body_shape, operation.content):
            structs.update({each.__name__: each for each in _structs(annotation)})
    components = struct_components(structs.values())
    for name, (member, entry) in _RAW_LISTS.items():
        schema = typing.cast("dict[str, typing.Any]", components[name])
        schema["properties"][member] = {"type": "array", "items": reference(entry)}
    return {**components, **event_components(), **message_components()}


def _structs(annotation: object) -> Iterable[type[msgspec.Struct]]:
    if isinstance(annotation, types.UnionType):
        for each in typing.get_args(annotation):
            yield from _structs(each)
    elif isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        yield annotation


def _operation(operation: Operation) -> Schemas:
    document: Schemas = {
        "operationId": operation.name,
        "summary": operation.summary,
        "description": operation.description,
        "tags": [operation.tag],
        "parameters": [*_path_parameters(operation), *_query_parameters(operation), *_header_parameters(operation)],
        "responses": _responses(operation),
        "security": _security(operation),
    }
    if operation.takes_body:
        shape = operation.body or operation.body_shape
        schema = reference("AppendableEvent") if shape is None else schema_of(shape)
        document["requestBody"] = {
            "required": operation.body_required,
            "content": {"application/json": {"schema": schema}},
        }
    return document


def _path_parameters(operation: Operation) -> Iterable[Schemas]:
    for name in operation.parameters:
        yield {"name": name, "in": "path", "required": True, "schema": _NAME}


def _query_parameters(operation: Operation) -> Iterable[Schemas]:
    if operation.query is None:
        return
    components = typing.cast("dict[str, typing.Any]", struct_components([operation.query]))
    shape = components[operation.query.__name__]
    for name, schema in shape["properties"].items():
        required = name in shape.get("required", ())
        yield {"name": name, "in": "query", "required": required, "schema": _without_null(schema)}


def _without_null(schema: dict[str, typing.Any]) -> Schemas:
    # None means that the parameter was not given; it cannot be written in a query.
    choices = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    rest = {key: value for key, value in schema.items() if key not in ("anyOf", "default") or value is not None}
    if len(choices) == 1:
        return {**{key: value for key, value in rest.items() if key not in ("anyOf", "default")}, **choices[0]}
    return rest


def _header_parameters(operation: Operation) -> Iterable[Schemas]:
    for name in operation.request_headers:
        described = _OWN_REQUEST_HEADERS.get((operation.name, name)) or _REQUEST_HEADERS[name]
        yield {"name": name, "in": "header", "required": False, **described}


def _security(operation: Operation) -> list[dict[str, list[str]]]:
    if operation.access == "none":
        return []
    by_cookie: dict[str, list[str]] = {"session": []}
    if operation.method != "GET":
        by_cookie["csrf"] = []
    return [{"bearer": []}, by_cookie]


def _responses(operation: Operation) -> dict[str, Schemas]:
    responses = {}
    for status in sorted({operation.status, *operation.statuses}):
        responses[str(status)] = _success(operation, status)
    by_status: dict[int, list[BubbleErrorCode]] = {}
    for code in errors_of(operation):
        by_status.setdefault(_STATUS[code], []).append(code)
    for status, codes in sorted(by_status.items()):
        responses[str(status)] = _failure(status, codes)
    return responses


def errors_of(operation: Operation) -> tuple[BubbleErrorCode, ...]:
    """Every error that the operation may answer with."""
    codes: set[BubbleErrorCode] = {"invalid_request", "internal", *operation.errors}
    if not operation.while_draining:
        codes.add("unavailable")
    if operation.access == "bearer":
        codes |= {"unauthenticated", "rate_limited", "forbidden"}
    if operation.takes_body:
        codes.add("payload_too_large")
    return tuple(code for code in ERROR_CODES if code in codes)


def _success(operation: Operation, status: int) -> Schemas:
    response: Schemas = {
        "description": HTTPStatus(status).phrase,
        "headers": _headers((*_EVERYWHERE, *operation.answer_headers)),
    }
    has_content = operation.content is not type(None) or operation.media_type == "text/event-stream"
    if has_content and status != HTTPStatus.NOT_MODIFIED:
        response["content"] = {operation.media_type.partition(";")[0]: {"schema": _content_schema(operation)}}
    return response


def _content_schema(operation: Operation) -> Schemas:
    if operation.content is bytes and operation.media_type == "application/json":
        return reference("StoredEvent")
    if operation.content is bytes or operation.content is type(None):
        return {"type": "string"}
    return schema_of(operation.content)


def _failure(status: int, codes: Iterable[BubbleErrorCode]) -> Schemas:
    return {
        "description": ", ".join(f"`{code}`" for code in codes),
        "headers": _headers((*_EVERYWHERE, *_WITH_STATUS.get(status, ()))),
        "content": {"application/json": {"schema": reference("ErrorBody")}},
    }


def _headers(names: Iterable[str]) -> Schemas:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}
