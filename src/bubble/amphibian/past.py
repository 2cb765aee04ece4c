"""What a connector asks of a thread's past: the window to go through, runs that were left open, calls of long ago."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from bubble.amphibian.backlog import BacklogPolicy, BacklogReader, ReplayWindow
from bubble.amphibian.pending import tool_called_in
from bubble.client import BubbleConnection
from bubble.protocol.errors import Conflict
from bubble.protocol.events import MessagePart, RunFinished, SequencedEvent, raw

__all__ = ["Past", "close_leftovers", "error_part", "find_tool", "read_past"]

_CUT_OFF: Final = "The connector ended before this reply was complete."
# What of the log is kept while the window is looked for; a window that reaches further down is read again.
_MOST_KEPT: Final = 2_000

_logger = logging.getLogger("bubble.amphibian")


class Past:
    """The window, and its events."""

    def __init__(self, window: ReplayWindow, events: Sequence[SequencedEvent]) -> None:
        self.window = window
        self.events = events


async def read_past(
    bubble: BubbleConnection, thread_id: str, *, policy: BacklogPolicy, checkpoint: int | None, own_id: str
) -> Past:
    """Fixes the head and reads as much of what lies below as is needed. Raises what reading raises."""
    head = (await bubble.get_thread(thread_id)).head_seq
    reader = BacklogReader(policy, checkpoint=checkpoint, head=head, own_principal_id=own_id)
    kept: list[SequencedEvent] = []
    kept_from = head + 1
    while (wanted := reader.wants()) is not None:
        events = await _read(bubble, thread_id, wanted)
        reader.take(events)
        if kept_from == wanted.stop and len(kept) + len(events) <= _MOST_KEPT:
            kept, kept_from = [*events, *kept], wanted.start
    window = reader.window()
    if window.from_seq < kept_from:
        kept = await _read(bubble, thread_id, range(window.from_seq, head + 1))
    return Past(window, [stored for stored in kept if stored.seq >= window.from_seq])


async def _read(bubble: BubbleConnection, thread_id: str, seqs: range) -> list[SequencedEvent]:
    events = bubble.iter_events(thread_id, from_seq=seqs.start, to_seq=seqs.stop - 1, unknown="keep")
    return [stored async for stored in events]


async def close_leftovers(bubble: BubbleConnection, thread_id: str, *, own_id: str) -> int:
    """Finishes every open run of the bot's own as `failed`, saying why, so that nobody waits for it any longer; how many there were."""
    count = 0
    async for run in bubble.list_runs(thread_id, state="open", principal_id=own_id):
        end = RunFinished(principal_id=own_id, run_id=run.run_id, outcome="failed")
        with suppress(Conflict):  # somebody else was faster
            await bubble.append_events(thread_id, [error_part(own_id, run.run_id, _CUT_OFF), end])
            count += 1
    if count:
        _logger.warning("Closed %d run(s) that were left open on thread %s.", count, thread_id)
    return count


async def find_tool(
    bubble: BubbleConnection, thread_id: str, *, run_id: str, tool_call_id: str, own_id: str
) -> str | None:
    """The tool's name (empty where it has none) of a call in an own run of the log; None if that run or call is not the bot's own."""
    async for run in bubble.list_runs(thread_id, principal_id=own_id, limit=1_000):
        if run.run_id == run_id:
            return await _tool_within(bubble, thread_id, run_id, tool_call_id, range(run.started_seq, run.last_seq + 1))
    return None


async def _tool_within(
    bubble: BubbleConnection, thread_id: str, run_id: str, tool_call_id: str, seqs: range
) -> str | None:
    found: str | None = None
    async for stored in bubble.iter_events(thread_id, from_seq=seqs.start, to_seq=seqs.stop - 1):
        event = stored.event
        if isinstance(event, MessagePart) and event.run_id == run_id:
            call_id, name = tool_called_in(event) or (None, None)
            if call_id == tool_call_id:
                found = name or found or ""
    return found


def error_part(own_id: str, run_id: str, text: str) -> MessagePart:
    """An error as a part of a run."""
    return MessagePart(
        principal_id=own_id, run_id=run_id, part=raw({"type": "error", "errorText": text}), version="ai-sdk-v6"
    )
