"""Paths instead of methods: HTTP+JSON, as far as both generations share it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar
from urllib.parse import quote

from bubble.protocol.jsontext import JSONValue
from bubble.reef.dialects.base import Dialect, Method, Request
from bubble.reef.dialects.reading import as_members, by_wrapper, error_of
from bubble.reef.events import AgentEvent
from bubble.reef.messages import OutgoingMessage

__all__ = ["Rest"]


class Rest(Dialect):
    """A tenant goes in the path, before everything else."""

    binding = "HTTP+JSON"
    prefix: ClassVar[str]
    headers: ClassVar[Mapping[str, str]] = {}

    @abstractmethod
    def message(self, outgoing: OutgoingMessage) -> JSONValue:
        """The message in this generation's shape."""

    def stream(self, message: OutgoingMessage) -> Request:
        return self._request("POST", "/message:stream", {"message": self.message(message)})

    def rejoin(self, task_id: str) -> Request:
        return self._request("GET", f"{_task(task_id)}:subscribe")

    def get(self, task_id: str) -> Request:
        return self._request("GET", _task(task_id))

    def cancel(self, task_id: str) -> Request:
        return self._request("POST", f"{_task(task_id)}:cancel", {})

    def _request(self, method: Method, path: str, body: JSONValue = None) -> Request:
        tenant = f"/{quote(self.interface.tenant, safe='')}" if self.interface.tenant else ""
        url = f"{self.interface.url.rstrip('/')}{tenant}{self.prefix}{path}"
        return Request(method=method, url=url, body=body, headers=self.headers)

    def read(self, payload: JSONValue) -> AgentEvent | None:
        answer = as_members(payload)
        if answer.get("error") is not None:
            raise error_of(answer["error"])
        return by_wrapper(answer)


def _task(task_id: str) -> str:
    return f"/tasks/{quote(task_id, safe='')}"
