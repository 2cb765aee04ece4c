"""A connection's way out: its subscriptions take turns on one bounded writer.

*Theory of operation.* A subscription is a cursor (`next_seq`) and nothing is ever queued for it. The connection goes round the
subscriptions that have something, takes a bounded slice of each from the thread's tail, and stops while its sink is over the
high-water mark; the sink wakes it again. A subscription that the tail no longer reaches back to is served from the store, one slice at a
time per connection, in reads that it shares with others who lag (see `backlog`), and takes its turn like the others. So a slow reader
costs one cursor, and a long backlog holds up nobody.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from bubble.auth.identity import Identity
from bubble.auth.policy import IdentityGuard
from bubble.hub.encodings import Chunk, Encoding
from bubble.hub.tail import Tail
from bubble.protocol.errors import BubbleError, Conflict
from bubble.protocol.resources import Grant
from bubble.store.commands import Guard
from bubble.store.notices import GrantChange

if TYPE_CHECKING:
    from bubble.hub.hub import Hub

__all__ = ["Connection", "Sink", "Subscription"]

#: How much a connection writes before the others, and what happened meanwhile, get their turn.
TURN_BYTES = 256 * 1024


class Sink(Protocol):
    """What a kind of stream does with what the hub has for it. Every method is called on the event loop and must not block."""

    @property
    def encoding(self) -> Encoding:
        """How events look here."""

    def write(self, chunk: Chunk) -> None:
        """Events, in order."""

    def is_writable(self) -> bool:
        """Whether less is waiting than the high-water mark. After a False, the sink calls `Connection.pump` once it is."""

    def subscription_opened(self, thread_id: str, through_seq: int) -> None:
        """Registered; before any event of it."""

    def subscription_closed(self, thread_id: str, error: BubbleError) -> None:
        """The server ended it; no event of it follows."""

    def grants_snapshot(self, grants: Sequence[Grant]) -> None:
        """All grants of the principal."""

    def grants_changed(self, change: GrantChange, grant: Grant) -> None:
        """One of them changed."""

    def end(self, error: BubbleError) -> None:
        """The connection itself is over: its identity is no longer valid (`unauthenticated`), or the server drains (`unavailable`)."""


class Subscription:
    """A cursor into a thread, on behalf of a connection."""

    __slots__ = ("closed", "connection", "next_seq", "queued", "reading", "refusal", "tail")

    def __init__(self, connection: Connection, tail: Tail) -> None:
        self.connection = connection
        self.tail = tail
        self.next_seq = 0  # 0: registered, but not yet opened
        self.queued = False
        self.reading = False
        self.closed = False
        self.refusal: BubbleError | None = None

    @property
    def guard(self) -> Guard:
        """The connection's rights; they follow an `auth.refresh`."""
        return self.connection.guard

    def released(self) -> None:
        """There is more: get in line."""
        if self.next_seq and not self.queued and not self.reading and self.next_seq <= self.tail.released:
            self.queued = True
            self.connection.enqueue(self)

    def close(self, error: BubbleError) -> None:
        """The server ends it."""
        if not self.closed:
            self.connection.drop(self)
            if self.next_seq:
                self.connection.sink.subscription_closed(self.tail.thread_id, error)
            else:
                self.refusal = error  # lost before it was opened: whoever is subscribing gets to hear it


class Connection:
    """Everything one peer follows, with one writer. Made by `Hub.connect`; `close()` it when the peer is gone."""

    def __init__(
        self, hub: Hub, sink: Sink, identity: Identity, guard: IdentityGuard, *, max_subscriptions: int
    ) -> None:
        self.sink = sink
        self.identity = identity
        self.guard = guard
        self.is_closed = False
        self._hub = hub
        self._max_subscriptions = max_subscriptions
        self._subscriptions: dict[str, Subscription] = {}
        self._ready: deque[Subscription] = deque()
        self._lagging: deque[Subscription] = deque()
        self._reading = False

    @property
    def subscription_count(self) -> int:
        """How many threads it follows."""
        return len(self._subscriptions)

    @property
    def lag(self) -> int:
        """How many events its subscription furthest behind has still to get."""
        opened = (each for each in self._subscriptions.values() if each.next_seq)
        return max((each.tail.released + 1 - each.next_seq for each in opened), default=0)

    # --- what the peer asks -----------------------------------------------------------------------------------------------------

    async def subscribe(self, thread_id: str, *, from_seq: int) -> None:
        """Follows a thread: the sink hears `subscription_opened`, then events (spec 2, "Opening a Subscription").

        Raises `Conflict` for a second one on the thread or one too many, `NotFound` without `events.subscribe`.
        """
        if thread_id in self._subscriptions:
            raise Conflict(f'Connection is already subscribed to thread "{thread_id}".')
        if len(self._subscriptions) >= self._max_subscriptions:
            raise Conflict(f"A connection follows at most {self._max_subscriptions} threads.")
        tail = self._hub.hold_tail(thread_id)
        subscription = self._subscriptions[thread_id] = Subscription(self, tail)
        tail.members.add(subscription)
        try:
            await self._hub.admit(tail, self.guard)
        except BaseException:
            self.drop(subscription)
            raise
        if subscription.refusal is not None:
            raise subscription.refusal
        if not subscription.closed:
            self._open(subscription, from_seq)

    def _open(self, subscription: Subscription, from_seq: int) -> None:
        # One step of the event loop: the boundary that is announced is the one the cursor starts at.
        tail = subscription.tail
        through_seq = tail.released
        subscription.next_seq = min(from_seq, through_seq + 1)
        self.sink.subscription_opened(tail.thread_id, through_seq)
        subscription.released()
        self.pump()

    def unsubscribe(self, thread_id: str) -> None:
        """Stops following; silent also where nothing was followed."""
        subscription = self._subscriptions.get(thread_id)
        if subscription is not None:
            self.drop(subscription)

    async def subscribe_grants(self) -> None:
        """Follows the principal's own grants: a snapshot, then each change. `Conflict` if it already does."""
        await self._hub.feed_grants(self)

    def unsubscribe_grants(self) -> None:
        """Stops following grants."""
        self._hub.stop_feeding_grants(self)

    def refresh(self, identity: Identity, guard: IdentityGuard) -> None:
        """Another bearer of the same principal. Subscriptions live on and are looked at before their next event."""
        before, self.identity = self.identity, identity
        self.guard = guard
        self._hub.refeed_grants(self, before=before)
        for subscription in list(self._subscriptions.values()):
            self._hub.look_again(subscription.tail)

    def close(self) -> None:
        """The peer is gone: ends everything, silently. Idempotent."""
        if self.is_closed:
            return
        self.is_closed = True
        for subscription in list(self._subscriptions.values()):
            self.drop(subscription)
        self._ready.clear()
        self._lagging.clear()
        self._hub.disconnected(self)

    # --- the writer -------------------------------------------------------------------------------------------------------------

    def enqueue(self, subscription: Subscription) -> None:
        """Gets a subscription in line; the hub pumps at the end of the turn."""
        if not self._ready:
            self._hub.will_pump(self)
        self._ready.append(subscription)

    def drop(self, subscription: Subscription) -> None:
        """Forgets a subscription."""
        subscription.closed = True
        if self._subscriptions.get(subscription.tail.thread_id) is subscription:
            del self._subscriptions[subscription.tail.thread_id]
        subscription.tail.members.discard(subscription)
        self._hub.release_tail(subscription.tail)

    def pump(self) -> None:
        """Writes what is ready, a slice per subscription and turn, while the sink takes it."""
        if self.is_closed:
            return
        ready, sink, room = self._ready, self.sink, TURN_BYTES
        while ready and sink.is_writable():
            if room <= 0:
                self._hub.will_pump(self)
                return
            subscription = ready.popleft()
            subscription.queued = False
            if subscription.closed or subscription.next_seq > subscription.tail.released:
                continue
            chunk = subscription.tail.chunk(sink.encoding, subscription.next_seq)
            if chunk is None:
                subscription.reading = True
                self._lagging.append(subscription)
            else:
                self._write(subscription, chunk)
                room -= chunk.size
        if self._lagging and not self._reading and sink.is_writable():
            self._reading = True
            self._hub.tasks.spawn(self._read_slices())

    def _write(self, subscription: Subscription, chunk: Chunk) -> None:
        self.sink.write(chunk)
        self._hub.count_deliveries(len(chunk.pieces))
        subscription.next_seq = chunk.next_seq
        if chunk.next_seq <= subscription.tail.released:
            subscription.queued = True
            self._ready.append(subscription)

    async def _read_slices(self) -> None:
        try:
            while self._lagging and self.sink.is_writable() and not self.is_closed:
                await self._read_slice(self._lagging.popleft())
                await asyncio.sleep(0)  # what is found at once takes its turn all the same
        except BubbleError as error:
            self.sink.end(error)
        finally:
            self._reading = False
        self.pump()

    async def _read_slice(self, subscription: Subscription) -> None:
        if subscription.closed:
            return
        chunk = await subscription.tail.read(self.sink.encoding, subscription.next_seq)
        subscription.reading = False
        if subscription not in subscription.tail.members or chunk is None:
            return  # closed meanwhile; or the thread was deleted, and its notice is on the way
        self._write(subscription, chunk)
        self.pump()
