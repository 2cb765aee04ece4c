"""Where a list goes on: an opaque `after` that holds the sort key of the last entry, and the size of a page."""

from __future__ import annotations

import base64
import binascii
from typing import Final, TypeVar

import msgspec

from bubble.protocol.errors import InvalidRequest
from bubble.protocol.limits import Limits

__all__ = ["decode_cursor", "encode_cursor", "page_size"]

Key = TypeVar("Key")

_MOST: Final = Limits().page_events
_MOST_NUMBER: Final = 2**62


def encode_cursor(*key: int | str) -> str:
    """The `next_after` of a page whose last entry has this sort key."""
    return base64.urlsafe_b64encode(msgspec.json.encode(key)).rstrip(b"=").decode("ascii")


def decode_cursor(after: str | None, key: type[Key]) -> Key | None:
    """The sort key within `after` (None: the beginning), for instance `decode_cursor(after, tuple[int, str])`.

    Raises `InvalidRequest` where `after` is not a cursor of that kind.
    """
    if after is None:
        return None
    try:
        text = base64.b64decode(after + "=" * (-len(after) % 4), altchars=b"-_", validate=True)
        start = msgspec.json.decode(text, type=key, strict=True)
    except (binascii.Error, ValueError, msgspec.DecodeError):
        raise _no_cursor() from None
    # Beyond what a backend can compare with; no list has given it.
    if isinstance(start, tuple) and any(isinstance(part, int) and abs(part) > _MOST_NUMBER for part in start):
        raise _no_cursor()
    return start


def _no_cursor() -> InvalidRequest:
    return InvalidRequest("`after` is not a cursor of this list.")


def page_size(limit: int) -> int:
    """`limit` clamped to 1,000; `InvalidRequest` below 1 (protocol, section 2)."""
    if limit < 1:
        raise InvalidRequest("`limit` must be at least 1.")
    return min(limit, _MOST)
