"""Metadata as JSON text, so that a store holds its own copy and gives everybody another one."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from bubble.protocol.errors import InvalidRequest
from bubble.protocol.jsontext import dump_json, load_json
from bubble.protocol.resources import Metadata

__all__ = ["metadata_from_text", "metadata_text"]


def metadata_text(metadata: Metadata | None) -> bytes | None:
    """The JSON text to keep; `InvalidRequest` for what JSON cannot say."""
    if metadata is None:
        return None
    try:
        return dump_json(metadata)
    except ValueError as error:
        raise InvalidRequest(f"`$.metadata` is not JSON: {error}.") from None


def metadata_from_text(text: bytes | None) -> Metadata | UnsetType:
    """What `metadata_text` kept, for a resource."""
    value = UNSET if text is None else load_json(text)
    return value if isinstance(value, dict) else UNSET
