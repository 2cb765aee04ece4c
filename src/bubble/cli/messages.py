"""What a person says, as events."""

from __future__ import annotations

from collections.abc import Sequence

from bubble.protocol.events import BubbleEvent, MessagePart, RunFinished, RunStarted, raw
from bubble.protocol.identifiers import new_id

__all__ = ["message_run"]


def message_run(principal_id: str, text: str) -> Sequence[BubbleEvent]:
    """A whole run of a person that says `text` (spec 1, "Run Lifecycle" and "Streamed Output")."""
    run_id = new_id()
    chunks = (
        {"type": "text-start", "id": "1"},
        {"type": "text-delta", "id": "1", "delta": text},
        {"type": "text-end", "id": "1"},
    )
    return [
        RunStarted(principal_id=principal_id, run_id=run_id, kind="user_input"),
        *(
            MessagePart(principal_id=principal_id, run_id=run_id, part=raw(chunk), version="ai-sdk-v6")
            for chunk in chunks
        ),
        RunFinished(principal_id=principal_id, run_id=run_id, outcome="success"),
    ]
