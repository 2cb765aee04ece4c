"""`BubbleStore`: the contract every backend keeps. `bubble.testing.store_suite` holds a backend to it.

What a backend promises, whatever it stores in:

1. An append is answered after its events are durable.
2. `seq` is dense and assigned in commit order; nobody sees n+1 before n.
3. An event's text comes back byte for byte.
4. A command is all or nothing: a batch, a grant with its `participant_*` event, an idempotency key with its event.
5. An append costs the same in a long thread as in a short one, with many threads as with few.
6. A deleted thread's id is retired for ever, its bytes are gone.
7. Commands on one thread take effect in the order they were submitted.

Methods raise `BubbleError`s. A `guard`, where one is given, is applied within the transaction, so that it decides by the grants committed
at that moment; without one the caller is trusted (embedded use). Times are milliseconds since 1970 unless they are on the wire.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from types import TracebackType
from typing import Literal, Self

from bubble.protocol.events import BubbleEvent, EncodedEvent, SequencedEvent
from bubble.protocol.resources import (
    EventPage,
    Grant,
    GrantPage,
    JoinPolicy,
    Principal,
    PrincipalPage,
    Run,
    RunPage,
    RunStateName,
    Thread,
    ThreadPage,
)
from bubble.store.commands import AppendCommand, Guard, IdempotencyKey
from bubble.store.following import StoreSubscription, follow
from bubble.store.notices import Listener, Position
from bubble.store.paging import event_page
from bubble.store.records import (
    Credential,
    CredentialKind,
    CredentialState,
    NewPrincipal,
    NewThread,
    PrincipalChanges,
    Problem,
    StoreStatistics,
    ThreadChanges,
)
from bubble.store.waiting import append_and_wait

__all__ = ["BubbleStore"]


class BubbleStore(ABC):
    """One durable home of threads and of who may do what on them. Use as `async with`, or `close()` it."""

    #: Whether other processes write to the same data, so that a hub has to poll `positions` beside listening.
    is_shared: bool = False

    # --- life -------------------------------------------------------------------------------------------------------------------

    @abstractmethod
    async def close(self) -> None:
        """Commits and tells what was submitted, ends the subscriptions, then releases everything. Idempotent.

        From then on everything else raises `Unavailable`.
        """

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @abstractmethod
    async def ping(self) -> None:
        """Returns if the store can be read and written; raises `Unavailable` otherwise."""

    @abstractmethod
    def listen(self, listener: Listener) -> Callable[[], None]:
        """Calls `listener` on the event loop with the notices of each commit, in order, until the returned function is called.

        An append's `done` runs, and every other change returns, after the listeners have been told of it.
        """

    @abstractmethod
    def statistics(self) -> StoreStatistics:
        """Counters since opening."""

    @abstractmethod
    async def check(self) -> list[Problem]:
        """Verifies density, heads and runs of every thread; an empty list means all is well."""

    @abstractmethod
    async def purge(self, *, idempotency_ms: int) -> None:
        """Forgets idempotency keys older than `idempotency_ms`, spent and expired one-use credentials and stale presence."""

    # --- events -----------------------------------------------------------------------------------------------------------------

    @abstractmethod
    def submit(self, command: AppendCommand) -> None:
        """Queues an append for the next group commit; never waits. The outcome goes to `command.done`.

        Raises `Unavailable` if the store is closed.
        """

    async def append(
        self,
        thread_id: str,
        event: BubbleEvent | Mapping[str, object] | EncodedEvent,
        *,
        guard: Guard | None = None,
        idempotency: IdempotencyKey | None = None,
        expected_head: int | None = None,
    ) -> SequencedEvent:
        """Appends one event, durable on return (spec 1, "Appending Events"). Creates an unknown thread where no `guard` is given.

        Raises `InvalidRequest` (malformed), `Conflict` (run lifecycle, expected head, key reused), and what the guard raises.
        """
        appended = await append_and_wait(
            self, thread_id, [event], guard=guard, idempotency=idempotency, expected_head=expected_head
        )
        return appended.events[0]

    async def append_many(
        self,
        thread_id: str,
        events: Sequence[BubbleEvent | Mapping[str, object] | EncodedEvent],
        *,
        guard: Guard | None = None,
        idempotency: IdempotencyKey | None = None,
        expected_head: int | None = None,
    ) -> Sequence[SequencedEvent]:
        """Like `append` for several events: all or none, consecutive seqs, in order."""
        appended = await append_and_wait(
            self, thread_id, events, guard=guard, idempotency=idempotency, expected_head=expected_head
        )
        return appended.events

    @abstractmethod
    async def read(self, thread_id: str, *, from_seq: int, to_seq: int, limit: int, max_bytes: int) -> Sequence[bytes]:
        """The wire texts of the events from `from_seq` to `to_seq` (inclusive), ascending: at most `limit`, stopping at `max_bytes`.

        Holds at least one event where there is one. Empty for an unknown thread.
        """

    @abstractmethod
    async def find_events(
        self, thread_id: str, *, containing: bytes, from_seq: int, to_seq: int, limit: int, max_bytes: int
    ) -> Sequence[bytes]:
        """As `read`, but only the wire texts that have `containing` in them.

        All from `from_seq` to `to_seq` are looked at unless `limit` or `max_bytes` ends the answer before, so a caller bounds the work by
        the range. For what a log holds seldom, and nothing else tells where.
        """

    async def get_event_page(
        self, thread_id: str, *, from_seq: int = 1, to_seq: int | None = None, limit: int = 100
    ) -> EventPage:
        """One contiguous page (spec 1, "Reading History over HTTP"); `next_seq` is None once `to_seq` or the head is reached.

        `limit` above 1,000 is clamped; a page also stops at 4 MiB. Raises `InvalidRequest` for a limit below 1 or a seq out of range,
        `NotFound` for an unknown thread.
        """
        return await event_page(self, thread_id, from_seq=from_seq, to_seq=to_seq, limit=limit)

    async def subscribe(
        self,
        thread_id: str,
        on_event: Callable[[SequencedEvent], object],
        *,
        from_seq: int = 1,
        filter: Callable[[SequencedEvent], bool] | None = None,
    ) -> StoreSubscription:
        """Backlog from `from_seq`, then live events, through one callback, plain or coroutine (spec 1, "Subscribing to a Thread").

        `on_event` is first called after this has returned, one event at a time; an exception in it ends the subscription and comes
        out of `await subscription.wait_closed()`. Raises `NotFound` for an unknown thread.
        """
        return await follow(self, thread_id, on_event, from_seq=from_seq, wanted=filter)

    @abstractmethod
    async def position(self, thread_id: str) -> Position:
        """The thread's head and grant version, read together. `NotFound` if there is no such thread."""

    @abstractmethod
    async def positions(self, thread_ids: Sequence[str]) -> Mapping[str, Position]:
        """The positions of those of `thread_ids` that exist."""

    # --- threads ----------------------------------------------------------------------------------------------------------------

    @abstractmethod
    async def create_thread(self, new: NewThread) -> Thread:
        """Creates a thread, its creator as `owner` first, then each participant in order, with their `participant_joined` events.

        `Conflict` if the id was ever taken, `NotFound` naming a participant that does not exist.
        """

    @abstractmethod
    async def get_thread(self, thread_id: str, *, principal_id: str | None = None) -> Thread:
        """The thread, with `role` of `principal_id` where it has one. `NotFound` if there is none."""

    @abstractmethod
    async def list_threads(
        self,
        *,
        principal_id: str | None,
        viewer: str | None = None,
        after: str | None = None,
        limit: int = 100,
        query: str | None = None,
    ) -> ThreadPage:
        """Threads on which `principal_id` has a grant (None: all), latest activity first; `query` is part of title or id.

        `role` is that of `principal_id`, or of `viewer` where all are asked for.

        `after` is a previous page's `next_after`; `InvalidRequest` if it is none.
        """

    @abstractmethod
    async def update_thread(
        self, thread_id: str, changes: ThreadChanges, *, by: str, guard: Guard | None = None
    ) -> Thread:
        """Changes what `changes` names; the thread with the role of `by`.

        Another title also writes `thread_title_updated` in the same transaction (an empty title where it was cleared).
        """

    @abstractmethod
    async def delete_thread(self, thread_id: str, *, guard: Guard | None = None) -> None:
        """Deletes the thread for good and retires its id. Its grants are told as revoked, then `ThreadDeleted`."""

    @abstractmethod
    async def import_thread(self, new: NewThread, events: Sequence[SequencedEvent]) -> Thread:
        """Creates a thread with exactly `events` (seq dense from 1, createdAt never backwards), runs and grants rebuilt from them.

        `new` writes no events here: principals that exist here, joined and did not leave become participants (unless
        `new.keeps_participants` is False), those of `new` have their role, `new.creator` is the owner. Without a title in `new` the last
        one that the events tell is taken.
        `Conflict` if the id was ever taken; `InvalidRequest` naming the first event that does not fit.
        """

    # --- grants -----------------------------------------------------------------------------------------------------------------

    @abstractmethod
    async def get_role(self, thread_id: str, principal_id: str) -> tuple[str | None, JoinPolicy]:
        """The principal's role on the thread, if any, and the thread's join policy. `NotFound` if there is no such thread."""

    @abstractmethod
    async def get_roles(self, thread_id: str) -> tuple[Mapping[str, str], Position]:
        """Every role on the thread by principal, read together with its position. `NotFound` if there is no such thread."""

    @abstractmethod
    async def put_grant(
        self, thread_id: str, principal_id: str, role: str, *, by: str, appends: bool, guard: Guard | None = None
    ) -> tuple[Grant, bool]:
        """Gives or changes a grant; whether it is new stands beside it. `appends` tells whether `role` can append.

        Writes `participant_joined` / `participant_left` where that changes. `Conflict` for the last owner, `NotFound` for an unknown
        thread or principal. Putting one's own grant on an open thread is the one thing that needs no `grants.manage`.
        """

    @abstractmethod
    async def remove_grant(self, thread_id: str, principal_id: str, *, by: str, guard: Guard | None = None) -> None:
        """Takes a grant away, writing `participant_left` if it could append. `Conflict` for the last owner."""

    @abstractmethod
    async def list_grants(self, thread_id: str, *, after: str | None = None, limit: int = 100) -> GrantPage:
        """The thread's grants by principal, each with its principal's summary."""

    @abstractmethod
    async def list_grants_of(self, principal_id: str, *, after: str | None = None, limit: int = 100) -> GrantPage:
        """The principal's grants by thread."""

    # --- runs and cursors -------------------------------------------------------------------------------------------------------

    @abstractmethod
    async def list_runs(
        self,
        thread_id: str,
        *,
        state: RunStateName | None = None,
        principal_id: str | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> RunPage:
        """The thread's runs by first seq. `NotFound` for an unknown thread."""

    @abstractmethod
    async def get_runs(self, thread_id: str, run_ids: Collection[str]) -> Mapping[str, Run]:
        """Those of `run_ids` that ever started on the thread, by id. `NotFound` for an unknown thread."""

    @abstractmethod
    async def finish_lost_runs(self, *, idle_since_ms: int) -> int:
        """Finishes, as `system:bubble` with outcome `lost`, each open run without an event since then whose principal is not present.

        Conditional on the run still being open and idle in the same transaction, so exactly one `run_finished` is written. The count.
        """

    @abstractmethod
    async def renew_presence(self, node: str, principal_ids: Sequence[str], *, valid_ms: int) -> None:
        """Says which principals hold a connection to `node`, replacing what that node said before; forgotten after `valid_ms`."""

    @abstractmethod
    async def get_cursor(self, thread_id: str, principal_id: str) -> int:
        """The principal's consumer cursor on the thread; 0 where it never set one."""

    @abstractmethod
    async def advance_cursor(self, thread_id: str, principal_id: str, seq: int, *, guard: Guard | None = None) -> int:
        """Moves the cursor forward to `seq` and tells where it is; a smaller `seq` changes nothing. `InvalidRequest` beyond the head."""

    # --- principals -------------------------------------------------------------------------------------------------------------

    @abstractmethod
    async def create_principal(self, new: NewPrincipal) -> Principal:
        """Registers a principal. `Conflict` if the id is taken, `NotFound` for an unknown owner.

        `InvalidRequest` for a bot without an owner, an owner that is no user, or one of somebody who is no bot.
        """

    @abstractmethod
    async def get_principal(self, principal_id: str) -> Principal:
        """The principal, disabled or not. `NotFound` if there is none."""

    @abstractmethod
    async def list_principals(
        self, *, owner: str | None = None, after: str | None = None, limit: int = 100
    ) -> PrincipalPage:
        """Principals by id; only those owned by `owner` where given."""

    @abstractmethod
    async def update_principal(self, principal_id: str, changes: PrincipalChanges) -> Principal:
        """Changes what `changes` names; disabling, enabling and another deployment role tell the listeners (`CredentialsChanged`)."""

    @abstractmethod
    async def find_identity(self, issuer: str, subject: str) -> Principal | None:
        """The principal that an external identity is linked to."""

    @abstractmethod
    async def link_identity(self, issuer: str, subject: str, principal_id: str) -> None:
        """Links an external identity to a principal. `Conflict` if it is linked to another one."""

    # --- credentials ------------------------------------------------------------------------------------------------------------

    @abstractmethod
    async def add_credential(self, credential: Credential) -> None:
        """Keeps a token, session, ticket or login code (only the hash of its secret).

        `NotFound` for an unknown principal or parent, `Conflict` if its id or hash is taken.
        """

    @abstractmethod
    async def find_credential(self, kind: CredentialKind, secret_hash: bytes) -> tuple[Credential, Principal] | None:
        """The credential with that hash and its principal, in whatever state; the caller judges with `Credential.state`."""

    @abstractmethod
    async def consume_credential(
        self, kind: Literal["ticket", "login"], secret_hash: bytes
    ) -> tuple[Credential, Principal] | None:
        """Like `find_credential` for a one-use one, and spends it: of several callers at once exactly one gets it.

        The caller gets it as it was before, and judges; None where there is none or it was spent already.
        """

    @abstractmethod
    async def list_credentials(self, principal_id: str, kind: CredentialKind) -> Sequence[Credential]:
        """The principal's credentials of that kind, newest first, revoked ones included."""

    @abstractmethod
    async def revoke_credential(self, principal_id: str, credential_id: str) -> None:
        """Revokes it and everything made from it, and tells the listeners. `NotFound` if the principal has none such."""

    @abstractmethod
    async def credential_states(self, credential_ids: Sequence[str]) -> Mapping[str, CredentialState]:
        """The state, now, of each of those credentials that exist: itself, what it was made from, and its principal considered."""

    @abstractmethod
    async def touch_credentials(self, used: Mapping[str, int]) -> None:
        """Notes when credentials were last used (milliseconds by credential id)."""
