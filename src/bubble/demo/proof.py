"""The proof that nothing was lost, doubled or reordered on the way: what each reader got against what was recorded and what is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bubble.protocol.events import MessagePart, RunFinished, RunStarted, SequencedEvent

__all__ = ["Claim", "parts_of_runs", "prove_readers", "prove_replies"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Something that must hold, whether it does, and if not, where it first fails."""

    text: str
    holds: bool
    failure: str = ""

    @classmethod
    def of(cls, text: str, failure: str | None) -> Claim:
        """A claim that holds unless there is a `failure`."""
        return cls(text=text, holds=failure is None, failure=failure or "")


def prove_readers(stored: Sequence[SequencedEvent], readers: Mapping[str, Sequence[SequencedEvent]]) -> list[Claim]:
    """That the log is dense from 1, and that each reader got exactly the log, in order and to the byte."""
    claims = [Claim.of(f"the log has {len(stored)} events, seq 1 to {len(stored)} without a gap", _gap(stored))]
    for name, seen in readers.items():
        claims.append(Claim.of(f"{name} got every event once, in order, to the byte", _difference(stored, seen)))
    return claims


def prove_replies(stored: Sequence[SequencedEvent], replies: Mapping[str, Sequence[bytes]]) -> list[Claim]:
    """That each run of `replies`, which are recordings by their runs, is stored finished and as it was recorded, to the byte."""
    runs = parts_of_runs(stored)
    failures = [_difference_of_reply(run_id, reply, runs.get(run_id)) for run_id, reply in replies.items()]
    chunks = sum(len(reply) for reply in replies.values())
    text = f"{len(replies)} replies, {chunks} chunks, are stored as they were recorded, to the byte"
    return [Claim.of(text, next((failure for failure in failures if failure is not None), None))]


def _difference_of_reply(run_id: str, reply: Sequence[bytes], stored: Sequence[bytes] | None) -> str | None:
    if stored is None:
        return f"{run_id} is not stored whole"
    first = next((at for at, (want, got) in enumerate(zip(reply, stored, strict=False)) if want != got), None)
    if first is None and len(reply) == len(stored):
        return None
    return f"{run_id} differs at chunk {(first if first is not None else min(len(reply), len(stored))) + 1}"


def parts_of_runs(stored: Sequence[SequencedEvent]) -> Mapping[str, Sequence[bytes]]:
    """The parts of each finished run, in order, as the bytes that are stored."""
    open_runs: dict[str, list[bytes]] = {}
    finished: dict[str, list[bytes]] = {}
    for each in stored:
        event = each.event
        if isinstance(event, RunStarted):
            open_runs[event.run_id] = []
        elif isinstance(event, MessagePart) and event.run_id in open_runs:
            open_runs[event.run_id].append(bytes(event.part))
        elif isinstance(event, RunFinished) and event.run_id in open_runs:
            finished[event.run_id] = open_runs.pop(event.run_id)
    return finished


def _gap(stored: Sequence[SequencedEvent]) -> str | None:
    for expected, event in enumerate(stored, start=1):
        if event.seq != expected:
            return f"seq {expected} is missing, {event.seq} stands there"
    return None


def _difference(stored: Sequence[SequencedEvent], seen: Sequence[SequencedEvent]) -> str | None:
    for number, (want, got) in enumerate(zip(stored, seen, strict=False), start=1):
        if want.text != got.text:
            return f"event {number} has seq {want.seq} in the log, the reader got seq {got.seq}"
    if len(stored) != len(seen):
        return f"the log has {len(stored)} events, the reader got {len(seen)}"
    return None
