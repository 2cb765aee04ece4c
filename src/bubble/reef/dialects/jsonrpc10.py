"""A2A 1.0 over JSON-RPC."""

from __future__ import annotations

from typing import ClassVar

from bubble.protocol.jsontext import JSONValue
from bubble.reef.dialects import shapes10
from bubble.reef.dialects.jsonrpc import JsonRpc
from bubble.reef.dialects.reading import Members, by_wrapper
from bubble.reef.events import AgentEvent
from bubble.reef.messages import OutgoingMessage

__all__ = ["JsonRpc10"]


class JsonRpc10(JsonRpc):
    """Methods in Pascal case, events in one-of wrappers."""

    generation = "1.0"
    methods: ClassVar = {
        "stream": "SendStreamingMessage",
        "rejoin": "SubscribeToTask",
        "get": "GetTask",
        "cancel": "CancelTask",
    }
    headers = shapes10.HEADERS

    def message(self, outgoing: OutgoingMessage) -> JSONValue:
        return shapes10.message(outgoing)

    def read_result(self, result: Members) -> AgentEvent | None:
        return by_wrapper(result)
