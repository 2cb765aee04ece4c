"""A2A 0.3 over HTTP+JSON, as its official server speaks it: the JSON of protobuf messages, with two peculiarities.

Data is wrapped once more (`{"data": {"data": …}}`). And the bytes of a file are the base64 *text* of the content, so that in JSON, where
bytes are base64, they are encoded twice. Servers that encode once are understood as well.
"""

from __future__ import annotations

import base64
import re
from dataclasses import replace

from bubble.protocol.jsontext import JSONValue
from bubble.reef.dialects.rest import Rest
from bubble.reef.events import AgentEvent, Content, DataPart, FilePart, Part, TextPart
from bubble.reef.messages import OutgoingMessage

__all__ = ["Rest03"]

_BASE64 = re.compile(
    rb"(?:[A-Za-z0-9+/]{4})+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?|[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}="
)


def _message(outgoing: OutgoingMessage) -> JSONValue:
    # The protobuf of 0.3 has `content` where the others have `parts`.
    written: dict[str, JSONValue] = {
        "messageId": outgoing.message_id,
        "contextId": outgoing.context_id,
        "role": "ROLE_USER",
        "content": [_part(part) for part in outgoing.parts],
    }
    return written if outgoing.task_id is None else {**written, "taskId": outgoing.task_id}


def _part(part: Part) -> JSONValue:
    match part:
        case TextPart(text=text):
            return {"text": text}
        case FilePart():
            return {"file": _file(part)}
        case DataPart(data=data, kind=None):
            return {"data": {"data": data}}
        case DataPart(data=data, kind=kind):
            return {"data": {"data": data}, "metadata": {"adk_type": kind}}


def _file(part: FilePart) -> JSONValue:
    content: dict[str, JSONValue] = (
        {"fileWithUri": part.url} if part.base64 is None else {"fileWithBytes": _encoded(part.base64.encode("ascii"))}
    )
    if part.media_type:
        content["mimeType"] = part.media_type
    if part.filename:
        content["name"] = part.filename
    return content


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


class Rest03(Rest):
    """Everything below `/v1`."""

    generation = "0.3"
    prefix = "/v1"

    def message(self, outgoing: OutgoingMessage) -> JSONValue:
        return _message(outgoing)

    def read(self, payload: JSONValue) -> AgentEvent | None:
        event = super().read(payload)
        return None if event is None else replace(event, contents=tuple(_unwrapped(each) for each in event.contents))


def _unwrapped(content: Content) -> Content:
    return replace(content, parts=tuple(_unwrapped_part(part) for part in content.parts))


def _unwrapped_part(part: Part) -> Part:
    match part:
        case DataPart(data={"data": inner, **others}) if not others:
            return replace(part, data=inner)
        case FilePart(base64=str(content)):
            return replace(part, base64=_decoded_once(content, is_text=(part.media_type or "").startswith("text/")))
    return part


def _decoded_once(content: str, *, is_text: bool) -> str:
    # The content of an image or a document is hardly ever base64 itself; that of a text hardly ever base64 of another text.
    try:
        inner = base64.b64decode(content, validate=True)
        if not _BASE64.fullmatch(inner):
            return content
        if is_text:
            base64.b64decode(inner).decode("utf-8")
    except ValueError:
        return content
    return inner.decode("ascii")
