"""The events that a thread was given, kept as their texts: an older page may come, and then everything is folded anew."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Iterator, Mapping
from heapq import merge
from typing import TypeAlias

from bubble.protocol.errors import InvalidRequest
from bubble.protocol.events import SequencedEvent
from bubble.protocol.identifiers import MAX_SEQ

__all__ = ["GivenEvent", "KeptEvent", "Retained", "keep"]

GivenEvent: TypeAlias = SequencedEvent | Mapping[str, object]
KeptEvent: TypeAlias = tuple[int, bytes]


def keep(events: Iterable[GivenEvent]) -> list[KeptEvent]:
    """Seqs and texts of events, given as stored events or as mappings in wire form; `InvalidRequest` for what is neither."""
    return [(event.seq, event.text) if isinstance(event, SequencedEvent) else _kept(event) for event in events]


def _kept(event: object) -> KeptEvent:
    if not isinstance(event, Mapping):
        raise InvalidRequest("An event must be a SequencedEvent or an object in wire form.")
    seq, created_at = event.get("seq"), event.get("createdAt")
    if not (isinstance(seq, int) and not isinstance(seq, bool) and 1 <= seq <= MAX_SEQ):
        raise InvalidRequest("`$.seq` of a stored event must be an integer from 1 to 2^53-1.")
    if not isinstance(created_at, str):
        raise InvalidRequest(f"`$.createdAt` of event {seq} must be a time.")
    try:
        # Not `dump_json`: what a log has as 1e400 is infinite as Python data, and must find its way back to `read_record`.
        return seq, json.dumps(dict(event)).encode("ascii")
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidRequest(f"Event {seq} is not JSON: {error}.") from None


class Retained:
    """Events in ascending order of seq, none twice."""

    __slots__ = ("_seqs", "_texts")

    def __init__(self, events: Iterable[KeptEvent] = ()) -> None:
        self._seqs = array("Q")
        self._texts: list[bytes] = []
        self.extend(events)

    def __iter__(self) -> Iterator[KeptEvent]:
        return zip(self._seqs, self._texts, strict=True)

    @property
    def head_seq(self) -> int:
        """The highest seq; 0 if there is none."""
        return self._seqs[-1] if self._seqs else 0

    @property
    def oldest_seq(self) -> int | None:
        """The lowest seq; None if there is none."""
        return self._seqs[0] if self._seqs else None

    def extend(self, events: Iterable[KeptEvent]) -> None:
        """Adds events above the head, in ascending order."""
        for seq, text in events:
            self._seqs.append(seq)
            self._texts.append(text)

    def with_older(self, events: Iterable[KeptEvent]) -> Retained | None:
        """These events and those of `events` that are missing among them, up to the head if there is one; None if nothing is missing."""
        held, limit = set(self._seqs), self.head_seq or MAX_SEQ
        missing = {seq: text for seq, text in events if seq not in held and seq <= limit}
        return Retained(merge(self, sorted(missing.items()), key=lambda kept: kept[0])) if missing else None
