"""`MemoryStore`: the contract, kept by plain dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Literal, TypeVar

from bubble.protocol.errors import BubbleError, Unavailable
from bubble.protocol.events import SequencedEvent
from bubble.protocol.resources import (
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
from bubble.protocol.timestamps import Clock, system_clock
from bubble.store.admission import RunIntegrity, RunState
from bubble.store.base import BubbleStore
from bubble.store.checking import check_thread
from bubble.store.commands import AppendCommand, Appended, Guard
from bubble.store.following import end_subscriptions
from bubble.store.grants import HeldRole
from bubble.store.memory import lists
from bubble.store.memory.outbox import Outbox
from bubble.store.memory.people import People
from bubble.store.memory.state import MemoryState
from bubble.store.memory.threads import Threads
from bubble.store.notices import Listener, Position
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

__all__ = ["MemoryStore"]

T = TypeVar("T")


class MemoryStore(BubbleStore):
    """A store that lasts as long as its object. Everything happens on the event loop that uses it."""

    def __init__(self, *, run_integrity: RunIntegrity = "strict", clock: Clock = system_clock) -> None:
        self._state = MemoryState()
        self._outbox = Outbox()
        self._clock = clock
        self._threads = Threads(self._state, self._outbox, clock, run_integrity)
        self._people = People(self._state, self._outbox, clock)
        self._is_closed = False

    @property
    def _open(self) -> MemoryState:
        """The state, as long as the store is open."""
        if self._is_closed:
            raise Unavailable("The store is closed.")
        return self._state

    async def _told(self, outcome: T) -> T:
        """The outcome of a change, once the listeners have heard of it."""
        await self._outbox.told()
        return outcome

    # --- life -------------------------------------------------------------------------------------------------------------------

    async def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            await self._outbox.told()
            await end_subscriptions(self)
            self._outbox.forget_listeners()

    async def ping(self) -> None:
        _ = self._open

    def listen(self, listener: Listener) -> Callable[[], None]:
        return self._outbox.listen(listener)

    def statistics(self) -> StoreStatistics:
        return self._outbox.statistics()

    async def check(self) -> list[Problem]:
        return [
            Problem(thread_id=thread.thread_id, message=message)
            for thread in self._open.threads.values()
            for message in check_thread(
                thread.texts,
                head=thread.head,
                last_ms=thread.last_ms,
                runs={run_id: RunState(run.principal_id, run.state) for run_id, run in thread.runs.items()},
            )
        ]

    async def purge(self, *, idempotency_ms: int) -> None:
        state, now_ms = self._open, self._clock()
        for thread in state.threads.values():
            thread.keys = {key: kept for key, kept in thread.keys.items() if kept.ms >= now_ms - idempotency_ms}
        state.presence = {node: seen for node, seen in state.presence.items() if seen[1] > now_ms}
        self._people.purge()

    # --- events -----------------------------------------------------------------------------------------------------------------

    def submit(self, command: AppendCommand) -> None:
        _ = self._open
        result: Appended | BubbleError
        try:
            result = self._threads.append(command)
        except BubbleError as error:
            result = error
        self._outbox.finish(command, result)

    async def read(self, thread_id: str, *, from_seq: int, to_seq: int, limit: int, max_bytes: int) -> Sequence[bytes]:
        thread = self._open.threads.get(thread_id)
        if thread is None:
            return []
        return _within(thread.texts[from_seq - 1 : min(to_seq, from_seq - 1 + limit)], max_bytes)

    async def find_events(
        self, thread_id: str, *, containing: bytes, from_seq: int, to_seq: int, limit: int, max_bytes: int
    ) -> Sequence[bytes]:
        thread = self._open.threads.get(thread_id)
        texts = [] if thread is None else islice(thread.texts, from_seq - 1, to_seq)
        return _within(islice((text for text in texts if containing in text), limit), max_bytes)

    async def position(self, thread_id: str) -> Position:
        return self._open.thread(thread_id).position

    async def positions(self, thread_ids: Sequence[str]) -> Mapping[str, Position]:
        threads = self._open.threads
        return {name: threads[name].position for name in thread_ids if name in threads}

    # --- threads ----------------------------------------------------------------------------------------------------------------

    async def create_thread(self, new: NewThread) -> Thread:
        _ = self._open
        return await self._told(self._threads.create(new))

    async def get_thread(self, thread_id: str, *, principal_id: str | None = None) -> Thread:
        return self._open.thread(thread_id).resource(principal_id)

    async def list_threads(
        self,
        *,
        principal_id: str | None,
        viewer: str | None = None,
        after: str | None = None,
        limit: int = 100,
        query: str | None = None,
    ) -> ThreadPage:
        return lists.threads(
            self._open, principal_id=principal_id, viewer=viewer, after=after, limit=limit, query=query
        )

    async def update_thread(
        self, thread_id: str, changes: ThreadChanges, *, by: str, guard: Guard | None = None
    ) -> Thread:
        _ = self._open
        return await self._told(self._threads.update(thread_id, changes, by=by, guard=guard))

    async def delete_thread(self, thread_id: str, *, guard: Guard | None = None) -> None:
        _ = self._open
        self._threads.delete(thread_id, guard=guard)
        await self._outbox.told()

    async def import_thread(self, new: NewThread, events: Sequence[SequencedEvent]) -> Thread:
        _ = self._open
        return await self._told(self._threads.import_(new, events))

    # --- grants -----------------------------------------------------------------------------------------------------------------

    async def get_role(self, thread_id: str, principal_id: str) -> tuple[str | None, JoinPolicy]:
        thread = self._open.thread(thread_id)
        return thread.role_of(principal_id), thread.join_policy

    async def get_roles(self, thread_id: str) -> tuple[Mapping[str, str], Position]:
        thread = self._open.thread(thread_id)
        return {name: record.held.role for name, record in thread.grants.items()}, thread.position

    async def put_grant(
        self, thread_id: str, principal_id: str, role: str, *, by: str, appends: bool, guard: Guard | None = None
    ) -> tuple[Grant, bool]:
        _ = self._open
        return await self._told(
            self._threads.put_grant(thread_id, principal_id, HeldRole(role, appends), by=by, guard=guard)
        )

    async def remove_grant(self, thread_id: str, principal_id: str, *, by: str, guard: Guard | None = None) -> None:
        _ = self._open
        self._threads.remove_grant(thread_id, principal_id, by=by, guard=guard)
        await self._outbox.told()

    async def list_grants(self, thread_id: str, *, after: str | None = None, limit: int = 100) -> GrantPage:
        return lists.grants(self._open, thread_id, after=after, limit=limit)

    async def list_grants_of(self, principal_id: str, *, after: str | None = None, limit: int = 100) -> GrantPage:
        return lists.grants_of(self._open, principal_id, after=after, limit=limit)

    # --- runs and cursors -------------------------------------------------------------------------------------------------------

    async def list_runs(
        self,
        thread_id: str,
        *,
        state: RunStateName | None = None,
        principal_id: str | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> RunPage:
        thread = self._open.thread(thread_id)
        return lists.runs(thread, state=state, principal_id=principal_id, after=after, limit=limit)

    async def get_runs(self, thread_id: str, run_ids: Collection[str]) -> Mapping[str, Run]:
        thread = self._open.thread(thread_id)
        return {name: thread.runs[name].resource(thread_id) for name in run_ids if name in thread.runs}

    async def finish_lost_runs(self, *, idle_since_ms: int) -> int:
        _ = self._open
        return await self._told(self._threads.finish_lost_runs(idle_since_ms=idle_since_ms))

    async def renew_presence(self, node: str, principal_ids: Sequence[str], *, valid_ms: int) -> None:
        self._open.presence[node] = (frozenset(principal_ids), self._clock() + valid_ms)

    async def get_cursor(self, thread_id: str, principal_id: str) -> int:
        return self._open.thread(thread_id).cursors.get(principal_id, 0)

    async def advance_cursor(self, thread_id: str, principal_id: str, seq: int, *, guard: Guard | None = None) -> int:
        _ = self._open
        return self._threads.advance_cursor(thread_id, principal_id, seq, guard=guard)

    # --- principals -------------------------------------------------------------------------------------------------------------

    async def create_principal(self, new: NewPrincipal) -> Principal:
        _ = self._open
        return lists.apart(self._people.create(new))

    async def get_principal(self, principal_id: str) -> Principal:
        return lists.apart(self._open.principal(principal_id))

    async def list_principals(
        self, *, owner: str | None = None, after: str | None = None, limit: int = 100
    ) -> PrincipalPage:
        return lists.principals(self._open, owner=owner, after=after, limit=limit)

    async def update_principal(self, principal_id: str, changes: PrincipalChanges) -> Principal:
        _ = self._open
        return await self._told(lists.apart(self._people.update(principal_id, changes)))

    async def find_identity(self, issuer: str, subject: str) -> Principal | None:
        principal_id = self._open.identities.get((issuer, subject))
        return None if principal_id is None else lists.apart(self._state.principal(principal_id))

    async def link_identity(self, issuer: str, subject: str, principal_id: str) -> None:
        _ = self._open
        self._people.link(issuer, subject, principal_id)

    # --- credentials ------------------------------------------------------------------------------------------------------------

    async def add_credential(self, credential: Credential) -> None:
        _ = self._open
        self._people.add(credential)

    async def find_credential(self, kind: CredentialKind, secret_hash: bytes) -> tuple[Credential, Principal] | None:
        _ = self._open
        return self._people.find(kind, secret_hash)

    async def consume_credential(
        self, kind: Literal["ticket", "login"], secret_hash: bytes
    ) -> tuple[Credential, Principal] | None:
        _ = self._open
        return self._people.consume(kind, secret_hash)

    async def list_credentials(self, principal_id: str, kind: CredentialKind) -> Sequence[Credential]:
        newest = reversed(self._open.credentials.values())  # of the same millisecond, the one added last
        mine = [one for one in newest if one.principal_id == principal_id and one.kind == kind]
        return sorted(mine, key=lambda one: -one.created_ms)

    async def revoke_credential(self, principal_id: str, credential_id: str) -> None:
        _ = self._open
        self._people.revoke(principal_id, credential_id)
        await self._outbox.told()

    async def credential_states(self, credential_ids: Sequence[str]) -> Mapping[str, CredentialState]:
        _ = self._open
        return self._people.states(credential_ids)

    async def touch_credentials(self, used: Mapping[str, int]) -> None:
        _ = self._open
        self._people.touch(used)


def _within(texts: Iterable[bytes], max_bytes: int) -> list[bytes]:
    """The first of the texts, as many as `max_bytes` hold, but at least one."""
    chosen: list[bytes] = []
    size = 0
    for text in texts:
        size += len(text)
        if chosen and size > max_bytes:
            break
        chosen.append(text)
    return chosen
