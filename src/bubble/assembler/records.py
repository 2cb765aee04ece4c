"""Stored events as the projection reads them: one decoding per event, from the text to plain data.

The log was validated when it was written, so reading it is lenient: members and values that a newer server added are passed over, and an
event that cannot be made out at all is no event for the assembler (`None`), however it came into the log.

So these are not the shapes of `protocol.event_shapes`, which are for the door: those refuse what they do not know, and keep payloads as the
bytes that came.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from bubble.protocol.jsontext import JSONValue, load_json

__all__ = [
    "ApprovalRecord",
    "FinishRecord",
    "InterruptRecord",
    "JoinRecord",
    "LeaveRecord",
    "PartRecord",
    "Record",
    "ResultRecord",
    "StartRecord",
    "TitleRecord",
    "read_record",
]

if TYPE_CHECKING:
    Payload: TypeAlias = dict[str, JSONValue]
else:
    Payload = dict  # msgspec reads annotations at run time


class _Record(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", rename="camel", gc=False):
    seq: int
    created_at: str


class StartRecord(_Record, frozen=True, kw_only=True, tag="run_started"):
    """A run begins."""

    principal_id: str
    run_id: str
    kind: str | None = None


class FinishRecord(_Record, frozen=True, kw_only=True, tag="run_finished"):
    """A run ends."""

    principal_id: str
    run_id: str
    outcome: str | None = None


class PartRecord(_Record, frozen=True, kw_only=True, tag="message_part"):
    """A chunk or a native part; `version` says which."""

    principal_id: str
    run_id: str
    part: Payload
    version: str


class ApprovalRecord(_Record, frozen=True, kw_only=True, tag="tool_call_approval"):
    """A person's decision on a tool call."""

    principal_id: str
    run_id: str
    tool_call_id: str
    approved: bool
    reason: str | None = None


class ResultRecord(_Record, frozen=True, kw_only=True, tag="tool_call_result"):
    """The result of a tool that ran elsewhere."""

    principal_id: str
    run_id: str
    tool_call_id: str
    input: Any
    output: Any


class InterruptRecord(_Record, frozen=True, kw_only=True, tag="run_interrupt_requested"):
    """Somebody asks a run to stop."""

    principal_id: str
    run_id: str


class JoinRecord(_Record, frozen=True, kw_only=True, tag="participant_joined"):
    """Somebody can write from now on."""

    by_principal_id: str
    principal_id: str


class LeaveRecord(_Record, frozen=True, kw_only=True, tag="participant_left"):
    """Somebody can no longer write."""

    by_principal_id: str
    principal_id: str


class TitleRecord(_Record, frozen=True, kw_only=True, tag="thread_title_updated"):
    """The thread has another title."""

    by_principal_id: str
    title: str


Record: TypeAlias = (
    StartRecord
    | FinishRecord
    | PartRecord
    | ApprovalRecord
    | ResultRecord
    | InterruptRecord
    | JoinRecord
    | LeaveRecord
    | TitleRecord
)

_decode = msgspec.json.Decoder(Record).decode


def read_record(text: bytes) -> Record | None:
    """The event that the stored text says; None for a type that this version does not know and for what cannot be made out."""
    try:
        return _decode(text)
    except (msgspec.DecodeError, RecursionError):
        return _read_what_msgspec_refuses(text)


def _read_what_msgspec_refuses(text: bytes) -> Record | None:
    # Lone surrogates and numbers beyond the doubles are JSON, too.
    try:
        record: Record = msgspec.convert(load_json(text), Record)
        return record
    except (ValueError, RecursionError):
        return None
