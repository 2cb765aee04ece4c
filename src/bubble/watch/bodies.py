"""What the body of a row says."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from bubble.protocol.jsontext import JSONValue
from bubble.watch.wire import parse_as_a_browser

__all__ = ["decode_body", "id_of", "text_of"]


def decode_body(body: bytes | None) -> JSONValue | UnsetType:
    """The JSON value; UNSET where the body is missing or no JSON."""
    if body is None:
        return UNSET
    try:
        return parse_as_a_browser(body)
    except ValueError:
        return UNSET


def text_of(body: JSONValue) -> str | None:
    """The text of a text message that was sent; None for every other entry (spec 3, "Event catalog")."""
    if not isinstance(body, dict) or body.get("kind") != "send-message":
        return None
    message = body.get("message")
    if not isinstance(message, dict) or message.get("type") != "text":
        return None
    content = message.get("content")
    return content if isinstance(content, str) else None


def id_of(body: JSONValue | UnsetType) -> str | None:
    """The id that the body gives itself."""
    found = body.get("id") if isinstance(body, dict) else None
    return found if isinstance(found, str) and found else None
