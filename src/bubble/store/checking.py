"""What `check` verifies of one thread, from its texts alone: density, head, time and runs. Pure, one pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from bubble.protocol.errors import BubbleError
from bubble.protocol.events import RunFinished, RunStarted, SequencedEvent
from bubble.protocol.timestamps import parse_ms
from bubble.store.admission import RunState

__all__ = ["check_thread"]


@dataclass(slots=True)
class _Walk:
    seq: int = 0
    ms: int = 0


def check_thread(texts: Iterable[bytes], *, head: int, last_ms: int, runs: Mapping[str, RunState]) -> Iterator[str]:
    """What is wrong with a thread whose events are `texts` in order, and whose records say `head`, `last_ms` and `runs`."""
    walk = _Walk()
    rebuilt: dict[str, RunState] = {}
    for text in texts:
        try:
            stored = SequencedEvent.from_stored(text)
            event = stored.event
            ms = parse_ms(stored.created_at)
        except (BubbleError, ValueError) as error:
            yield f"the event after seq {walk.seq} cannot be read: {error}"
            walk.seq += 1
            continue
        if stored.seq != walk.seq + 1:
            yield f"seq {stored.seq} follows seq {walk.seq}"
        if ms < walk.ms:
            yield f"time runs backwards at seq {stored.seq}"
        walk.seq, walk.ms = stored.seq, ms
        if isinstance(event, RunStarted):
            rebuilt.setdefault(event.run_id, RunState(event.principal_id, "open"))
        elif isinstance(event, RunFinished) and event.run_id in rebuilt:
            rebuilt[event.run_id] = RunState(rebuilt[event.run_id].principal_id, "finished")
    if walk.seq != head:
        yield f"the head is {head}, the last event has seq {walk.seq}"
    if walk.seq and walk.ms != last_ms:
        yield f"the last event's time is {walk.ms}, the thread's record says {last_ms}"
    yield from _differences(rebuilt, runs)


def _differences(rebuilt: Mapping[str, RunState], recorded: Mapping[str, RunState]) -> Iterator[str]:
    for run_id in sorted(rebuilt.keys() | recorded.keys()):
        told, kept = rebuilt.get(run_id), recorded.get(run_id)
        if told != kept:
            yield f'run "{run_id}": the events tell {told}, the record is {kept}'
