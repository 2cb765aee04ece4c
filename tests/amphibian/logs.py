"""Logs, written down in a few words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bubble.protocol.events import SequencedEvent, encoded, sequence

__all__ = ["ME", "finish", "interrupt", "joined", "log", "part", "said", "start"]

ME = "bot"
WHEN = "2026-05-06T12:34:56.789Z"
Wire = Mapping[str, object]


def log(*events: Wire | Sequence[Wire], first: int = 1) -> list[SequencedEvent]:
    """These events with seqs from `first` on; a list of events counts as its members."""
    flat = [each for event in events for each in ([event] if isinstance(event, Mapping) else event)]
    return [
        SequencedEvent(seq=seq, created_at=WHEN, text=sequence(encoded(dict(event)).text, seq=seq, created_at=WHEN))
        for seq, event in enumerate(flat, start=first)
    ]


def joined(who: str = ME) -> Wire:
    return {"type": "participant_joined", "principalId": who, "byPrincipalId": "alice"}


def start(run: str, who: str = "alice", *, kind: str = "user_input", snapshot: int | None = None) -> Wire:
    given = {} if snapshot is None else {"snapshotSeq": snapshot}
    return {"type": "run_started", "principalId": who, "runId": run, "kind": kind, **given}


def part(run: str, text: str = "…", who: str = "alice") -> Wire:
    chunk = {"type": "text-delta", "id": "1", "delta": text}
    return {"type": "message_part", "principalId": who, "runId": run, "part": chunk, "version": "ai-sdk-v6"}


def finish(run: str, who: str = "alice", *, outcome: str | None = None) -> Wire:
    given = {} if outcome is None else {"outcome": outcome}
    return {"type": "run_finished", "principalId": who, "runId": run, **given}


def interrupt(run: str, who: str = "alice") -> Wire:
    return {"type": "run_interrupt_requested", "principalId": who, "runId": run}


def said(run: str, text: str = "…", who: str = "alice", *, kind: str = "user_input") -> list[Wire]:
    """A whole run: its start, the three chunks of a text, its end."""
    block = {"type": "message_part", "principalId": who, "runId": run, "version": "ai-sdk-v6"}
    return [
        start(run, who, kind=kind),
        {**block, "part": {"type": "text-start", "id": "1"}},
        part(run, text, who),
        {**block, "part": {"type": "text-end", "id": "1"}},
        finish(run, who),
    ]
