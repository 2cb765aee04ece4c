"""`watch_bot`: the events of one bot's session, as an asynchronous iterator.

A clean end of the stream ends the iteration, and so does `resync-required`, whatever comes after it. Every other end raises `WatchError`: a
stream that stops without its end marker (`stream_truncated`), one that says nothing for too long (`stalled`), what the upstream says.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from types import TracebackType
from typing import Final, Self

from bubble.client.backoff import Backoff
from bubble.watch.cursor import WatchCursor
from bubble.watch.decoder import WatchDecoder
from bubble.watch.errors import WatchError
from bubble.watch.events import WatchEvent
from bubble.watch.sources import Frame, WatchSource

__all__ = ["BotWatch", "watch_bot"]

#: No frame, not even a heartbeat, for so many seconds: nothing will come any more.
STALL_SECONDS: Final = 60.0
_END: Final[Frame] = {}  # known by its identity: no source gives this one


def watch_bot(
    source: WatchSource,
    *,
    bot_id: str,
    session_id: str = "",
    resume_from: str | WatchCursor | None = None,
    stall_seconds: float = STALL_SECONDS,
    reconnecting: bool = False,
    backoff: Backoff | None = None,
) -> BotWatch:
    """Watches a bot's session: iterate over it, or `async with` it to be sure that the stream is closed.

    `resume_from` is the id of an event of an earlier watch of the same bot and session; None or `""` begins with what the source has.
    `WatchError` `invalid_cursor` is raised here, before anything is opened. With `reconnecting`, what may pass by itself is waited for
    (`WatchError.may_pass`; `bubble.watch.errors` has the table), as `backoff` says: exponentially and with full jitter, from anew once an
    event with an id has come. Then the watch goes on from its newest cursor. What cannot pass is raised all the same, and a clean end is
    the end.
    """
    cursor = (WatchCursor.decode(resume_from) if resume_from else None) if isinstance(resume_from, str) else resume_from
    decoder = WatchDecoder(bot_id=bot_id, session_id=session_id, cursor=cursor)
    stream = _Stream(source, decoder, stall_seconds=stall_seconds)
    events = _reconnecting(stream, backoff or Backoff()) if reconnecting else stream.events()
    return BotWatch(events, cursor=None if cursor is None else cursor.encode())


class BotWatch:
    """The events of one bot's session, as they come. Made by `watch_bot`; `aclose()` it, if it is not read to its end."""

    def __init__(self, events: AsyncGenerator[WatchEvent, None], *, cursor: str | None) -> None:
        self._events = events
        self._cursor = cursor

    @property
    def cursor(self) -> str | None:
        """Where to resume: the id that came last, or else the one that was resumed from; None if there is neither."""
        return self._cursor

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> WatchEvent:
        event = await anext(self._events)
        self._cursor = event.id or self._cursor
        return event

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes the stream. Idempotent."""
        await self._events.aclose()


class _Stream:
    def __init__(self, source: WatchSource, decoder: WatchDecoder, *, stall_seconds: float) -> None:
        self._source = source
        self._decoder = decoder
        self._stall_seconds = stall_seconds

    async def events(self) -> AsyncGenerator[WatchEvent, None]:
        """Those of one stream, from the decoder's cursor on."""
        decoder = self._decoder
        frames = self._source.frames(bot_id=decoder.bot_id, session_id=decoder.session_id, cursor=decoder.cursor)
        try:
            while not decoder.is_over:
                frame = await self._next(frames)
                if frame is _END:
                    return
                for event in decoder.decode(frame):
                    yield event
        finally:
            await frames.aclose()

    async def _next(self, frames: AsyncGenerator[Frame, None]) -> Frame:
        patience = asyncio.timeout(self._stall_seconds)
        try:
            async with patience:
                return await anext(frames, _END)
        except TimeoutError:
            if not patience.expired():
                raise
            raise WatchError("stalled", f"No frame came for {self._stall_seconds:g} s.") from None


async def _reconnecting(stream: _Stream, backoff: Backoff) -> AsyncGenerator[WatchEvent, None]:
    failures = 0
    while True:
        events = stream.events()
        try:
            async for event in events:
                failures = failures if event.id is None else 0
                yield event
            return
        except WatchError as error:
            if not error.may_pass:
                raise
        finally:
            await events.aclose()
        await asyncio.sleep(backoff.wait(failures))
        failures += 1
