"""How 1.0 writes a message: no tags, enums in capitals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bubble.protocol.jsontext import JSONValue
from bubble.reef.events import DataPart, FilePart, Part, TextPart
from bubble.reef.messages import OutgoingMessage

__all__ = ["HEADERS", "message"]

HEADERS: Final[Mapping[str, str]] = {"A2A-Version": "1.0"}


def message(outgoing: OutgoingMessage) -> dict[str, JSONValue]:
    """The `Message` of 1.0."""
    written: dict[str, JSONValue] = {
        "messageId": outgoing.message_id,
        "contextId": outgoing.context_id,
        "role": "ROLE_USER",
        "parts": [_part(part) for part in outgoing.parts],
    }
    return written if outgoing.task_id is None else {**written, "taskId": outgoing.task_id}


def _part(part: Part) -> JSONValue:
    match part:
        case TextPart(text=text):
            return {"text": text}
        case FilePart():
            content: dict[str, JSONValue] = {"url": part.url} if part.base64 is None else {"raw": part.base64}
            if part.media_type:
                content["mediaType"] = part.media_type
            if part.filename:
                content["filename"] = part.filename
            return content
        case DataPart(data=data, kind=None):
            return {"data": data}
        case DataPart(data=data, kind=kind):
            return {"data": data, "metadata": {"adk_type": kind}}
