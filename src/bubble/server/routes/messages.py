"""The log as messages over HTTP: a page of them, or all that are new and all that change, as server-sent events."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Raw

from bubble.assembler import Grouping
from bubble.protocol.identifiers import MAX_SEQ
from bubble.server.access import readable_head
from bubble.server.calls import Call
from bubble.server.envelope import exchange_of
from bubble.server.messages.forms import Form, Format
from bubble.server.messages.paging import read_page, write_page
from bubble.server.messages.stream import MessageStream
from bubble.server.operations import Operations
from bubble.server.routes.shapes import Query, Seq
from bubble.server.streaming import last_event_id, send_stream, while_wanted

__all__ = ["OPERATIONS"]

OPERATIONS = Operations()

MESSAGES_DEFAULT = 50
MESSAGES_MOST = 200

Limit = Annotated[int, Meta(ge=1)]


class ReadMessages(Query, frozen=True, kw_only=True):
    """The newest `limit` messages (200 at most) that opened before the seq `before`, which is the `nextBefore` of another page.

    `format` is `html` for a page: text and reasoning parts have sanitised `html`, made from Markdown, instead of `text`.
    """

    before: Seq | None = None
    limit: Limit = MESSAGES_DEFAULT
    grouping: Grouping = "speaker"
    format: Format = "json"


class FollowMessages(Query, frozen=True, kw_only=True):
    """How many messages come at once, how they are cut, and whether their Markdown comes as `html` instead of `text`."""

    limit: Limit = MESSAGES_DEFAULT
    grouping: Grouping = "speaker"
    format: Format = "json"


class MessagePage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Messages by their first seq, as they are at `headSeq`. `nextBefore` is the `before` of the page before, null at the beginning."""

    messages: list[Raw]
    head_seq: int
    next_before: int | None


@OPERATIONS.add(
    "GET",
    "/v1/threads/{threadId}/messages",
    summary="Read a page of messages",
    tag="Messages",
    errors=("not_found",),
)
async def get_messages(call: Call, thread_id: str, query: ReadMessages) -> MessagePage:
    """The log folded into messages, newest last. `grouping` says when a message ends: with its author's turn, or with its run.
    With `format=html` the Markdown of their texts comes as sanitised `html`, for a page that shows it.

    Messages that the same event opened are on one page, so there may be a few more than asked for. There are fewer where they are long: a
    page ends before the message that would bring it beyond 4 MiB, unless that is its only one. Needs `events.subscribe`.
    """
    head = await readable_head(call.services.store, call.guard, thread_id)
    view = call.services.followings.view(thread_id, query.grouping)
    before = MAX_SEQ if query.before is None else query.before
    reading = read_page(view, before=before, limit=min(query.limit, MESSAGES_MOST), head=head)
    page = await while_wanted(call, reading)
    texts, next_before = await write_page(page, Form(query.format), view.log.turns)
    return MessagePage(messages=[Raw(text) for text in texts], head_seq=head, next_before=next_before)


@OPERATIONS.add(
    "GET",
    "/v1/threads/{threadId}/messages/stream",
    summary="Follow a thread's messages as server-sent events",
    tag="Messages",
    errors=("not_found",),
    media_type="text/event-stream",
    request_headers=("Last-Event-ID",),
    streams=True,
)
async def stream_messages(call: Call, thread_id: str, query: FollowMessages) -> None:
    """`subscription_opened` first; then a page of the newest messages as `message` events, each a whole `BubbleMessage`; then every message
    that is new or has changed, as it is by then, and `message.removed` with the `id` of one that is gone; at the end `subscription_closed`.

    A message takes the place of an earlier one with the same `id`, and its `metadata.bubble.firstSeq` tells where it belongs. Of what an
    event caused only the last has an id, the event's seq. With `Last-Event-ID` the stream begins with what changed after that event
    instead. What changes quickly is not sent each time: a long message up to once a second. With `format=html` the Markdown of texts
    comes as sanitised `html`. Needs `events.subscribe`.
    """
    after = last_event_id(call)
    services = call.services
    stream = MessageStream(
        services.hub, call.identity, services.followings, keep_alive=services.settings.streams.keep_alive
    )
    try:
        await stream.watch(
            thread_id, grouping=query.grouping, limit=min(query.limit, MESSAGES_MOST), after=after, format=query.format
        )
        exchange_of(call.scope).is_stream = True
        await while_wanted(call, send_stream(call, stream))
    finally:
        stream.close()
