"""Appending and reading events over HTTP (spec 1, "Appending Events" and "Reading History over HTTP")."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Literal, TypeAlias

from bubble.client.http import Call, HttpClient
from bubble.client.paths import thread_path
from bubble.client.wire import decode_events, decode_page, is_known, stored_event
from bubble.protocol.events import BubbleEvent, EncodedEvent, SequencedEvent, encoded
from bubble.protocol.identifiers import check_key, check_seq, new_id
from bubble.protocol.resources import EventPage

__all__ = ["AnyEvent", "EventLog", "Unknown"]

Unknown: TypeAlias = Literal["skip", "keep"]
"""What becomes of an event whose type is newer than this version: passed over, or given like any other (its `event` cannot be decoded)."""

AnyEvent: TypeAlias = BubbleEvent | Mapping[str, object] | EncodedEvent


class EventLog:
    """The event routes of all threads."""

    def __init__(self, http: HttpClient) -> None:
        self._http = http

    async def append(
        self, thread_id: str, event: AnyEvent, *, idempotency_key: str | None = None, expected_head: int | None = None
    ) -> SequencedEvent:
        """Appends one event, under a key in any case, so that it may be sent again until an answer comes."""
        call = Call(
            method="POST",
            path=thread_path(thread_id, "/events"),
            body=encoded(event).text,
            headers=_append_headers(idempotency_key, expected_head),
            repeatable=True,
        )
        return stored_event((await self._http.send(call)).body)

    async def append_many(
        self,
        thread_id: str,
        events: Sequence[AnyEvent],
        *,
        idempotency_key: str | None = None,
        expected_head: int | None = None,
    ) -> Sequence[SequencedEvent]:
        """Appends several events in order, all or none."""
        texts = b",".join(encoded(event).text for event in events)
        call = Call(
            method="POST",
            path=thread_path(thread_id, "/events:batch"),
            body=b'{"events":[%s]}' % texts,
            headers=_append_headers(idempotency_key, expected_head),
            repeatable=True,
        )
        return decode_events((await self._http.send(call)).body)

    async def page(
        self,
        thread_id: str,
        *,
        from_seq: int = 1,
        to_seq: int | None = None,
        limit: int | None = None,
        wait_ms: int = 0,
    ) -> EventPage:
        """One page. `wait_ms` holds an empty one open on the server."""
        params = {
            "fromSeq": check_seq(from_seq, path="fromSeq"),
            "toSeq": to_seq,
            "limit": limit,
            "waitMs": wait_ms or None,
        }
        call = Call(
            method="GET",
            path=thread_path(thread_id, "/events"),
            params={name: str(value) for name, value in params.items() if value is not None},
            repeatable=True,
            patience=wait_ms / 1000,
        )
        return decode_page((await self._http.send(call)).body)

    async def iterate(
        self, thread_id: str, *, from_seq: int = 1, to_seq: int | None = None, unknown: Unknown = "skip"
    ) -> AsyncIterator[SequencedEvent]:
        """The stored events up to `to_seq`, or to the head as it is when the last page is read."""
        next_seq: int | None = from_seq
        while next_seq is not None:
            page = await self.page(thread_id, from_seq=next_seq, to_seq=to_seq, limit=1_000)
            for text in page.events:
                event = stored_event(bytes(text))
                if unknown == "keep" or is_known(event):
                    yield event
            next_seq = page.next_seq


def _append_headers(idempotency_key: str | None, expected_head: int | None) -> Mapping[str, str]:
    key = new_id() if idempotency_key is None else check_key(idempotency_key, path="idempotency_key")
    headers = {"Idempotency-Key": key}
    if expected_head is not None:
        headers["Bubble-Expected-Head"] = str(check_seq(expected_head, path="expected_head", lowest=0))
    return headers
