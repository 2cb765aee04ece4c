"""One bot's live state over HTTP, as server-sent events."""

from __future__ import annotations

from bubble.protocol.errors import InvalidRequest
from bubble.protocol.identifiers import check_name
from bubble.server.calls import Call
from bubble.server.envelope import exchange_of
from bubble.server.operations import Operations
from bubble.server.routes.shapes import Query
from bubble.server.streaming import send_stream, while_wanted
from bubble.server.watching.stream import WatchStream
from bubble.watch import WatchCursor, WatchDecoder, WatchError

__all__ = ["OPERATIONS"]

OPERATIONS = Operations()


class WatchBot(Query, frozen=True, kw_only=True):
    """`sessionId` is the thread. `resumeFrom` is the id of an event received before, unless `Last-Event-ID` gives a later one."""

    session_id: str = ""
    resume_from: str | None = None


@OPERATIONS.add(
    "GET",
    "/v1/bots/{botId}/events",
    summary="Watch a bot on a thread as server-sent events",
    tag="Bots",
    errors=("not_found",),
    media_type="text/event-stream",
    request_headers=("Last-Event-ID",),
    streams=True,
)
async def watch_bot(call: Call, bot_id: str, query: WatchBot) -> None:
    """What a bot says and does on a thread: `message` with each of its texts as they grow, `entry` for everything else on the thread,
    `message.deleted`, `reset` when the bot cleared its session, and beside the transcript what it is doing.

    Begins with everything, or after the event with the id that `Last-Event-ID` or `resumeFrom` gives, whenever that was. Those ids are
    cursors of this bot and thread; another text is `invalid_request` with `details.watchCode` `invalid_cursor`. The last event is
    `stream.closed` or `error`. Needs `events.subscribe`.
    """
    if not query.session_id:
        raise InvalidRequest("`sessionId` must name a thread: a bot is watched on one at a time.")
    thread_id = check_name(query.session_id, path="sessionId")
    cursor = _cursor(bot_id, thread_id, call.headers.one(b"last-event-id") or query.resume_from)
    services = call.services
    stream = WatchStream(services.watches, call.identity, keep_alive=services.settings.streams.keep_alive)
    try:
        await stream.watch(bot_id, thread_id, cursor=cursor)
        exchange_of(call.scope).is_stream = True
        await while_wanted(call, send_stream(call, stream))
    finally:
        stream.close()


def _cursor(bot_id: str, thread_id: str, text: str | None) -> WatchCursor | None:
    if not text:
        return None
    try:
        cursor = WatchCursor.decode(text)
        WatchDecoder(bot_id=bot_id, session_id=thread_id, cursor=cursor)
    except WatchError as error:
        raise InvalidRequest(error.message, details={"watchCode": error.code}) from None
    return cursor
