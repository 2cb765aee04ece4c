"""How a segment looks from outside: the message with its metadata (assembler, section 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from msgspec import UNSET

from bubble.assembler.messages import BubbleMessage, BubbleMetadata, MessageMetadata, MessagePart, RoleOf, Speaker
from bubble.protocol.jsontext import JSONValue

if TYPE_CHECKING:
    from bubble.assembler.segment import Segment

__all__ = ["closed", "render"]

_BLOCKS = frozenset({"text", "reasoning"})


def render(
    segment: Segment, *, parts: list[MessagePart], reactions: dict[str, list[str]], role_of: RoleOf
) -> BubbleMessage:
    """The message that a segment stands for, with these parts and reactions."""
    run = segment.run
    speaker = Speaker(
        principal_id=segment.author,
        run_id=None if run is None else run.id,
        kind=None if run is None else run.kind,
        is_starter=run is None or run.starter == segment.author,
    )
    bubble = _bubble(segment, reactions)
    return {"id": segment.id, "role": role_of(speaker), "parts": parts, "metadata": _beside(segment, bubble)}


def closed(part: MessagePart) -> MessagePart:
    """A part of a run that is over: nothing is added to a text any more, whoever forgot to end it."""
    if part.get("state") == "streaming" and part["type"] in _BLOCKS:
        return {**part, "state": "done"}
    return part


def _beside(segment: Segment, bubble: BubbleMetadata) -> MessageMetadata:
    producer = segment.reducer.metadata
    if isinstance(producer, dict):
        return cast("MessageMetadata", {**producer, "bubble": bubble})
    if producer is not None and producer is not UNSET:
        bubble["producerMetadata"] = producer
    return {"bubble": bubble}


def _bubble(segment: Segment, reactions: dict[str, list[str]]) -> BubbleMetadata:
    run = segment.run
    fields: dict[str, JSONValue] = {
        "principalId": segment.author,
        "runId": None if run is None else run.id,
        "kind": None if run is None else run.kind,
        "firstSeq": segment.first_seq,
        "lastSeq": segment.last_seq,
        "createdAt": segment.created_at,
        "updatedAt": segment.updated_at,
        "status": "finished" if run is None or run.is_finished else "streaming",
        "outcome": None if run is None else run.outcome,
        "continuation": segment.continuation or None,
        "reactions": cast("JSONValue", reactions) or None,
        "error": segment.error,
        "producerMessageId": segment.producer_message_id,
    }
    return cast("BubbleMetadata", {name: value for name, value in fields.items() if value is not None})
