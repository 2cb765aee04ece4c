"""What an agent's stream says, whatever dialect it says it in.

All four dialects are read into one type of event. An event has a carrier, which is where the protocol put it, and contents, which are what
it says: a status message, an artifact, a plain message, or, for a snapshot of a task, several of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from bubble.protocol.jsontext import JSONValue

__all__ = [
    "FINISHED",
    "WAITING",
    "AgentEvent",
    "Carrier",
    "Content",
    "DataPart",
    "FilePart",
    "Part",
    "TaskState",
    "TextPart",
]

TaskState: TypeAlias = Literal[
    "submitted", "working", "input-required", "auth-required", "completed", "failed", "canceled", "rejected", "unknown"
]
Carrier: TypeAlias = Literal["task", "status", "artifact", "message"]

#: The states after which a task takes no more messages.
FINISHED: Final[frozenset[TaskState]] = frozenset({"completed", "failed", "canceled", "rejected"})
#: The states in which a task waits for somebody; its stream is over, the task is not.
WAITING: Final[frozenset[TaskState]] = frozenset({"input-required", "auth-required"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPart:
    """A piece of text. `thought` marks what the model thinks rather than says.

    `partial` is what the agent says of the piece: True for a delta, False for a whole, None where it does not say.
    """

    text: str
    thought: bool = False
    partial: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePart:
    """A file: its content as `base64`, or where it is as `url`; one of them is None."""

    base64: str | None = None
    url: str | None = None
    media_type: str | None = None
    filename: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DataPart:
    """Structured data. `kind` is what the agent calls it (`function_call`, …), where it does."""

    data: JSONValue
    kind: str | None = None
    long_running: bool = False


Part: TypeAlias = TextPart | FilePart | DataPart


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """One message or artifact, without what the user said.

    `id` is the artifact's or message's id. `append` and `last_chunk` are those of an artifact update; both are hints, no more.
    `is_status` marks the message of a task's present status.
    """

    carrier: Carrier
    parts: tuple[Part, ...]
    id: str | None = None
    append: bool = False
    last_chunk: bool = False
    is_status: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEvent:
    """One event of a stream. A `status` or `task` has a `state`; a `message` is a reply without a task."""

    carrier: Carrier
    contents: tuple[Content, ...] = ()
    state: TaskState | None = None
    task_id: str | None = None

    @property
    def ends_the_task(self) -> bool:
        """Whether the task takes no more messages after this."""
        return self.state in FINISHED
