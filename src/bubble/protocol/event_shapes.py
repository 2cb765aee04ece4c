"""The shapes of the nine events (spec 1, "Event Shapes").

A producer's payload (`part`, `input`, `output`) stays a `msgspec.Raw`: the very bytes that came in are stored and delivered.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from bubble.protocol.identifiers import MAX_SEQ, NAME_PATTERN, RUN_ID_PATTERN, TOOL_CALL_ID_PATTERN

__all__ = [
    "APPENDABLE_TYPES",
    "EVENT_TYPES",
    "SERVER_EMITTED_TYPES",
    "BubbleEvent",
    "EventType",
    "MessagePart",
    "Outcome",
    "PartVersion",
    "ParticipantJoined",
    "ParticipantLeft",
    "RunFinished",
    "RunInterruptRequested",
    "RunKind",
    "RunStarted",
    "ThreadTitleUpdated",
    "ToolCallApproval",
    "ToolCallResult",
]

RunKind = Literal["user_input", "agent_work", "system_work"]
Outcome = Literal["success", "failed", "interrupted", "lost"]
PartVersion = Literal["ai-sdk-v6", "bubble-v1"]


def _shaped(pattern: str, minimum: int, maximum: int) -> Meta:
    return Meta(extra_json_schema={"pattern": pattern, "minLength": minimum, "maxLength": maximum})


PrincipalId: TypeAlias = Annotated[str, _shaped(NAME_PATTERN, 1, 128)]
RunId: TypeAlias = Annotated[str, _shaped(RUN_ID_PATTERN, 1, 256)]
ToolCallId: TypeAlias = Annotated[str, _shaped(TOOL_CALL_ID_PATTERN, 1, 256)]
Snapshot: TypeAlias = Annotated[int, Meta(ge=0, le=MAX_SEQ)]


class _Event(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="type",
    rename="camel",
    forbid_unknown_fields=True,
    omit_defaults=True,
    gc=False,  # an event holds nothing that could hold it, and there are many
):
    pass


class RunStarted(_Event, frozen=True, kw_only=True, tag="run_started"):
    """A run begins: one bounded activity of a principal. `snapshot_seq` is the thread state it started from (0: empty)."""

    principal_id: PrincipalId
    run_id: RunId
    kind: RunKind | UnsetType = UNSET
    snapshot_seq: Snapshot | UnsetType = UNSET


class RunFinished(_Event, frozen=True, kw_only=True, tag="run_finished"):
    """A run ends, however it went; `outcome` says how, where the producer knows."""

    principal_id: PrincipalId
    run_id: RunId
    outcome: Outcome | UnsetType = UNSET


class MessagePart(_Event, frozen=True, kw_only=True, tag="message_part"):
    """One chunk of a run's content; `version` is the vocabulary of `part` alone."""

    principal_id: PrincipalId
    run_id: RunId
    part: Raw
    version: PartVersion


class ToolCallApproval(_Event, frozen=True, kw_only=True, tag="tool_call_approval"):
    """A person's decision on a tool call; `reason` belongs to a rejection only."""

    principal_id: PrincipalId
    run_id: RunId
    tool_call_id: ToolCallId
    approved: bool
    reason: str | UnsetType = UNSET


class ToolCallResult(_Event, frozen=True, kw_only=True, tag="tool_call_result"):
    """The result of a tool that ran outside the run's own loop. `input` and `output` are any JSON."""

    principal_id: PrincipalId
    run_id: RunId
    tool_call_id: ToolCallId
    input: Raw
    output: Raw


class RunInterruptRequested(_Event, frozen=True, kw_only=True, tag="run_interrupt_requested"):
    """Somebody asks a run to stop at its next safe point. A signal, not a guarantee."""

    principal_id: PrincipalId
    run_id: RunId


class ParticipantJoined(_Event, frozen=True, kw_only=True, tag="participant_joined"):
    """Written by the server: `principal_id` can append from now on, by the doing of `by_principal_id`."""

    by_principal_id: PrincipalId
    principal_id: PrincipalId


class ParticipantLeft(_Event, frozen=True, kw_only=True, tag="participant_left"):
    """Written by the server: `principal_id` can no longer append, by the doing of `by_principal_id`."""

    by_principal_id: PrincipalId
    principal_id: PrincipalId


class ThreadTitleUpdated(_Event, frozen=True, kw_only=True, tag="thread_title_updated"):
    """Written by the server: the thread has another title."""

    by_principal_id: PrincipalId
    title: str


BubbleEvent: TypeAlias = (
    RunStarted
    | RunFinished
    | MessagePart
    | ToolCallApproval
    | ToolCallResult
    | RunInterruptRequested
    | ParticipantJoined
    | ParticipantLeft
    | ThreadTitleUpdated
)

EventType = Literal[
    "run_started",
    "run_finished",
    "message_part",
    "tool_call_approval",
    "tool_call_result",
    "run_interrupt_requested",
    "participant_joined",
    "participant_left",
    "thread_title_updated",
]

SERVER_EMITTED_TYPES: Final = frozenset({"participant_joined", "participant_left", "thread_title_updated"})
APPENDABLE_TYPES: Final = (
    "run_started",
    "run_finished",
    "message_part",
    "tool_call_approval",
    "tool_call_result",
    "run_interrupt_requested",
)
EVENT_TYPES: Final = (*APPENDABLE_TYPES, *sorted(SERVER_EMITTED_TYPES))
