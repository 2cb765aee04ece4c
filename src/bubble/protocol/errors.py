"""The closed set of errors, for every door of the product.

    BubbleError
    ├── InvalidRequest       invalid_request     400
    ├── Unauthenticated      unauthenticated     401
    ├── Forbidden            forbidden           403
    ├── NotFound             not_found           404
    ├── Conflict             conflict            409
    ├── PayloadTooLarge      payload_too_large   413
    ├── RateLimited          rate_limited        429
    ├── InternalError        internal            500
    └── Unavailable          unavailable         503

One class, one code, one HTTP status, one process exit code. The same code travels in HTTP bodies, in `error` frames and as the
reason of `thread.subscription_closed`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, get_args

from bubble.protocol.jsontext import JSONValue

__all__ = [
    "ERROR_CODES",
    "BubbleError",
    "BubbleErrorCode",
    "Conflict",
    "Forbidden",
    "InternalError",
    "InvalidRequest",
    "NotFound",
    "PayloadTooLarge",
    "RateLimited",
    "Unauthenticated",
    "Unavailable",
    "error_from_code",
    "route_not_found",
    "thread_not_found",
]

BubbleErrorCode = Literal[
    "invalid_request",
    "unauthenticated",
    "forbidden",
    "not_found",
    "conflict",
    "payload_too_large",
    "rate_limited",
    "internal",
    "unavailable",
]

ERROR_CODES: tuple[BubbleErrorCode, ...] = get_args(BubbleErrorCode)


class BubbleError(Exception):
    """An outcome that the caller can act on.

    `code` is one of `BubbleErrorCode`, `message` is one sentence for a person, `details` is plain JSON data that a program may
    use (for instance `{"headSeq": 7}`). Neither ever holds a secret or anything the caller could not read otherwise.
    """

    code: ClassVar[BubbleErrorCode] = "internal"
    http_status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, details: Mapping[str, JSONValue] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.details = details

    def __str__(self) -> str:
        return self.message


class InvalidRequest(BubbleError):
    """Malformed JSON, a wrong field, a bad cursor, a shape that cannot be appended. The message names the field."""

    code = "invalid_request"
    http_status = 400
    exit_code = 2


class Unauthenticated(BubbleError):
    """No bearer, or none of the drivers knows it."""

    code = "unauthenticated"
    http_status = 401


class Forbidden(BubbleError):
    """The caller may see the thread, but lacks the capability."""

    code = "forbidden"
    http_status = 403


class NotFound(BubbleError):
    """No such thing, or the caller may not know that it exists."""

    code = "not_found"
    http_status = 404


class Conflict(BubbleError):
    """The state of the thread refuses it: run lifecycle, expected head, duplicate subscription, an id that is taken."""

    code = "conflict"
    http_status = 409


class PayloadTooLarge(BubbleError):
    """Over one of the size limits."""

    code = "payload_too_large"
    http_status = 413


class RateLimited(BubbleError):
    """Too many requests or frames; `retry_after` is in seconds."""

    code = "rate_limited"
    http_status = 429

    def __init__(
        self, message: str, *, retry_after: float = 1.0, details: Mapping[str, JSONValue] | None = None
    ) -> None:
        super().__init__(message, details=details)
        self.retry_after = retry_after


class InternalError(BubbleError):
    """Our fault. The message carries neither a stack nor a secret."""

    code = "internal"
    http_status = 500


class Unavailable(BubbleError):
    """The store is out of reach, or this server is draining. Safe to try again."""

    code = "unavailable"
    http_status = 503


_BY_CODE: dict[str, type[BubbleError]] = {
    kind.code: kind
    for kind in (
        InvalidRequest,
        Unauthenticated,
        Forbidden,
        NotFound,
        Conflict,
        PayloadTooLarge,
        RateLimited,
        InternalError,
        Unavailable,
    )
}


def error_from_code(code: str, message: str, *, details: Mapping[str, JSONValue] | None = None) -> BubbleError:
    """The typed error for a code that came over the wire; a code unknown to this version becomes `InternalError`."""
    return _BY_CODE.get(code, InternalError)(message, details=details)


def thread_not_found(thread_id: str) -> NotFound:
    """The one answer for a thread that does not exist and for one that the caller may not know of, so that nobody can tell them apart."""
    return NotFound(f'There is no thread "{thread_id}", or you may not see it.')


def route_not_found() -> NotFound:
    """The answer where the server has nothing at all at a path; a client may see by it that its address of the server is wrong."""
    return NotFound("There is no such route.")
