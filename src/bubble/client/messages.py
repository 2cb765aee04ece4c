"""A thread as messages, followed: its events, folded as they come.

*Theory of operation.* All that has come since the last time is folded at once, so a reader that is slow sees fewer states and never falls
behind by more than the one it is looking at. A batch counts as folded only after the assembler has taken it in: if the reader is
cancelled in between, the same batch is folded again, which the assembler passes over as far as it had it.

An older page makes the assembler begin anew. So each page is as large as all that is there already: reading back through a whole thread
costs about twice what folding it once does, however long it is.

Where extensions are negotiated again and another set is settled, the events that are there are folded anew with its handlers, and what
looks different then is an update like any other (spec 4, "Negotiated providers").

A beginning may lie beyond the head. The events up to it are passed over, but seen, so that none is missing once older ones are wanted. It
does not move while a batch is folded: what is passed over in one is what is older afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from bubble.assembler import Assembler, BubbleMessage, Grouping, ThreadSnapshot, message_changes
from bubble.client.events import EventLog
from bubble.client.negotiation import AssemblerProvider
from bubble.client.subscriptions import ThreadSubscription
from bubble.client.threads import Threads
from bubble.protocol.events import SequencedEvent
from bubble.protocol.identifiers import check_seq

__all__ = ["MessagesServices", "MessagesSubscription", "MessagesUpdate"]

# What is read of a thread's history at first, and then at least, in events.
_PAGE = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagesUpdate:
    """What a thread shows now: all its `messages` in order, and against the update before it, which of them are new or changed
    (`upserts`) and the ids of those that are gone (`removals`). `head_seq` is the last event that is taken into account.
    """

    messages: Sequence[BubbleMessage]
    upserts: Sequence[BubbleMessage]
    removals: Sequence[str]
    head_seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagesServices:
    """What following needs of the client. `assembler` makes one after the first negotiation has settled."""

    assembler: Callable[[], Awaitable[Assembler]]
    provider: AssemblerProvider
    threads: Threads
    events: EventLog
    subscribe: Callable[[str, int], ThreadSubscription]


class MessagesSubscription:
    """Made by `BubbleConnection.follow_messages`; `async with` it, then `async for`.

    The first update has the history that was there when it was entered, the later ones come when something changed. It reads the last
    1,000 events at first, so the oldest message may lack its beginning; `load_older` brings what is before. It is resumed over
    reconnects, follows the revisions of `BubbleConnection.assembler`, and ends with the errors of `ThreadSubscription`.
    """

    def __init__(
        self, services: MessagesServices, *, thread_id: str, grouping: Grouping, from_seq: int | None = None
    ) -> None:
        self.thread_id = thread_id
        self._services = services
        self._grouping: Grouping = grouping
        self._from_seq = from_seq
        self._oldest = self._seen = 0
        self._batch: Sequence[SequencedEvent] = ()
        self._shown: ThreadSnapshot | None = None
        self._comparing = asyncio.Lock()
        self._loading = asyncio.Lock()
        self._moving = asyncio.Lock()  # what is `_seen`, or where it begins
        self._stack = AsyncExitStack()

    @property
    def has_older(self) -> bool:
        """Whether the thread has events before those that are taken into account."""
        return self._last_older > 0

    async def load_older(self, *, limit: int | None = None) -> MessagesUpdate:
        """Takes up to `limit` older events into account, and tells what that changes. Not before the first update.

        By default as many as there are already, and at least 1,000. `InvalidRequest` for a `limit` below 1.
        """
        most = None if limit is None else check_seq(limit, path="limit")
        if self._shown is None:
            raise RuntimeError("The first update comes before older ones.")
        async with self._loading:
            if self.has_older:
                await self._load(most or max(_PAGE, self._seen - self._oldest + 1))
        return await self._update()

    async def _load(self, limit: int) -> None:
        async with self._moving:
            before, last = self._oldest, self._last_older
            self._oldest = max(1, last - limit + 1)  # at once: what comes meanwhile is after it
        try:
            await self._thread.prepend([event async for event in self._read(self._oldest, last)])
        except BaseException:
            self._oldest = before
            raise

    @property
    def _last_older(self) -> int:
        return min(self._oldest - 1, self._seen)

    async def __aenter__(self) -> Self:
        if self._oldest:
            raise RuntimeError("A subscription is entered once.")
        async with AsyncExitStack() as stack:
            self._thread = (await self._services.assembler()).open(grouping=self._grouping)
            self._revision = self._services.provider.revision
            stack.push_async_callback(self._close_thread)
            head = (await self._services.threads.get(self.thread_id)).head_seq
            self._oldest = self._from_seq or max(1, head - _PAGE + 1)
            self._seen = min(self._oldest - 1, head)
            self._events = await stack.enter_async_context(self._services.subscribe(self.thread_id, self._seen + 1))
            stack.callback(self._services.provider.subscribe(self._events.wake))
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    def __aiter__(self) -> AsyncIterator[MessagesUpdate]:
        return self

    async def __anext__(self) -> MessagesUpdate:
        if not self._oldest:
            raise RuntimeError("A subscription is entered, with `async with`, before it is read.")
        while self._shown is None and self._seen < self._events.through_seq:
            await self._take_in()
        if self._shown is None:
            return await self._update()
        while True:
            await self._take_in()
            update = await self._update()
            if update.upserts or update.removals:
                return update

    def _read(self, first: int, last: int) -> AsyncIterator[SequencedEvent]:
        return self._services.events.iterate(self.thread_id, from_seq=first, to_seq=last, unknown="keep")

    async def _take_in(self) -> None:
        while not (self._batch or self._is_outdated):
            self._batch = self._events.take_batch()
            if not self._batch:
                await self._events.wait()
        if self._is_outdated:
            await self._reopen()
        if self._batch:
            async with (
                self._moving
            ):  # so that what is left out here is still older than all that is asked for meanwhile
                await self._thread.apply([event for event in self._batch if event.seq >= self._oldest])
                self._seen, self._batch = self._batch[-1].seq, ()

    @property
    def _is_outdated(self) -> bool:
        return self._revision != self._services.provider.revision

    async def _reopen(self) -> None:
        async with self._loading:  # nothing older is on its way into the one that is left
            revision = self._services.provider.revision
            thread = await self._services.provider.create().reopen(self._thread)
            left, self._thread, self._revision = self._thread, thread, revision
        await left.close()

    async def _close_thread(self) -> None:
        await self._thread.close()

    async def _update(self) -> MessagesUpdate:
        async with self._comparing:
            before, self._shown = self._shown, await self._thread.snapshot()
            changes = message_changes(before, self._shown)
            return MessagesUpdate(
                messages=self._shown.messages,
                upserts=changes.upserts,
                removals=changes.removals,
                head_seq=self._shown.head_seq,
            )
