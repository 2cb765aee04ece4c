"""The log over HTTP: append one event or a batch, read pages, follow as server-sent events, import a whole thread."""

from __future__ import annotations

import asyncio
from typing import Annotated, TypeVar

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from bubble.protocol.errors import InvalidRequest, Unauthenticated
from bubble.protocol.events import SequencedEvent
from bubble.protocol.identifiers import check_name
from bubble.protocol.resources import EventPage, JoinPolicy, Metadata, Thread
from bubble.protocol.strict import decode_strictly
from bubble.server.access import readable_head
from bubble.server.answers import Answer
from bubble.server.appending import (
    array_elements,
    decode_appendable,
    decode_batch,
    expected_head,
    idempotency_key,
)
from bubble.server.calls import Call
from bubble.server.envelope import exchange_of
from bubble.server.operations import Operations
from bubble.server.routes.shapes import Body, Name, Query, Seq, Title, check_metadata, page_limit, refuse_reserved
from bubble.server.streaming import first_of, last_event_id, send_stream, while_wanted
from bubble.server.thread_stream import ThreadStream
from bubble.store.paging import event_page
from bubble.store.records import NewThread
from bubble.store.waiting import append_and_wait

__all__ = ["OPERATIONS", "read_page"]

OPERATIONS = Operations()

_APPEND_HEADERS = ("Idempotency-Key", "Bubble-Expected-Head")
_REPLAYED = (b"idempotent-replay", b"true")


class ReadEvents(Query, frozen=True, kw_only=True):
    """`fromSeq` and `toSeq` are inclusive. `waitMs` holds a page that would be empty until there is an event, or the time is over."""

    from_seq: Seq = 1
    to_seq: Seq | None = None
    limit: Annotated[int, Meta(ge=1)] | None = None
    wait_ms: Annotated[int, Meta(ge=0)] = 0


class FollowEvents(Query, frozen=True, kw_only=True):
    """Where to begin, unless `Last-Event-ID` says so."""

    from_seq: Seq = 1


class Batch(Body, frozen=True, kw_only=True):
    """Events to append, all or none."""

    events: Raw


class StoredEvents(msgspec.Struct, frozen=True, kw_only=True):
    """The events of a batch as they are stored."""

    events: list[Raw]


class ImportThread(Body, frozen=True, kw_only=True):
    """A thread to import: all its events, dense from seq 1. Without `ownerPrincipalId` the caller owns it."""

    events: Raw
    title: Title | UnsetType = UNSET
    join_policy: JoinPolicy = "invite"
    metadata: Metadata | UnsetType = UNSET
    owner_principal_id: Name | UnsetType = UNSET
    keep_participants: bool = True


@OPERATIONS.add(
    "POST",
    "/v1/threads/{threadId}/events",
    summary="Append an event",
    tag="Events",
    status=201,
    errors=("forbidden", "not_found", "conflict"),
    size="event_bytes",
    request_headers=_APPEND_HEADERS,
    answer_headers=("Idempotent-Replay",),
)
async def append_event(call: Call, thread_id: str, body: bytes) -> Answer[bytes]:
    """Answers with the stored event once it is durable. Needs `events.<type>` on the thread."""
    event = decode_appendable(body, limits=call.services.limits)
    appended = await append_and_wait(
        call.services.store,
        thread_id,
        [event],
        guard=call.guard,
        idempotency=idempotency_key(call.headers, caller=call.principal_id, body=body),
        expected_head=expected_head(call.headers),
    )
    return Answer(content=appended.events[0].text, headers=[_REPLAYED] if appended.replayed else [])


@OPERATIONS.add(
    "POST",
    "/v1/threads/{threadId}/events:batch",
    summary="Append several events, all or none",
    tag="Events",
    status=201,
    errors=("forbidden", "not_found", "conflict"),
    body_shape=Batch,
    size="batch_bytes",
    request_headers=_APPEND_HEADERS,
    answer_headers=("Idempotent-Replay",),
)
async def append_events(call: Call, thread_id: str, body: bytes) -> Answer[StoredEvents]:
    """They get consecutive seqs, in the order given."""
    batch = _decode_with_events(body, _batches)
    appended = await append_and_wait(
        call.services.store,
        thread_id,
        decode_batch(bytes(batch.events), limits=call.services.limits),
        guard=call.guard,
        idempotency=idempotency_key(call.headers, caller=call.principal_id, body=body),
        expected_head=expected_head(call.headers),
    )
    stored = StoredEvents(events=[Raw(event.text) for event in appended.events])
    return Answer(content=stored, headers=[_REPLAYED] if appended.replayed else [])


@OPERATIONS.add(
    "GET",
    "/v1/threads/{threadId}/events",
    summary="Read a page of events",
    tag="Events",
    errors=("not_found",),
)
async def get_events(call: Call, thread_id: str, query: ReadEvents) -> EventPage:
    """At the head `nextSeq` is null; a poller goes on from the last seq it has plus one. Needs `events.subscribe`."""
    longest = call.services.limits.wait_ms
    if query.wait_ms > longest:
        raise InvalidRequest(f"`waitMs` must be an integer from 0 to {longest}.")
    page = await read_page(call, thread_id, query)
    if page.events or not query.wait_ms or (query.to_seq is not None and query.to_seq < query.from_seq):
        return page
    exchange_of(call.scope).is_stream = True
    await while_wanted(call, _hold(call, thread_id, query))
    if await call.services.authenticator.find_invalid([call.identity]):
        raise Unauthenticated("The bearer is no longer valid.")  # it was, when the page began to be held
    return await read_page(call, thread_id, query)


async def _hold(call: Call, thread_id: str, query: ReadEvents) -> None:
    hub = call.services.hub
    waiting = asyncio.ensure_future(
        hub.wait_for_events(thread_id, from_seq=query.from_seq, guard=call.guard, timeout_ms=query.wait_ms)
    )
    draining = asyncio.ensure_future(call.services.draining.wait())
    await first_of(waiting, draining)  # a draining server answers at once with what there is


async def read_page(call: Call, thread_id: str, query: ReadEvents) -> EventPage:
    """One page of what the caller may read now."""
    head = await readable_head(call.services.store, call.guard, thread_id)
    last = head if query.to_seq is None else min(query.to_seq, head)
    if query.from_seq > last:
        return EventPage(events=[], next_seq=None)
    limits = call.services.limits
    return await event_page(
        call.services.store,
        thread_id,
        from_seq=query.from_seq,
        to_seq=last,
        limit=page_limit(query.limit, limits),
        limits=limits,
    )


@OPERATIONS.add(
    "GET",
    "/v1/threads/{threadId}/events/stream",
    summary="Follow a thread as server-sent events",
    tag="Events",
    errors=("not_found",),
    media_type="text/event-stream",
    request_headers=("Last-Event-ID",),
    streams=True,
)
async def stream_events(call: Call, thread_id: str, query: FollowEvents) -> None:
    """`subscription_opened` first, without an id; then `event`, with its seq as id; at the end `subscription_closed`.

    `Last-Event-ID` beats `fromSeq`. An idle stream gets a comment now and then. Needs `events.subscribe`.
    """
    last = last_event_id(call)
    stream = ThreadStream(call.services.hub, call.identity, keep_alive=call.services.settings.streams.keep_alive)
    try:
        await stream.open(thread_id, from_seq=query.from_seq if last is None else last + 1)
        exchange_of(call.scope).is_stream = True
        await while_wanted(call, send_stream(call, stream))
    finally:
        stream.close()


@OPERATIONS.add(
    "POST",
    "/v1/threads/{threadId}/import",
    summary="Import a thread",
    tag="Events",
    status=201,
    errors=("forbidden", "not_found", "conflict"),
    body_shape=ImportThread,
    size="import_bytes",
)
async def import_thread(call: Call, thread_id: str, body: bytes) -> Thread:
    """For admins. The thread must not exist; its events keep their seqs, times and authors.

    Who joined by the events and did not leave takes part again, unless `keepParticipants` is false.
    """
    content, events = await asyncio.to_thread(_decode_import, body)
    refuse_reserved(thread_id, path="threadId")
    if content.metadata is not UNSET:
        check_metadata(content.metadata)
    owner = call.principal_id
    if content.owner_principal_id is not UNSET:
        owner = check_name(content.owner_principal_id, path="$.ownerPrincipalId")
    for capability in ("threads.name", "events.impersonate"):
        call.services.policy.require_deployment(call.identity, capability)
    new = NewThread(
        thread_id=thread_id,
        creator=owner,
        title=None if content.title is UNSET else content.title,
        join_policy=content.join_policy,
        metadata=None if content.metadata is UNSET else content.metadata,
        keeps_participants=content.keep_participants,
    )
    return await call.services.store.import_thread(new, events)


_batches = msgspec.json.Decoder(Batch)
_imports = msgspec.json.Decoder(ImportThread)

Content = TypeVar("Content", Batch, ImportThread)


def _decode_with_events(body: bytes, decoder: msgspec.json.Decoder[Content]) -> Content:
    # Nesting and UTF-8 are checked event by event: an event within an array may nest as deeply as one alone.
    return decode_strictly(body, decoder, raw_members=("events",))


def _decode_import(body: bytes) -> tuple[ImportThread, list[SequencedEvent]]:
    content = _decode_with_events(body, _imports)
    events = []
    for index, text in enumerate(array_elements(bytes(content.events), path="$.events")):
        try:
            events.append(SequencedEvent.from_text(text))
        except InvalidRequest as error:
            raise InvalidRequest(f"`$.events[{index}]`: {error.message}") from None
    return content, events
