"""What reef says to an agent, before a dialect puts it into its words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from bubble.protocol.identifiers import new_id
from bubble.protocol.jsontext import JSONValue
from bubble.reef.events import DataPart, Part

__all__ = ["FUNCTION_RESPONSE", "OutgoingMessage", "function_response"]

#: What agents built with ADK call the answer to a function call, in the metadata of the part.
FUNCTION_RESPONSE: Final = "function_response"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingMessage:
    """One message of the people's. `context_id` is the thread; `task_id` the task that it continues, if it does."""

    parts: tuple[Part, ...]
    context_id: str
    task_id: str | None = None
    message_id: str = field(default_factory=new_id)


def function_response(*, call_id: str, name: str | None, output: JSONValue) -> DataPart:
    """The answer to a function call. Agents take an object only, so that anything else is wrapped as `{"result": …}`."""
    response: JSONValue = output if isinstance(output, dict) else {"result": output}
    data: dict[str, JSONValue] = {"id": call_id, "response": response}
    return DataPart(data=data if name is None else {**data, "name": name}, kind=FUNCTION_RESPONSE)
