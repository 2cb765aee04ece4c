"""What a thread is folded into: messages in the shape of the AI SDK's UI messages, and the names of the parts that only Bubble makes.

A message is plain JSON data. Whatever of it was handed out is shared between snapshots and never changed again; do not change it either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NotRequired, TypeAlias, TypedDict

from bubble.protocol.jsontext import JSONValue

__all__ = [
    "AGENT_EVENT",
    "APPROVAL",
    "EXTENSION",
    "FACTS",
    "INTERRUPT",
    "PARTICIPANT",
    "TITLE",
    "TOOL_RESULT",
    "BubbleMessage",
    "BubbleMetadata",
    "Grouping",
    "MessagePart",
    "Role",
    "RoleOf",
    "Speaker",
    "default_role",
    "message_text",
]

AGENT_EVENT: Final = "data-bubble-agent-event"
APPROVAL: Final = "data-bubble-approval"
EXTENSION: Final = "data-bubble-extension"
INTERRUPT: Final = "data-bubble-interrupt"
PARTICIPANT: Final = "data-bubble-participant"
TITLE: Final = "data-bubble-title"
TOOL_RESULT: Final = "data-bubble-tool-result"

#: What somebody did, as the log has it. They come from events of their own and never from a chunk, which could name anybody.
FACTS: Final = frozenset({APPROVAL, INTERRUPT, PARTICIPANT, TITLE, TOOL_RESULT})

Grouping = Literal["speaker", "run"]
Role = Literal["user", "assistant", "system"]
MessagePart: TypeAlias = Mapping[str, JSONValue]


class BubbleMetadata(TypedDict):
    """`metadata.bubble` of a message.

    - `principalId`: its author. `runId`, `kind`, `outcome`: its run's; a message that belongs to no run has none of them.
    - `firstSeq`, `createdAt`: the event that opened it. `lastSeq`, `updatedAt`: the last event that changed it.
    - `continuation`: n for the message with the id `runId~n`.
    - `reactions`: who put which emoji on it, in order of first addition.
    - `error`: the text of the last `error` chunk. `producerMessageId`: the `messageId` of the producer's last `start` chunk.
    - `producerMetadata`: the producer's metadata where it is not an object, so that nothing can stand beside it.
    """

    principalId: str
    runId: NotRequired[str]
    kind: NotRequired[str]
    firstSeq: int
    lastSeq: int
    createdAt: str
    updatedAt: str
    status: Literal["streaming", "finished"]
    outcome: NotRequired[str]
    continuation: NotRequired[int]
    reactions: NotRequired[dict[str, list[str]]]
    error: NotRequired[str]
    producerMessageId: NotRequired[str]
    producerMetadata: NotRequired[JSONValue]


class MessageMetadata(TypedDict):
    """The producer's own metadata, and Bubble's beside it."""

    bubble: BubbleMetadata


class BubbleMessage(TypedDict):
    """One message. Its `parts` are the AI SDK's UI parts; `data-bubble-*` parts are Bubble's own (see the constants here)."""

    id: str
    role: Role
    parts: list[MessagePart]
    metadata: MessageMetadata


@dataclass(frozen=True, slots=True, kw_only=True)
class Speaker:
    """Whose message it is, for choosing its role. A message that belongs to no run has neither `run_id` nor `kind`."""

    principal_id: str
    run_id: str | None
    kind: str | None
    is_starter: bool


RoleOf: TypeAlias = Callable[[Speaker], Role]

_ROLES: Final[Mapping[str | None, Role]] = {
    "user_input": "user",
    "agent_work": "assistant",
    "system_work": "system",
}


def message_text(message: Mapping[str, object]) -> str:
    """What a message says, without reasoning: its text parts in order, with a blank line between those that have any."""
    parts = message.get("parts")
    given = [part for part in parts if isinstance(part, Mapping)] if isinstance(parts, Sequence) else []
    return "\n\n".join(str(part.get("text")) for part in given if part.get("type") == "text" and part.get("text"))


def default_role(speaker: Speaker) -> Role:
    """The role by the kind of the run, `assistant` without one; `user` for who speaks in a run of somebody else's."""
    if speaker.run_id is None:
        return "system"
    return _ROLES.get(speaker.kind, "assistant") if speaker.is_starter else "user"
