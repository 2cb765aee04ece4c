"""Runs of a thread, and the caller's consumer cursor on it."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from bubble.protocol.identifiers import MAX_SEQ, check_name
from bubble.protocol.resources import RunPage, RunStateName
from bubble.server.access import require_on_thread
from bubble.server.calls import Call
from bubble.server.operations import Operations
from bubble.server.routes.shapes import Body, Name, PageQuery, page_limit
from bubble.store.cursors import encode_cursor

__all__ = ["OPERATIONS"]

OPERATIONS = Operations()


class ListRuns(PageQuery, frozen=True, kw_only=True):
    """Only those that are open, or finished; only those of one principal; only those that began at a seq or after it."""

    from_seq: Annotated[int, Meta(ge=1, le=MAX_SEQ)] | None = None
    state: RunStateName | None = None
    principal_id: Name | None = None


class AdvanceCursor(Body, frozen=True, kw_only=True):
    """The last seq that the caller is done with."""

    seq: Annotated[int, Meta(ge=0, le=MAX_SEQ)]


class ConsumerCursor(msgspec.Struct, frozen=True, kw_only=True):
    """Where the caller is on the thread; 0 if it never said."""

    seq: int


@OPERATIONS.add("GET", "/v1/threads/{threadId}/runs", summary="List a thread's runs", tag="Runs", errors=("not_found",))
async def list_runs(call: Call, thread_id: str, query: ListRuns) -> RunPage:
    """By their first seq, where that is `fromSeq` or later: how a restarted producer finds what it left open. Needs `events.subscribe`."""
    if query.principal_id is not None:
        check_name(query.principal_id, path="principalId")
    await require_on_thread(call.services.store, call.guard, thread_id, "events.subscribe")
    return await call.services.store.list_runs(
        thread_id,
        state=query.state,
        principal_id=query.principal_id,
        after=query.after if query.from_seq is None or query.after is not None else encode_cursor(query.from_seq - 1),
        limit=page_limit(query.limit, call.services.limits),
    )


@OPERATIONS.add(
    "GET",
    "/v1/threads/{threadId}/cursor",
    summary="Read one's consumer cursor",
    tag="Cursors",
    errors=("forbidden", "not_found"),
)
async def get_cursor(call: Call, thread_id: str) -> ConsumerCursor:
    """Needs `cursor.write`."""
    await require_on_thread(call.services.store, call.guard, thread_id, "cursor.write")
    return ConsumerCursor(seq=await call.services.store.get_cursor(thread_id, call.principal_id))


@OPERATIONS.add(
    "PUT",
    "/v1/threads/{threadId}/cursor",
    summary="Advance one's consumer cursor",
    tag="Cursors",
    errors=("forbidden", "not_found"),
)
async def advance_cursor(call: Call, thread_id: str, body: AdvanceCursor) -> ConsumerCursor:
    """It only ever moves forward; a smaller seq changes nothing. Beyond the head is refused. Needs `cursor.write`."""
    seq = await call.services.store.advance_cursor(thread_id, call.principal_id, body.seq, guard=call.guard)
    return ConsumerCursor(seq=seq)
