"""What a connector asks of a thread's past: the window to go through, runs that were left open, calls and beginnings of long ago."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from typing import Final

from bubble.amphibian.backlog import BacklogPolicy, BacklogReader, ReplayWindow
from bubble.amphibian.known import known_event
from bubble.amphibian.pending import Call, ResultsInTheLog, tool_called_in
from bubble.client import BubbleConnection
from bubble.protocol.errors import Conflict
from bubble.protocol.events import (
    MessagePart,
    ParticipantJoined,
    RunFinished,
    RunStarted,
    SequencedEvent,
    ToolCallResult,
    raw,
)

__all__ = ["Past", "PastCall", "close_leftovers", "error_part", "find_beginning", "find_call", "read_past"]

_CUT_OFF: Final = "The connector ended before this reply was complete."
# What of the log is kept while the window is looked for; a window that reaches further down is read again.
_MOST_KEPT: Final = 2_000
# How many events before the end of a run its beginning is looked for.
_FARTHEST: Final = 100_000
_FIRST_STEP: Final = 200
_LONGEST_STEP: Final = 5_000

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


async def find_beginning(
    bubble: BubbleConnection,
    thread_id: str,
    *,
    run_id: str,
    before: int,
    own_id: str,
    stops_at_join: bool,
    farthest: int = _FARTHEST,
) -> Sequence[SequencedEvent]:
    """What was said in somebody's run below the seq `before`, from its `run_started` on.

    Nothing where that is not to be had as a whole: the run is the bot's own, was over before, began before the bot's latest join (with
    `stops_at_join`), or further below than `farthest` events. The log is read backwards, so the cost is what lies in between.
    """
    found: list[SequencedEvent] = []
    async with aclosing(_backwards(bubble, thread_id, range(max(1, before - farthest), before))) as events:
        async for stored in events:
            event = known_event(stored)
            if isinstance(event, ParticipantJoined) and stops_at_join and event.principal_id == own_id:
                break
            if not isinstance(event, RunStarted | MessagePart | RunFinished) or event.run_id != run_id:
                continue
            if isinstance(event, RunFinished):
                return ()
            if event.principal_id != own_id:
                found.append(stored)
            if isinstance(event, RunStarted):
                return () if event.principal_id == own_id else found[::-1]
    _logger.warning(
        "Run %s on thread %s is passed over as a whole: it began before this bot is concerned, or too long ago.",
        run_id,
        thread_id,
    )
    return ()


async def _backwards(bubble: BubbleConnection, thread_id: str, seqs: range) -> AsyncGenerator[SequencedEvent, None]:
    step = _FIRST_STEP
    while seqs:
        taken, seqs = seqs[-step:], seqs[:-step]
        for stored in reversed(await _read(bubble, thread_id, taken)):
            yield stored
        step = min(2 * step, _LONGEST_STEP)


@dataclass(frozen=True, slots=True, kw_only=True)
class PastCall:
    """A call in an own run of the log: the tool's name (empty where it has none), and whether it was given a result that was taken."""

    name: str
    has_result: bool


async def find_call(
    bubble: BubbleConnection, thread_id: str, *, run_id: str, tool_call_id: str, before: int, own_id: str
) -> PastCall | None:
    """The call as it was below the seq `before`; None if that run or call is not the bot's own."""
    async for run in bubble.list_runs(thread_id, principal_id=own_id, limit=1_000):
        if run.run_id == run_id:
            seqs = range(run.started_seq, min(run.last_seq + 1, before))
            call = await _call_within(bubble, thread_id, run_id, tool_call_id, seqs)
            if call is not None and call.has_result:
                seqs = range(run.started_seq, before)
                was_taken = await _was_taken(bubble, thread_id, (run_id, tool_call_id), seqs, own_id=own_id)
                call = replace(call, has_result=was_taken)
            return call
    return None


async def _was_taken(bubble: BubbleConnection, thread_id: str, call: Call, seqs: range, *, own_id: str) -> bool:
    """Whether the agent took what the call was given last."""
    results = ResultsInTheLog()
    async for stored in bubble.iter_events(thread_id, from_seq=seqs.start, to_seq=seqs.stop - 1, unknown="keep"):
        event = known_event(stored)
        if isinstance(event, ToolCallResult):
            results.take_result(event)
        elif isinstance(event, RunStarted) and event.principal_id == own_id:
            results.start(event)
        elif isinstance(event, RunFinished):
            results.finish(event)
    return results.has(call)


async def _call_within(
    bubble: BubbleConnection, thread_id: str, run_id: str, tool_call_id: str, seqs: range
) -> PastCall | None:
    name: str | None = None
    has_result = False
    async for stored in bubble.iter_events(thread_id, from_seq=seqs.start, to_seq=seqs.stop - 1):
        event = stored.event
        if isinstance(event, MessagePart) and event.run_id == run_id:
            call_id, tool = tool_called_in(event) or (None, None)
            if call_id == tool_call_id:
                name = tool or name or ""
        elif isinstance(event, ToolCallResult) and (event.run_id, event.tool_call_id) == (run_id, tool_call_id):
            has_result = True
    return None if name is None else PastCall(name=name, has_result=has_result)


def error_part(own_id: str, run_id: str, text: str) -> MessagePart:
    """An error as a part of a run."""
    return MessagePart(
        principal_id=own_id, run_id=run_id, part=raw({"type": "error", "errorText": text}), version="ai-sdk-v6"
    )
