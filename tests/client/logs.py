"""What a thread's log holds, for tests that write to it."""

from __future__ import annotations

from typing import cast

from bubble.client import BubbleConnection
from bubble.protocol.events import MessagePart, SequencedEvent
from bubble.protocol.jsontext import JSONValue, load_json

__all__ = ["log_of", "outcome_of", "parts", "parts_of"]


async def log_of(client: BubbleConnection, thread_id: str) -> list[SequencedEvent]:
    """The events after the first one, which tells who made the thread."""
    return [event async for event in client.iter_events(thread_id, from_seq=2)]


async def outcome_of(client: BubbleConnection, thread_id: str) -> object:
    """The outcome of the thread's only run, or `open`."""
    [run] = [run async for run in client.list_runs(thread_id)]
    return run.outcome if run.state == "finished" else run.state


def parts(events: list[SequencedEvent]) -> list[dict[str, JSONValue]]:
    """The payloads of the message parts, as plain data."""
    decoded = (event.event for event in events)
    return [cast("dict[str, JSONValue]", load_json(each.part)) for each in decoded if isinstance(each, MessagePart)]


async def parts_of(client: BubbleConnection, thread_id: str) -> list[dict[str, JSONValue]]:
    """The payloads of the thread's message parts, as plain data."""
    return parts(await log_of(client, thread_id))
