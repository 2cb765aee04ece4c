"""What the routes share that send as they go, or hold an answer back: as long as the client wants it, and no longer."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from bubble.protocol.errors import InvalidRequest
from bubble.protocol.identifiers import MAX_SEQ
from bubble.server.calls import Call
from bubble.server.reading import ClientGone
from bubble.server.thread_stream import STREAM_HEADERS, ThreadStream

__all__ = ["first_of", "last_event_id", "send_stream", "while_wanted"]

T = TypeVar("T")


async def while_wanted(call: Call, work: Coroutine[object, object, T]) -> T:
    """What comes of `work`; stops it and raises `ClientGone` if the client leaves first."""
    working = asyncio.ensure_future(work)
    await first_of(working, asyncio.ensure_future(_disconnect(call)))
    return working.result()


async def first_of(*tasks: asyncio.Future[Any]) -> None:
    """Waits for the first to end, raises what it raised, and ends the others."""
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        for task in tasks:  # looked at, so that asyncio does not report them as forgotten
            if not task.cancelled():
                task.exception()


async def _disconnect(call: Call) -> None:
    while (await call.receive())["type"] != "http.disconnect":
        pass
    raise ClientGone


def last_event_id(call: Call) -> int | None:
    """The seq that a client of a stream has already; None if it names none. Raises `InvalidRequest`."""
    last = call.headers.one(b"last-event-id")
    if last is None:
        return None
    if not (last.isascii() and last.isdecimal() and len(last) <= 16 and int(last) < MAX_SEQ):
        raise InvalidRequest("`Last-Event-ID` must be the id of an event of this stream.")
    return int(last)


async def send_stream(call: Call, stream: ThreadStream) -> None:
    """Sends the stream to its end; only the headers to who asked for no more."""
    headers = [(name.encode(), value.encode()) for name, value in STREAM_HEADERS.items()]
    await call.send({"type": "http.response.start", "status": 200, "headers": headers})
    if call.scope["method"] == "HEAD":
        await call.send({"type": "http.response.body", "body": b""})
        return
    async for piece in stream.records():
        await call.send({"type": "http.response.body", "body": piece, "more_body": True})
    await call.send({"type": "http.response.body", "body": b""})
