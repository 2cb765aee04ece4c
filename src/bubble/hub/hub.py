"""The hub: hears of every commit, keeps the tails of the threads that somebody follows, and ends what may not go on.

*Theory of operation.* The store tells the hub, in commit order, what was committed. The hub hands it to the thread's tail, the tail's
members get in line at their connections, and at the end of the same turn of the event loop every connection with something in line is
pumped once: events that become ready together go to a socket in one write.

A change of grants makes the hub look at all members of that thread again before anything newer is released (see `tail`). A sweep, twice a
second, ends connections whose token, session or principal is no longer valid; a revocation on this node starts one at once. With a
store that several processes share, positions are also polled, so a lost notice delays an event but never loses it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass

from bubble.auth.identity import Identity
from bubble.auth.policy import Policy
from bubble.hub.along import Along
from bubble.hub.backlog import Backlogs
from bubble.hub.connection import Connection, Sink
from bubble.hub.grants import GrantFeeds
from bubble.hub.tail import Member, Tail
from bubble.hub.tasks import TaskOwner
from bubble.hub.waiting import HeldPage
from bubble.protocol.errors import BubbleError, NotFound, Unauthenticated, Unavailable
from bubble.protocol.identifiers import new_id
from bubble.protocol.limits import Limits
from bubble.store.base import BubbleStore
from bubble.store.commands import Guard
from bubble.store.notices import Committed, CredentialsChanged, GrantChanged, Notice, ThreadDeleted

__all__ = ["Hub", "HubStatistics"]

TAIL_EVENTS = 4_096
TAIL_BYTES = 2 * 1024 * 1024
SWEEP_SECONDS = 0.5
POLL_SECONDS = 1.0
PRESENCE_SECONDS = 30.0
PRESENCE_VALID_MS = 90_000

DRAINING = "This server is shutting down."

FindInvalid = Callable[[Collection[Identity]], Awaitable[Collection[Identity]]]


async def _all_valid(identities: Collection[Identity]) -> Collection[Identity]:  # noqa: ARG001 - embedded use
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HubStatistics:
    """Counts now (`connections`, `subscriptions`, `tails`, `tasks`) and since the start (`deliveries`).

    `lag` is how many events the subscription furthest behind has still to get.
    """

    connections: int
    subscriptions: int
    tails: int
    tasks: int
    deliveries: int
    lag: int = 0


class Hub:
    """Fans out what a store commits. `start()` it, `connect()` sinks, `close()` it."""

    def __init__(
        self,
        store: BubbleStore,
        policy: Policy,
        *,
        limits: Limits | None = None,
        find_invalid: FindInvalid = _all_valid,
    ) -> None:
        self.store = store
        self.tasks = TaskOwner()
        self.node = new_id()
        self._policy = policy
        self._limits = limits or Limits()
        self._find_invalid = find_invalid
        self._tails: dict[str, Tail] = {}
        self._backlogs = Backlogs(store, self.tasks)
        self._connections: dict[Connection, None] = {}
        self._by_principal: Counter[str] = Counter()
        self._to_pump: list[Connection] = []
        self._feeds = GrantFeeds(store)
        self._deliveries = 0
        self._sweep_now = asyncio.Event()
        self._presence_now = asyncio.Event()
        self._unlisten: Callable[[], None] | None = None
        self._is_draining = False

    async def start(self) -> None:
        """Begins to listen and to sweep."""
        self._unlisten = self.store.listen(self._heard)
        self.tasks.spawn(self._sweep())
        self.tasks.spawn(self._keep_presence())
        if self.store.is_shared:
            self.tasks.spawn(self._poll())

    async def close(self) -> None:
        """Ends every connection (`unavailable`: come back elsewhere) and all background work. Idempotent."""
        self.drain()
        if self._unlisten is not None:
            self._unlisten()
            self._unlisten = None
            await self.tasks.close()
            with contextlib.suppress(BubbleError):  # a store out of reach forgets this node by itself, in a while
                await self.store.renew_presence(self.node, [], valid_ms=PRESENCE_VALID_MS)

    def drain(self) -> None:
        """Tells every connection to come back elsewhere, and takes no more of them."""
        self._is_draining = True
        for connection in list(self._connections):
            connection.sink.end(Unavailable(DRAINING))
            connection.close()

    def statistics(self) -> HubStatistics:
        """How much there is, and how much there was."""
        return HubStatistics(
            connections=len(self._connections),
            subscriptions=sum(connection.subscription_count for connection in self._connections),
            tails=len(self._tails),
            tasks=len(self.tasks),
            deliveries=self._deliveries,
            lag=max((connection.lag for connection in self._connections), default=0),
        )

    def time(self) -> float:
        """Seconds of the event loop's clock."""
        return asyncio.get_running_loop().time()

    def call_later(self, seconds: float, call: Callable[[], None]) -> None:
        """Calls `call` on the event loop after a while."""
        asyncio.get_running_loop().call_later(seconds, call)

    # --- connections ------------------------------------------------------------------------------------------------------------

    def connect(self, sink: Sink, identity: Identity) -> Connection:
        """A connection for a peer with this identity; `Unavailable` on a hub that drains.

        Whoever was let in just before, and would connect just after, could otherwise hold up the shutdown.
        """
        if self._is_draining:
            raise Unavailable(DRAINING)
        connection = Connection(
            self, sink, identity, self._policy.guard(identity), max_subscriptions=self._limits.subscriptions
        )
        self._connections[connection] = None
        self._by_principal[connection.guard.principal_id] += 1
        if self._by_principal[connection.guard.principal_id] == 1:
            self._presence_now.set()
        return connection

    def disconnected(self, connection: Connection) -> None:
        """Forgets a connection; `Connection.close` calls this."""
        if connection in self._connections:
            del self._connections[connection]
            self._by_principal -= Counter((connection.guard.principal_id,))
        self._feeds.remove(connection)

    def connections_of(self, principal_id: str) -> int:
        """How many connections a principal has on this node."""
        return self._by_principal[principal_id]

    def end_connections(self, principal_id: str) -> int:
        """Ends all connections of a principal as unauthenticated; how many there were."""
        mine = [each for each in self._connections if each.identity.principal.principal_id == principal_id]
        for connection in mine:
            self._end(connection)
        return len(mine)

    def _end(self, connection: Connection) -> None:
        connection.sink.end(Unauthenticated("The bearer is no longer valid."))
        connection.close()

    async def wait_for_events(self, thread_id: str, *, from_seq: int, guard: Guard, timeout_ms: int) -> None:
        """Returns once the thread has an event at or after `from_seq`, or after `timeout_ms`.

        Raises `NotFound` as soon as the caller may not read the thread any longer, or it is deleted.
        """
        tail = self.hold_tail(thread_id)
        held = HeldPage(tail, from_seq, guard)
        tail.members.add(held)
        try:
            await self.admit(tail, guard)
            await held.wait(timeout_ms / 1000)
        finally:
            tail.members.discard(held)
            self.release_tail(tail)

    # --- tails ------------------------------------------------------------------------------------------------------------------

    def hold_tail(self, thread_id: str) -> Tail:
        """The thread's tail, made if nobody follows it yet. Become a member at once, or it may go."""
        tail = self._tails.get(thread_id)
        if tail is None:
            backlog = self._backlogs.open(thread_id)
            tail = Tail(thread_id, backlog, max_events=TAIL_EVENTS, max_bytes=TAIL_BYTES)
            self._tails[thread_id] = tail
        return tail

    def release_tail(self, tail: Tail) -> None:
        """Lets the tail go if it has no member left."""
        if not tail.members and self._tails.get(tail.thread_id) is tail:
            del self._tails[tail.thread_id]
            tail.close()

    async def read_along(self, thread_id: str) -> Along:
        """Reads along with a thread on the node's own behalf. `NotFound` if there is none."""
        tail = self.hold_tail(thread_id)
        along = Along(tail, release=self.release_tail)
        tail.members.add(along)
        try:
            await self.admit(tail, along.guard)
        except BaseException:
            along.close()
            raise
        return along

    async def admit(self, tail: Tail, guard: Guard) -> None:
        """Raises `NotFound` unless the guard may subscribe; afterwards the tail knows the thread's position.

        The caller is already a member, and the tail knows a version of the grants before the role is read. So the role is at least as new
        as that version, and a change that this look does not see will raise it and be looked at again when its notice comes.
        """
        if tail.grant_version < 0:
            position = await self.store.position(tail.thread_id)
            self._learn(tail, Committed(tail.thread_id, position.head, position.grant_version))
        role, join_policy = await self.store.get_role(tail.thread_id, guard.principal_id)
        guard.require("events.subscribe", thread_id=tail.thread_id, role=role, join_policy=join_policy)

    def look_again(self, tail: Tail) -> None:
        """Has the rights of all members checked before anything newer is released."""
        if not tail.checking:
            tail.checking = True
            self.tasks.spawn(self._check_members(tail))

    async def _check_members(self, tail: Tail) -> None:
        try:
            while True:
                roles, position = await self.store.get_roles(tail.thread_id)
                for member in list(tail.members):
                    self._check_member(member, tail.thread_id, roles.get(member.guard.principal_id))
                if position.grant_version >= tail.grant_version:
                    break
        except (
            BubbleError
        ) as error:  # deleted, or the store is out of reach: nothing may be released, so nobody may stay
            self._close_members(tail, error)
            return
        tail.release()
        self._wake(tail)

    def _check_member(self, member: Member, thread_id: str, role: str | None) -> None:
        try:
            member.guard.require("events.subscribe", thread_id=thread_id, role=role, join_policy="invite")
        except BubbleError as error:
            member.close(error)

    def _close_members(self, tail: Tail, error: BubbleError) -> None:
        # Nothing more comes of this tail, though a held page may stay for a moment: who comes now gets a new one.
        if self._tails.get(tail.thread_id) is tail:
            del self._tails[tail.thread_id]
        tail.close()
        for member in list(tail.members):
            member.close(error)

    def _learn(self, tail: Tail, notice: Committed) -> None:
        was_checking = tail.checking
        must_check = tail.learn(head=notice.head, grant_version=notice.grant_version, texts=notice.events)
        if must_check and not was_checking:
            self.tasks.spawn(self._check_members(tail))
        if not tail.checking:
            self._wake(tail)

    def _wake(self, tail: Tail) -> None:
        for member in tail.members:
            member.released()

    # --- what the store tells ---------------------------------------------------------------------------------------------------

    def _heard(self, notices: Sequence[Notice]) -> None:
        for notice in notices:
            if isinstance(notice, Committed):
                tail = self._tails.get(notice.thread_id)
                if tail is not None:
                    self._learn(tail, notice)
            elif isinstance(notice, GrantChanged):
                self._feeds.tell(notice)
            elif isinstance(notice, CredentialsChanged):
                self._sweep_now.set()
            else:
                self._deleted(notice)

    def _deleted(self, notice: ThreadDeleted) -> None:
        tail = self._tails.get(notice.thread_id)
        if tail is not None:
            self._close_members(tail, NotFound(f'There is no thread "{notice.thread_id}", or you may not see it.'))

    def will_pump(self, connection: Connection) -> None:
        """Pumps the connection once, at the end of this turn of the event loop."""
        if not self._to_pump:
            asyncio.get_running_loop().call_soon(self._pump)
        self._to_pump.append(connection)

    def _pump(self) -> None:
        connections, self._to_pump = self._to_pump, []
        for connection in connections:
            if not connection.is_closed:
                connection.pump()

    def count_deliveries(self, count: int) -> None:
        """Adds to the statistics."""
        self._deliveries += count

    # --- grants -----------------------------------------------------------------------------------------------------------------

    async def feed_grants(self, connection: Connection) -> None:
        """Starts a connection's grants feed; `Connection.subscribe_grants` calls this."""
        await self._feeds.add(connection)

    def refeed_grants(self, connection: Connection, *, before: Identity) -> None:
        """Follows a change of a connection's identity; `Connection.refresh` calls this."""
        self._feeds.identity_changed(connection, before=before)

    def stop_feeding_grants(self, connection: Connection) -> None:
        """Ends a connection's grants feed."""
        self._feeds.remove(connection)

    # --- in the background ------------------------------------------------------------------------------------------------------

    async def _sweep(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SWEEP_SECONDS):
                    await self._sweep_now.wait()
            self._sweep_now.clear()
            identities = {connection.identity for connection in self._connections}
            if not identities:
                continue
            try:
                invalid = frozenset(await self._find_invalid(identities))
            except BubbleError:  # the store is out of reach: the next sweep tries again
                continue
            for connection in [each for each in self._connections if each.identity in invalid]:
                self._end(connection)

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(POLL_SECONDS)
            try:
                positions = await self.store.positions(list(self._tails))
                await self._feeds.compare()
            except BubbleError:
                continue
            for thread_id, tail in list(self._tails.items()):
                position = positions.get(thread_id)
                if position is not None:
                    self._learn(tail, Committed(thread_id, position.head, position.grant_version))
                elif tail.grant_version >= 0:
                    self._deleted(ThreadDeleted(thread_id))

    async def _keep_presence(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PRESENCE_SECONDS):
                    await self._presence_now.wait()
            self._presence_now.clear()
            with contextlib.suppress(BubbleError):
                await self.renew_presence()

    async def renew_presence(self) -> None:
        """Says, for a while, who is connected here; raises what the store raises."""
        connected = sorted({connection.identity.principal.principal_id for connection in self._connections})
        await self.store.renew_presence(self.node, connected, valid_ms=PRESENCE_VALID_MS)
