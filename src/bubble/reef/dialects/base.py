"""What a dialect is: how requests are written, and how what comes back is read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeAlias

from bubble.protocol.jsontext import JSONValue
from bubble.reef.card import Binding, Generation, Interface
from bubble.reef.events import AgentEvent
from bubble.reef.messages import OutgoingMessage

__all__ = ["Dialect", "Method", "Request"]

Method: TypeAlias = Literal["GET", "POST"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One HTTP request, without what every request to the agent has. `body` is None for none."""

    method: Method
    url: str
    body: JSONValue = None
    headers: Mapping[str, str] = field(default_factory=dict)


class Dialect(ABC):
    """One generation of A2A over one binding, spoken to the interface it is made for."""

    generation: ClassVar[Generation]
    binding: ClassVar[Binding]

    def __init__(self, interface: Interface) -> None:
        self.interface = interface

    @abstractmethod
    def stream(self, message: OutgoingMessage) -> Request:
        """Sends a message; the answer is a stream."""

    @abstractmethod
    def rejoin(self, task_id: str) -> Request:
        """Takes up the stream of a task again."""

    @abstractmethod
    def get(self, task_id: str) -> Request:
        """Asks for a task as it is; the answer is one object."""

    @abstractmethod
    def cancel(self, task_id: str) -> Request:
        """Asks the agent to stop working on a task; the answer is one object."""

    @abstractmethod
    def read(self, payload: JSONValue) -> AgentEvent | None:
        """What one object of an answer says; None where it says nothing that this version knows.

        Raises `Refused` where it is an error, and `Broken` where it is not even an object.
        """
