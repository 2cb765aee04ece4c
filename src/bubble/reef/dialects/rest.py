"""Paths instead of methods: HTTP+JSON, as far as both generations share it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from bubble.protocol.jsontext import JSONValue
from bubble.reef.addresses import below, path_segment
from bubble.reef.dialects.base import Dialect, Method, Request
from bubble.reef.dialects.reading import as_members, by_wrapper, error_of
from bubble.reef.discretion import quoted
from bubble.reef.events import AgentEvent
from bubble.reef.failures import Broken
from bubble.reef.messages import OutgoingMessage

__all__ = ["Rest"]


class Rest(Dialect):
    """A tenant goes in the path, before everything else; a query of the interface's url stays behind the path.

    A task whose id can be no part of an address is `Broken`.
    """

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
        tenant = f"/{path_segment(self.interface.tenant)}" if self.interface.tenant else ""
        url = below(self.interface.url, f"{tenant}{self.prefix}{path}")
        return Request(method=method, url=url, body=body, headers=self.headers)

    def read(self, payload: JSONValue) -> AgentEvent | None:
        answer = as_members(payload)
        if answer.get("error") is not None:
            raise error_of(answer["error"])
        return by_wrapper(answer)


def _task(task_id: str) -> str:
    try:
        return f"/tasks/{path_segment(task_id)}"
    except ValueError as error:
        raise Broken(f"The agent calls its task {quoted(task_id)!r}: {error}.") from None
