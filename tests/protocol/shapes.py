"""One valid event of each shape, in wire form, for tests to take apart."""

from __future__ import annotations

import json
from collections.abc import Mapping

from bubble.protocol.jsontext import JSONValue

__all__ = ["SHAPES", "part_event", "wire"]

SHAPES: Mapping[str, Mapping[str, JSONValue]] = {
    "run_started": {
        "type": "run_started",
        "principalId": "bot-research",
        "runId": "run-001",
        "kind": "agent_work",
        "snapshotSeq": 17,
    },
    "run_finished": {
        "type": "run_finished",
        "principalId": "bot-research",
        "runId": "run-001",
        "outcome": "success",
    },
    "message_part": {
        "type": "message_part",
        "principalId": "bot-research",
        "runId": "run-001",
        "part": {"type": "text-delta", "id": "txt-0", "delta": "Hello"},
        "version": "ai-sdk-v6",
    },
    "tool_call_approval": {
        "type": "tool_call_approval",
        "principalId": "user-alice",
        "runId": "run-001",
        "toolCallId": "call-7",
        "approved": False,
        "reason": "wrong customer id",
    },
    "tool_call_result": {
        "type": "tool_call_result",
        "principalId": "worker-1",
        "runId": "run-001",
        "toolCallId": "call-7",
        "input": {"customer": 7},
        "output": None,
    },
    "run_interrupt_requested": {
        "type": "run_interrupt_requested",
        "principalId": "user-alice",
        "runId": "run-001",
    },
    "participant_joined": {
        "type": "participant_joined",
        "byPrincipalId": "user-alice",
        "principalId": "user-bob",
    },
    "participant_left": {
        "type": "participant_left",
        "byPrincipalId": "user-alice",
        "principalId": "user-bob",
    },
    "thread_title_updated": {
        "type": "thread_title_updated",
        "byPrincipalId": "user-alice",
        "title": "Plans for May",
    },
}


def wire(event: Mapping[str, JSONValue]) -> bytes:
    """The compact JSON text of an event."""
    return json.dumps(event, separators=(",", ":"), ensure_ascii=False).encode()


def part_event(part: bytes, *, version: str = "ai-sdk-v6") -> bytes:
    """The JSON text of a `message_part` with exactly these bytes as its part."""
    return b'{"type":"message_part","principalId":"bot","runId":"r","part":%s,"version":"%s"}' % (
        part,
        version.encode(),
    )
