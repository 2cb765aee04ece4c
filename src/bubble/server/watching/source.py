"""A bot's session as a source of frames, for an application that Bubble is embedded in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from bubble.protocol.errors import BubbleError
from bubble.protocol.identifiers import MAX_SEQ, new_id
from bubble.server.watching.following import find_bot
from bubble.server.watching.viewer import Viewer
from bubble.watch import WatchCursor, WatchError
from bubble.watch.errors import code_of
from bubble.watch.frames import Connected, Heartbeat, WatchFrame

if TYPE_CHECKING:
    from bubble.server.app import BubbleApp

__all__ = ["ThreadSource"]

#: How long a stream is silent at most, in seconds.
HEARTBEAT_SECONDS: Final = 20.0


class ThreadSource:
    """The threads of a running `create_app(...)`: `bot_id` is a bot's principal, `session_id` a thread.

    It reads in the server's own name: who may watch is for the application to say. Everybody who watches the same bot on the same thread,
    here or over HTTP, shares what is made of it.
    """

    def __init__(self, app: BubbleApp) -> None:
        self._app = app

    async def frames(
        self, *, bot_id: str, session_id: str, cursor: WatchCursor | None
    ) -> AsyncGenerator[WatchFrame, None]:
        """One stream. It has no clean end but that after a cursor which cannot be resumed from."""
        if not session_id:
            raise WatchError("invalid_argument", "`session_id` must name a thread: a bot is watched on one at a time.")
        try:
            async for frame in self._stream(bot_id, session_id, cursor):
                yield frame
        except BubbleError as error:
            raise WatchError(code_of(error), error.message) from error

    async def _stream(
        self, bot_id: str, thread_id: str, cursor: WatchCursor | None
    ) -> AsyncGenerator[WatchFrame, None]:
        followings = self._app.services.watches
        bot = await find_bot(followings.hub, bot_id)
        through = (await followings.hub.store.position(thread_id)).head
        bell = asyncio.Event()
        with ExitStack() as stack:
            following = followings.join(bot, thread_id, bell.set)
            stack.callback(followings.leave, following, bell.set)
            now = followings.clock()
            yield Connected(stream_id=new_id(), server_time_ms=now)
            viewer = Viewer(following, cursor=cursor, through=through, now_ms=now)
            while not viewer.is_over:
                bell.clear()
                taken = await viewer.take(released=MAX_SEQ)
                for frame in () if taken is None else taken.frames:
                    yield frame
                if taken is None and not await _rings(bell):
                    yield Heartbeat(server_time_ms=followings.clock())


async def _rings(bell: asyncio.Event) -> bool:
    try:
        async with asyncio.timeout(HEARTBEAT_SECONDS):
            await bell.wait()
    except TimeoutError:
        return False
    return True
