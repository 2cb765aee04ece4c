"""A thread's messages as server-sent events: `GET /v1/threads/:threadId/messages/stream`.

*Theory of operation.* A viewer has a subscription of its own, like the reader of events, but takes only the seqs of it: up to where it may
see the thread. What it is shown comes from the following that all viewers share, and never from beyond that seq. It begins with a page,
unless it resumes; from then on its position is all that there is of it. Where the following does not reach back to its position, because
it was away or did not read for long, it goes through the log by itself, a stretch at a time, until it does.
"""

from __future__ import annotations

from typing import Final

from bubble.assembler import Grouping
from bubble.auth.identity import Identity
from bubble.hub import SEQS_ALONE, Chunk, Encoding, Hub
from bubble.protocol.errors import BubbleError
from bubble.protocol.identifiers import MAX_SEQ
from bubble.server.messages.board import Board
from bubble.server.messages.following import Following, Followings
from bubble.server.messages.forms import Form, Format
from bubble.server.messages.growing import Growing
from bubble.server.messages.paging import read_page
from bubble.server.messages.records import Paged
from bubble.server.thread_stream import ThreadStream

__all__ = ["MessageStream"]

#: How much a viewer that lags goes through at a time; more events where that alone meant going further back.
STRETCH_EVENTS: Final = 4_096
STRETCH_BYTES: Final = 4 * 1024 * 1024


class MessageStream(ThreadStream):
    """One viewer's stream. `watch` a thread, then iterate `records` until they end; `close` it in any case."""

    encoding: Encoding = SEQS_ALONE

    def __init__(self, hub: Hub, identity: Identity, followings: Followings, *, keep_alive: float) -> None:
        self._followings = followings
        self._following: Following | None = None
        self._format: Format = "json"
        self._limit = 0
        self._through = 0
        self._released = 0
        self._position: int | None = None
        self._page: Paged | None = None
        self._next_slice = 0
        self._stretch_events = STRETCH_EVENTS
        super().__init__(hub, identity, keep_alive=keep_alive)

    async def watch(
        self, thread_id: str, *, grouping: Grouping, limit: int, after: int | None, format: Format = "json"
    ) -> None:
        """Begins with the newest `limit` messages, or where `after` is given, with what changed after that seq.

        Raises `NotFound` without `events.subscribe`.
        """
        self._limit = limit
        self._format = format
        await self.open(thread_id, from_seq=MAX_SEQ)
        if after is not None:
            self._position = min(after, self._through)
        self._following = self._followings.join(thread_id, grouping, self._bell.set, format=format)

    def close(self) -> None:
        """Ends the subscription and leaves the following. Idempotent."""
        super().close()
        if self._following is not None:
            self._followings.leave(self._following, self._bell.set)

    async def _fetch(self) -> None:
        await super()._fetch()
        try:
            piece = await self._take()
        except BubbleError as error:
            self.end(error)
            return
        if piece is not None:
            self._put(piece)

    async def _take(self) -> bytes | None:
        """What to send next; None if there is nothing now. After each wait it is asked again whether the stream has ended meanwhile."""
        while self._following is not None and not self._is_over:
            if self._page is not None:
                piece = self._page.slice(self._next_slice)
                if piece is not None:
                    self._next_slice += 1
                    return piece
                self._position, self._page, self._next_slice = self._page.head, None, 0
            if self._following.error is not None:
                raise self._following.error
            board = self._following.board
            if board is None:
                return None
            if self._position is not None and self._position >= board.covers:
                return self._take_from(board, self._position)
            self._page = await self._find_page(self._following, board)
            if self._page is None:
                return None
        return None

    def _take_from(self, board: Board, position: int) -> bytes | None:
        if board.head > self._released:
            return None  # the subscription will tell when it may be seen
        missing = board.after(position, self._format)
        self._position = max(position, board.head) if missing is None else missing.position
        return None if missing is None else missing.data

    async def _find_page(self, following: Following, board: Board) -> Paged | None:
        if self._position is not None:
            return await self._read_stretch(following, self._position)
        if not self._through <= board.head <= self._released:
            return None
        page = board.page(self._limit, self._format)
        if page is None:
            head = self._released  # it may rise while the page is read
            read = await read_page(following.view, before=MAX_SEQ, limit=self._limit, head=head)
            page = Paged(read.messages, head=head, form=Form(self._format))
        return page

    async def _read_stretch(self, following: Following, position: int) -> Paged | None:
        """What the next stretch of the log changed, as it was at its end."""
        texts: list[bytes] = []
        size = 0
        async for some in following.view.log.slices(position + 1, min(self._released, position + self._stretch_events)):
            texts += some
            size += sum(map(len, some))
            if size >= STRETCH_BYTES:
                break
        if not texts:
            return None
        growing = await Growing.after(following.view, position)
        changes = await growing.grow(texts)
        self._stretch_events = max(STRETCH_EVENTS, growing.size)
        return Paged(changes.upserts, head=growing.head, form=Form(self._format))

    # --- from the hub -----------------------------------------------------------------------------------------------------------

    def write(self, chunk: Chunk) -> None:
        """The thread may be seen further."""
        self._released = chunk.next_seq - 1
        self._bell.set()

    def subscription_opened(self, thread_id: str, through_seq: int) -> None:
        """The first record."""
        self._through = self._released = through_seq
        super().subscription_opened(thread_id, through_seq)
