"""A bot's session as server-sent events: `GET /v1/bots/:botId/events`.

*Theory of operation.* A watcher has a subscription of its own, as the reader of events has one, but takes only the seqs of it: up to where
it may see the thread. What it is sent comes from the session that all watchers share (`following`), as bytes that were made once, and never
from beyond that seq. When nothing was sent for a while, it gets a comment, and a heartbeat.
"""

from __future__ import annotations

from typing import Final

from bubble.auth.identity import Identity
from bubble.hub import SEQS_ALONE, Chunk, Encoding
from bubble.protocol.errors import BubbleError
from bubble.protocol.identifiers import MAX_SEQ, new_id
from bubble.protocol.sse import KEEP_ALIVE
from bubble.server.thread_stream import ThreadStream
from bubble.server.watching.following import BotFollowing, BotFollowings, find_bot
from bubble.server.watching.viewer import Viewer
from bubble.watch import WatchCursor, encode_event
from bubble.watch.errors import code_of
from bubble.watch.events import ConnectedData, ConnectedEvent, HeartbeatData, HeartbeatEvent
from bubble.watch.sse import CLOSED, encode_error

__all__ = ["WatchStream"]

#: The lifetime of a stream that may live as long as its reader's rights.
UNLIMITED: Final = "0"


class WatchStream(ThreadStream):
    """One watcher's stream. `watch` a bot, then iterate `records` until they end; `close` it in any case."""

    encoding: Encoding = SEQS_ALONE

    def __init__(self, followings: BotFollowings, identity: Identity, *, keep_alive: float) -> None:
        self._followings = followings
        self._following: BotFollowing | None = None
        self._viewer: Viewer | None = None
        self._released = 0
        super().__init__(followings.hub, identity, keep_alive=keep_alive)

    async def watch(self, bot_id: str, thread_id: str, *, cursor: WatchCursor | None) -> None:
        """Goes on from `cursor`, or begins at the beginning. `NotFound` without `events.subscribe`, and for what is no bot."""
        await self.open(thread_id, from_seq=MAX_SEQ)
        bot = await find_bot(self._followings.hub, bot_id)
        # Another server may have told of more than has come by here.
        through = (await self._followings.hub.store.position(thread_id)).head
        following = self._following = self._followings.join(bot, thread_id, self._bell.set)
        now = self._followings.clock()
        self._viewer = Viewer(following, cursor=cursor, through=through, now_ms=now)
        opened = ConnectedData(stream_id=new_id(), server_time_ms=str(now), absolute_lifetime_ms=UNLIMITED)
        self._put(encode_event(ConnectedEvent(data=opened)))

    def close(self) -> None:
        """Ends the subscription and leaves the session. Idempotent."""
        super().close()
        if self._following is not None:
            self._followings.leave(self._following, self._bell.set)

    async def _fetch(self) -> None:
        await super()._fetch()
        viewer = self._viewer
        if viewer is None or self._is_over:
            return
        try:
            taken = await viewer.take(released=self._released)
        except BubbleError as error:
            self.end(error)
            return
        if taken is not None and not self._is_over:  # it may have ended meanwhile
            self._put(taken.data)
            if viewer.is_over:
                self._put(CLOSED)
                self._is_over = True

    def _idle(self) -> bytes:
        beat = HeartbeatData(server_time_ms=str(self._followings.clock()))
        return KEEP_ALIVE + encode_event(HeartbeatEvent(data=beat))

    # --- from the hub -----------------------------------------------------------------------------------------------------------

    def write(self, chunk: Chunk) -> None:
        """The thread may be seen further. That is only news where the board was already beyond."""
        before, self._released = self._released, chunk.next_seq - 1
        board = None if self._following is None else self._following.board
        if board is not None and board.head > before:
            self._bell.set()

    def subscription_opened(self, thread_id: str, through_seq: int) -> None:  # noqa: ARG002 - the session says it in its own way
        """Nothing is sent of it."""
        self._released = through_seq

    def subscription_closed(self, thread_id: str, error: BubbleError) -> None:  # noqa: ARG002 - a stream has one thread
        """The last record."""
        self.end(error)

    def end(self, error: BubbleError) -> None:
        """The watcher may not or cannot go on: the code, then nothing."""
        if not self._is_over:
            self._put(encode_error(code_of(error)))
            self._is_over = True
