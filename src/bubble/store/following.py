"""The store's own subscription: one callback, backlog first, then live (spec 1, "Subscribing to a Thread").

It is a cursor and a bell: the store's notices only say that there is more, the events are always read by seq. So nothing is queued for
a slow callback, and a notice that came twice or not at all costs nothing but a look.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from bubble.protocol.errors import NotFound
from bubble.protocol.events import SequencedEvent
from bubble.protocol.identifiers import check_seq
from bubble.store.notices import Committed, Notice, ThreadDeleted

if TYPE_CHECKING:
    from bubble.store.base import BubbleStore

__all__ = ["StoreSubscription", "follow"]

_SLICE_EVENTS = 256
_SLICE_BYTES = 1024 * 1024
_POLL_SECONDS = 1.0


class StoreSubscription:
    """A live subscription. `through_seq` is the head at registration: events up to it are backlog, later ones live."""

    def __init__(self, store: BubbleStore, thread_id: str, *, from_seq: int) -> None:
        self.through_seq = 0
        self._store = store
        self._thread_id = thread_id
        self._next_seq = from_seq
        self._head = 0
        self._bell = asyncio.Event()
        self._deleted = False
        self._task: asyncio.Task[None] | None = None
        self._unlisten = store.listen(self._heard)

    async def unsubscribe(self) -> None:
        """Ends it. Idempotent; no callback runs after it has returned."""
        self._unlisten()
        task = self._task
        if task is not None and task is not asyncio.current_task():
            task.cancel()
            await asyncio.wait([task])

    async def wait_closed(self) -> None:
        """Returns once the subscription has ended; raises what the callback raised, or `NotFound` if the thread was deleted."""
        if self._task is None:
            return
        await asyncio.wait([self._task])
        if not self._task.cancelled():
            await self._task

    def register(self, head: int) -> None:
        """Pins the boundary. Live means everything after it, even where `from_seq` lies beyond the head."""
        self.through_seq = head
        self._next_seq = min(self._next_seq, head + 1)
        self._head = max(self._head, head)

    def start(
        self, on_event: Callable[[SequencedEvent], object], wanted: Callable[[SequencedEvent], bool] | None
    ) -> None:
        """Begins to call `on_event`, from the next turn of the event loop on."""
        self._task = asyncio.get_running_loop().create_task(self._run(on_event, wanted))

    def _heard(self, notices: Sequence[Notice]) -> None:
        for notice in notices:
            if isinstance(notice, Committed) and notice.thread_id == self._thread_id:
                self._head = max(self._head, notice.head)
                self._bell.set()
            elif isinstance(notice, ThreadDeleted) and notice.thread_id == self._thread_id:
                self._deleted = True
                self._bell.set()

    async def _run(
        self, on_event: Callable[[SequencedEvent], object], wanted: Callable[[SequencedEvent], bool] | None
    ) -> None:
        try:
            while True:
                while self._next_seq <= self._head and not self._deleted:
                    await self._deliver_slice(on_event, wanted)
                if self._deleted:
                    raise NotFound(f'Thread "{self._thread_id}" was deleted.')
                await self._wait_for_more()
        finally:
            self._unlisten()

    async def _deliver_slice(
        self, on_event: Callable[[SequencedEvent], object], wanted: Callable[[SequencedEvent], bool] | None
    ) -> None:
        texts = await self._store.read(
            self._thread_id,
            from_seq=self._next_seq,
            to_seq=self._head,
            limit=_SLICE_EVENTS,
            max_bytes=_SLICE_BYTES,
        )
        if not texts:
            self._deleted = True
        for text in texts:
            event = SequencedEvent.from_stored(text)
            self._next_seq = event.seq + 1
            if wanted is None or wanted(event):
                called = on_event(event)
                if inspect.isawaitable(called):
                    await called

    async def _wait_for_more(self) -> None:
        self._bell.clear()
        if not self._store.is_shared:
            await self._bell.wait()
            return
        try:
            async with asyncio.timeout(_POLL_SECONDS):
                await self._bell.wait()
        except TimeoutError:
            position = (await self._store.positions([self._thread_id])).get(self._thread_id)
            self._deleted = position is None
            self._head = max(self._head, position.head if position else 0)


async def follow(
    store: BubbleStore,
    thread_id: str,
    on_event: Callable[[SequencedEvent], object],
    *,
    from_seq: int,
    wanted: Callable[[SequencedEvent], bool] | None,
) -> StoreSubscription:
    """Registers and starts a subscription, as `BubbleStore.subscribe` says."""
    check_seq(from_seq, path="fromSeq")
    subscription = StoreSubscription(store, thread_id, from_seq=from_seq)
    try:
        subscription.register((await store.position(thread_id)).head)
    except BaseException:
        await subscription.unsubscribe()
        raise
    subscription.start(on_event, wanted)
    return subscription
