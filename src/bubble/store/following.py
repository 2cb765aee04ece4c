"""The store's own subscription: one callback, backlog first, then live (spec 1, "Subscribing to a Thread").

It is a cursor and a bell: the store's notices only say that there is more, the events are always read by seq. So nothing is queued for
a slow callback, and a notice that came twice or not at all costs nothing but a look.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, WeakSet

from bubble.protocol.errors import BubbleError, NotFound, Unavailable, thread_not_found
from bubble.protocol.events import SequencedEvent
from bubble.protocol.identifiers import check_seq
from bubble.store.notices import Committed, Notice, ThreadDeleted

if TYPE_CHECKING:
    from bubble.store.base import BubbleStore

__all__ = ["StoreSubscription", "end_subscriptions", "follow"]

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
        self._is_over = False
        self._cause: BubbleError | None = None
        self._task: asyncio.Task[None] | None = None
        self._unlisten = store.listen(self._heard)

    async def unsubscribe(self) -> None:
        """Ends it. Idempotent; no callback runs after it has returned (within a callback: no further one)."""
        await self.stop(None)

    async def wait_closed(self) -> None:
        """Returns once the subscription was ended by its owner; raises what the callback raised, or what else ended it.

        That is `NotFound` where the thread was deleted, `Unavailable` where the store was closed.
        """
        if self._task is not None:
            await asyncio.wait([self._task])
            if not self._task.cancelled():
                await self._task
        if self._cause is not None:
            raise self._cause

    async def stop(self, cause: BubbleError | None) -> None:
        """Ends it at once, also within a callback that waits; `cause` is for `wait_closed`."""
        self.end(cause)
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()
            await asyncio.wait([self._task])

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

    def end(self, cause: BubbleError | None) -> None:
        """Lets it end after the callback that is running; `cause` is for `wait_closed`. The first end counts."""
        if not self._is_over:
            self._is_over, self._cause = True, cause
            self._unlisten()
            self._bell.set()

    def _heard(self, notices: Sequence[Notice]) -> None:
        for notice in notices:
            if isinstance(notice, Committed) and notice.thread_id == self._thread_id:
                self._head = max(self._head, notice.head)
                self._bell.set()
            elif isinstance(notice, ThreadDeleted) and notice.thread_id == self._thread_id:
                self.end(thread_not_found(self._thread_id))

    async def _run(
        self, on_event: Callable[[SequencedEvent], object], wanted: Callable[[SequencedEvent], bool] | None
    ) -> None:
        try:
            while not self._is_over:
                if self._next_seq > self._head:
                    await self._wait_for_more()
                    continue
                for event in await self._next_slice():
                    await self._deliver(event, on_event, wanted)
        finally:
            self.end(None)

    async def _deliver(
        self,
        event: SequencedEvent,
        on_event: Callable[[SequencedEvent], object],
        wanted: Callable[[SequencedEvent], bool] | None,
    ) -> None:
        if self._is_over:
            return
        self._next_seq = event.seq + 1
        if wanted is None or wanted(event):
            called = on_event(event)
            if inspect.isawaitable(called):
                await called

    async def _next_slice(self) -> Sequence[SequencedEvent]:
        try:
            texts = await self._store.read(
                self._thread_id,
                from_seq=self._next_seq,
                to_seq=self._head,
                limit=_SLICE_EVENTS,
                max_bytes=_SLICE_BYTES,
            )
        except BubbleError as error:
            self.end(error)
            return ()
        if not texts:
            self.end(thread_not_found(self._thread_id))
        return [SequencedEvent.from_stored(text) for text in texts]

    async def _wait_for_more(self) -> None:
        self._bell.clear()
        if not self._store.is_shared:
            await self._bell.wait()
            return
        try:
            async with asyncio.timeout(_POLL_SECONDS):
                await self._bell.wait()
        except TimeoutError:
            await self._poll()

    async def _poll(self) -> None:
        try:
            position = await self._store.position(self._thread_id)
        except NotFound as error:
            self.end(error)
        except Unavailable:
            return  # a shared store may come back; the cursor stays where it is
        else:
            self._head = max(self._head, position.head)


# Which subscriptions a store has, so that closing it ends them: a task that waits for a bell that nobody rings any more has no owner.
_SUBSCRIPTIONS: WeakKeyDictionary[BubbleStore, WeakSet[StoreSubscription]] = WeakKeyDictionary()


async def end_subscriptions(store: BubbleStore) -> None:
    """Ends every subscription of a store that is being closed, with `Unavailable`, and waits for their tasks."""
    for subscription in list(_SUBSCRIPTIONS.get(store, ())):
        await subscription.stop(Unavailable("The store was closed."))


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
        subscription.end(None)
        raise
    _SUBSCRIPTIONS.setdefault(store, WeakSet()).add(subscription)
    subscription.start(on_event, wanted)
    return subscription
