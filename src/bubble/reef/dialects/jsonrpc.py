"""The envelope of JSON-RPC, which both generations share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Literal, TypeAlias

from bubble.protocol.identifiers import new_id
from bubble.protocol.jsontext import JSONValue
from bubble.reef.dialects.base import Dialect, Request
from bubble.reef.dialects.reading import Members, as_members, error_of
from bubble.reef.events import AgentEvent
from bubble.reef.messages import OutgoingMessage

__all__ = ["JsonRpc", "Procedure"]

Procedure: TypeAlias = Literal["stream", "rejoin", "get", "cancel"]


class JsonRpc(Dialect):
    """Everything is a POST to one url; `{result}` and `{error}` are taken out of their envelope."""

    binding = "JSONRPC"
    methods: ClassVar[Mapping[Procedure, str]]
    headers: ClassVar[Mapping[str, str]] = {}

    @abstractmethod
    def message(self, outgoing: OutgoingMessage) -> JSONValue:
        """The message in this generation's shape."""

    @abstractmethod
    def read_result(self, result: Members) -> AgentEvent | None:
        """The event that a result is."""

    def stream(self, message: OutgoingMessage) -> Request:
        return self._call("stream", {"message": self.message(message)})

    def rejoin(self, task_id: str) -> Request:
        return self._call("rejoin", {"id": task_id})

    def get(self, task_id: str) -> Request:
        return self._call("get", {"id": task_id})

    def cancel(self, task_id: str) -> Request:
        return self._call("cancel", {"id": task_id})

    def _call(self, procedure: Procedure, params: dict[str, JSONValue]) -> Request:
        if self.interface.tenant:
            params = {"tenant": self.interface.tenant, **params}
        body: dict[str, JSONValue] = {
            "jsonrpc": "2.0",
            "id": new_id(),
            "method": self.methods[procedure],
            "params": params,
        }
        return Request(method="POST", url=self.interface.url, body=body, headers=self.headers)

    def read(self, payload: JSONValue) -> AgentEvent | None:
        answer = as_members(payload)
        if answer.get("error") is not None:
            raise error_of(answer["error"])
        result = answer.get("result")
        return self.read_result(result) if isinstance(result, dict) else None
