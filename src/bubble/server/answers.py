"""What a handler gives back, and how an error looks (protocol, section 3)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import msgspec
from msgspec import UNSET, UnsetType
from starlette.types import Send

from bubble.protocol.errors import BubbleError, BubbleErrorCode, RateLimited, Unauthenticated
from bubble.protocol.jsontext import JSONValue, dump_json

__all__ = ["Answer", "ErrorBody", "Header", "encode_json", "error_body", "error_headers", "send_whole"]

Header = tuple[bytes, bytes]
T = TypeVar("T")

_encoder = msgspec.json.Encoder()


class ErrorBody(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What went wrong: `code` for programs, `message` for people, `details` where there is more to tell."""

    code: BubbleErrorCode
    message: str
    details: Mapping[str, JSONValue] | UnsetType = UNSET


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Generic[T]):
    """An answer with more to it than its content. `status` and `media_type` None are the operation's ordinary ones."""

    content: T
    status: int | None = None
    media_type: bytes | None = None
    headers: Sequence[Header] = field(default=())


def encode_json(value: object) -> bytes:
    """The JSON text of a resource."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:  # a lone surrogate, from a store that was filled by embedded use
        return dump_json(msgspec.to_builtins(value))


def error_body(error: BubbleError) -> bytes:
    """The body that says `error`."""
    details = UNSET if error.details is None else error.details
    return encode_json(ErrorBody(code=error.code, message=error.message, details=details))


def error_headers(error: BubbleError) -> list[Header]:
    """The headers that go with it."""
    if isinstance(error, Unauthenticated):
        return [(b"www-authenticate", b'Bearer realm="bubble"')]
    if isinstance(error, RateLimited):
        return [(b"retry-after", b"%d" % max(1, math.ceil(error.retry_after)))]
    return []


async def send_whole(
    send: Send, *, status: int, body: bytes, media_type: bytes | None, headers: Sequence[Header] = ()
) -> None:
    """One whole answer; `media_type` None for one without content."""
    lines = [] if media_type is None else [(b"content-type", media_type), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": [*lines, *headers]})
    await send({"type": "http.response.body", "body": body})
