"""From a thread's events to the messages that people and models read. Pure: no I/O (spec 4)."""

from __future__ import annotations

from bubble.assembler.assembler import Assembler, create_assembler
from bubble.assembler.changes import MessageChanges, message_changes
from bubble.assembler.chunks import validate_chunk
from bubble.assembler.draining import DrainFile, DrainPayload, extract_drain_payload
from bubble.assembler.encoding import EventPart
from bubble.assembler.handlers import (
    AccumulatingPartHandler,
    GrowingData,
    GrowingPartHandler,
    NativePart,
    PartHandler,
)
from bubble.assembler.messages import (
    BubbleMessage,
    BubbleMetadata,
    Grouping,
    MessagePart,
    Role,
    RoleOf,
    Speaker,
    message_text,
)
from bubble.assembler.partial_json import PartialJson, parse_partial_json
from bubble.assembler.reducer import MessageReducer, ReducerError
from bubble.assembler.thread import Applied, ThreadAssembler, ThreadSnapshot, Window

__all__ = [
    "AccumulatingPartHandler",
    "Applied",
    "Assembler",
    "BubbleMessage",
    "BubbleMetadata",
    "DrainFile",
    "DrainPayload",
    "EventPart",
    "Grouping",
    "GrowingData",
    "GrowingPartHandler",
    "MessageChanges",
    "MessagePart",
    "MessageReducer",
    "NativePart",
    "PartHandler",
    "PartialJson",
    "ReducerError",
    "Role",
    "RoleOf",
    "Speaker",
    "ThreadAssembler",
    "ThreadSnapshot",
    "Window",
    "create_assembler",
    "extract_drain_payload",
    "message_changes",
    "message_text",
    "parse_partial_json",
    "validate_chunk",
]
