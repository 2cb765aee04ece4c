"""Amphibian: the runtime of connectors, which let an agent take part in threads. Knows the client and the assembler."""

from __future__ import annotations

from bubble.amphibian.agents import (
    Agent,
    AgentFailed,
    Cancellable,
    FilePart,
    Reply,
    Session,
    TakesToolResults,
    ToolResult,
    Turn,
)

__all__ = [
    "Agent",
    "AgentFailed",
    "Cancellable",
    "FilePart",
    "Reply",
    "Session",
    "TakesToolResults",
    "ToolResult",
    "Turn",
]
