"""A2A 0.3 over JSON-RPC."""

from __future__ import annotations

from typing import ClassVar

from bubble.protocol.jsontext import JSONValue
from bubble.reef.dialects.jsonrpc import JsonRpc
from bubble.reef.dialects.reading import Members, by_kind
from bubble.reef.events import AgentEvent, DataPart, FilePart, Part, TextPart
from bubble.reef.messages import OutgoingMessage

__all__ = ["JsonRpc03"]


def _message(outgoing: OutgoingMessage) -> JSONValue:
    written: dict[str, JSONValue] = {
        "kind": "message",
        "messageId": outgoing.message_id,
        "contextId": outgoing.context_id,
        "role": "user",
        "parts": [_part(part) for part in outgoing.parts],
    }
    return written if outgoing.task_id is None else {**written, "taskId": outgoing.task_id}


def _part(part: Part) -> JSONValue:
    match part:
        case TextPart(text=text):
            return {"kind": "text", "text": text}
        case FilePart():
            return {"kind": "file", "file": _file(part)}
        case DataPart(data=data, kind=None):
            return {"kind": "data", "data": data}
        case DataPart(data=data, kind=kind):
            return {"kind": "data", "data": data, "metadata": {"adk_type": kind}}


def _file(part: FilePart) -> JSONValue:
    content: dict[str, JSONValue] = {"uri": part.url} if part.base64 is None else {"bytes": part.base64}
    if part.media_type:
        content["mimeType"] = part.media_type
    if part.filename:
        content["name"] = part.filename
    return content


class JsonRpc03(JsonRpc):
    """Methods with slashes, events with a `kind`. No header names a version: servers of this generation may refuse the next one's."""

    generation = "0.3"
    methods: ClassVar = {
        "stream": "message/stream",
        "rejoin": "tasks/resubscribe",
        "get": "tasks/get",
        "cancel": "tasks/cancel",
    }

    def message(self, outgoing: OutgoingMessage) -> JSONValue:
        return _message(outgoing)

    def read_result(self, result: Members) -> AgentEvent | None:
        return by_kind(result)
