"""What bodies and queries share."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

from bubble.protocol.errors import InvalidRequest, PayloadTooLarge
from bubble.protocol.identifiers import MAX_SEQ, NAME_PATTERN
from bubble.protocol.limits import Limits
from bubble.protocol.resources import Metadata
from bubble.server.answers import encode_json

__all__ = [
    "Body",
    "Cursor",
    "Name",
    "PageQuery",
    "Query",
    "Seq",
    "Title",
    "check_metadata",
    "page_limit",
    "refuse_reserved",
]

METADATA_BYTES = 16 * 1024

Name: TypeAlias = Annotated[str, Meta(extra_json_schema={"pattern": NAME_PATTERN, "minLength": 1, "maxLength": 128})]
Title: TypeAlias = Annotated[str, Meta(min_length=1, max_length=512)]
Seq: TypeAlias = Annotated[int, Meta(ge=1, le=MAX_SEQ)]
Cursor: TypeAlias = Annotated[str, Meta(min_length=1, max_length=512)]


class Body(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """A request body."""


class Query(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """A query string."""


class PageQuery(Query, frozen=True, kw_only=True):
    """Where a list goes on: `after` is the `nextAfter` of the page before; `limit` above the ceiling is clamped."""

    after: Cursor | None = None
    limit: Annotated[int, Meta(ge=1)] | None = None


def page_limit(limit: int | None, limits: Limits) -> int:
    """How many entries a page gets (protocol, section 2)."""
    return limits.page_default if limit is None else min(limit, limits.page_events)


def refuse_reserved(name: str, *, path: str) -> None:
    """`InvalidRequest` for an id that is the server's own (protocol, section 2)."""
    if name.startswith("system:"):
        raise InvalidRequest(f"`{path}` begins with `system:`, which is reserved.")


def check_metadata(metadata: Metadata) -> None:
    """`PayloadTooLarge` for metadata over 16 KiB of JSON: every list of threads or principals would carry it."""
    size = len(encode_json(metadata))
    if size > METADATA_BYTES:
        raise PayloadTooLarge(f"`$.metadata` has {size} bytes; it has at most {METADATA_BYTES}.")
