"""`SqliteStore`: the contract, kept by one writer, a few readers and a file."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, Self

import apsw

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
from bubble.store.admission import RunIntegrity
from bubble.store.base import BubbleStore
from bubble.store.commands import AppendCommand, Guard
from bubble.store.following import end_subscriptions
from bubble.store.grants import HeldRole
from bubble.store.importing import plan_import
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
from bubble.store.sqlite import credentials, grants, imports, principals, runs, threads
from bubble.store.sqlite.backup import backup_file
from bubble.store.sqlite.checking import check_file
from bubble.store.sqlite.engine import Engine
from bubble.store.sqlite.reading import find_texts, read_texts
from bubble.store.sqlite.transaction import Transaction

__all__ = ["SqliteStore"]

#: How many rows one change forgets or finishes, so that others have their turn.
_AT_ONCE: Final = 256


class SqliteStore(BubbleStore):
    """A store in one file, durable when it says so. Made by `open`; used on the event loop that opened it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._submit = engine.writer.submit

    @classmethod
    async def open(
        cls,
        path: Path | str,
        *,
        run_integrity: RunIntegrity = "strict",
        clock: Clock = system_clock,
        migrate: bool = True,
        vfs: str | None = None,
    ) -> Self:
        """Opens the store in `path`, creating the file and its directory where they are not there.

        `migrate` False refuses an older file instead of bringing it up to date. `vfs` names a registered SQLite VFS. Raises `Conflict` if
        another process holds the file, if it is newer than this code or of another program; `Unavailable` if it cannot be read.
        """
        return cls(await Engine.open(Path(path), vfs=vfs, clock=clock, integrity=run_integrity, migrate=migrate))

    # --- life -------------------------------------------------------------------------------------------------------------------

    @property
    def path(self) -> Path:
        """The file."""
        return self._engine.path

    @property
    def schema_version(self) -> int:
        """The newest migration that the file has had."""
        return self._engine.schema_version

    async def close(self) -> None:
        await self._engine.close()
        await end_subscriptions(self)

    async def ping(self) -> None:
        await self._engine.change(_ping)
        await self._engine.read(_pong)

    def listen(self, listener: Listener) -> Callable[[], None]:
        return self._engine.telling.listen(listener)

    def statistics(self) -> StoreStatistics:
        counters = self._engine.writer.counters
        return StoreStatistics(
            appends=counters.appends,
            refused=counters.refused,
            commits=counters.commits,
            largest_batch=counters.largest,
            commit_seconds=counters.commit_seconds,
            queued=self._engine.writer.queued,
        )

    async def check(self) -> list[Problem]:
        return await check_file(self._engine.path, vfs=self._engine.vfs)

    async def backup(self, target: Path | str) -> None:
        """Copies the store to `target` as it is at this moment, while it is in use.

        Raises `Conflict` if `target` exists, `Unavailable` if reading or writing fails.
        """
        await backup_file(self._engine.path, Path(target), vfs=self._engine.vfs)

    async def purge(self, *, idempotency_ms: int) -> None:
        while await self._engine.change(runs.forget_keys, idempotency_ms=idempotency_ms, limit=_AT_ONCE) == _AT_ONCE:
            pass
        await self._engine.change(runs.forget_absent)
        await self._engine.change(credentials.forget_credentials)

    # --- events -----------------------------------------------------------------------------------------------------------------

    def submit(self, command: AppendCommand) -> None:
        self._submit(command)

    async def read(self, thread_id: str, *, from_seq: int, to_seq: int, limit: int, max_bytes: int) -> Sequence[bytes]:
        return await self._engine.read(
            read_texts, thread_id, from_seq=from_seq, to_seq=to_seq, limit=limit, max_bytes=max_bytes
        )

    async def find_events(
        self, thread_id: str, *, containing: bytes, from_seq: int, to_seq: int, limit: int, max_bytes: int
    ) -> Sequence[bytes]:
        return await self._engine.read(
            find_texts,
            thread_id,
            containing=containing,
            from_seq=from_seq,
            to_seq=to_seq,
            limit=limit,
            max_bytes=max_bytes,
        )

    async def position(self, thread_id: str) -> Position:
        known = self._engine.position(thread_id)
        return await self._engine.read(threads.find_position, thread_id) if known is None else known

    async def positions(self, thread_ids: Sequence[str]) -> Mapping[str, Position]:
        return await self._engine.read(threads.find_positions, thread_ids)

    # --- threads ----------------------------------------------------------------------------------------------------------------

    async def create_thread(self, new: NewThread) -> Thread:
        return await self._engine.change(threads.create_thread, new)

    async def get_thread(self, thread_id: str, *, principal_id: str | None = None) -> Thread:
        return await self._engine.read(threads.find_thread, thread_id, principal_id)

    async def list_threads(
        self,
        *,
        principal_id: str | None,
        viewer: str | None = None,
        after: str | None = None,
        limit: int = 100,
        query: str | None = None,
    ) -> ThreadPage:
        await self._engine.settle()
        return await self._engine.read(
            threads.list_threads, principal_id=principal_id, viewer=viewer, after=after, limit=limit, part=query
        )

    async def update_thread(
        self, thread_id: str, changes: ThreadChanges, *, by: str, guard: Guard | None = None
    ) -> Thread:
        return await self._engine.change(threads.update_thread, thread_id, changes, by=by, guard=guard)

    async def delete_thread(self, thread_id: str, *, guard: Guard | None = None) -> None:
        engine = self._engine
        key = await engine.change(threads.delete_thread, thread_id, guard=guard, erasing=engine.erasing)
        await engine.erased(key)

    async def import_thread(self, new: NewThread, events: Sequence[SequencedEvent]) -> Thread:
        engine = self._engine
        plan = await asyncio.to_thread(plan_import, new, events, now_ms=engine.clock(), integrity=engine.integrity)
        return await engine.change(imports.import_thread, new, plan)

    # --- grants -----------------------------------------------------------------------------------------------------------------

    async def get_role(self, thread_id: str, principal_id: str) -> tuple[str | None, JoinPolicy]:
        return await self._engine.read(grants.role_on, thread_id, principal_id)

    async def get_roles(self, thread_id: str) -> tuple[Mapping[str, str], Position]:
        return await self._engine.read(grants.all_roles, thread_id)

    async def put_grant(
        self, thread_id: str, principal_id: str, role: str, *, by: str, appends: bool, guard: Guard | None = None
    ) -> tuple[Grant, bool]:
        held = HeldRole(role, appends)
        return await self._engine.change(grants.put_grant, thread_id, principal_id, held, by=by, guard=guard)

    async def remove_grant(self, thread_id: str, principal_id: str, *, by: str, guard: Guard | None = None) -> None:
        await self._engine.change(grants.remove_grant, thread_id, principal_id, by=by, guard=guard)

    async def list_grants(self, thread_id: str, *, after: str | None = None, limit: int = 100) -> GrantPage:
        return await self._engine.read(grants.list_grants, thread_id, after=after, limit=limit)

    async def list_grants_of(self, principal_id: str, *, after: str | None = None, limit: int = 100) -> GrantPage:
        return await self._engine.read(grants.list_grants_of, principal_id, after=after, limit=limit)

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
        await self._engine.settle()
        return await self._engine.read(
            runs.list_runs, thread_id, state=state, principal_id=principal_id, after=after, limit=limit
        )

    async def get_runs(self, thread_id: str, run_ids: Collection[str]) -> Mapping[str, Run]:
        await self._engine.settle()
        return await self._engine.read(runs.find_runs, thread_id, run_ids)

    async def finish_lost_runs(self, *, idle_since_ms: int) -> int:
        engine = self._engine
        finished, count = 0, _AT_ONCE
        while count == _AT_ONCE:
            await engine.settle()
            candidates = await engine.read(
                runs.find_lost_runs, idle_since_ms=idle_since_ms, now_ms=engine.clock(), limit=_AT_ONCE
            )
            count = await engine.change(runs.finish_lost_runs, candidates, idle_since_ms=idle_since_ms)
            finished += count
        return finished

    async def renew_presence(self, node: str, principal_ids: Sequence[str], *, valid_ms: int) -> None:
        await self._engine.change(runs.renew_presence, node, principal_ids, valid_ms=valid_ms)

    async def get_cursor(self, thread_id: str, principal_id: str) -> int:
        return await self._engine.read(runs.read_cursor, thread_id, principal_id)

    async def advance_cursor(self, thread_id: str, principal_id: str, seq: int, *, guard: Guard | None = None) -> int:
        return await self._engine.change(runs.advance_cursor, thread_id, principal_id, seq, guard=guard)

    # --- principals -------------------------------------------------------------------------------------------------------------

    async def create_principal(self, new: NewPrincipal) -> Principal:
        return await self._engine.change(principals.create_principal, new)

    async def get_principal(self, principal_id: str) -> Principal:
        return await self._engine.read(principals.require_principal, principal_id)

    async def list_principals(
        self, *, owner: str | None = None, after: str | None = None, limit: int = 100
    ) -> PrincipalPage:
        return await self._engine.read(principals.list_principals, owner=owner, after=after, limit=limit)

    async def update_principal(self, principal_id: str, changes: PrincipalChanges) -> Principal:
        return await self._engine.change(principals.update_principal, principal_id, changes)

    async def find_identity(self, issuer: str, subject: str) -> Principal | None:
        return await self._engine.read(principals.find_identity, issuer, subject)

    async def link_identity(self, issuer: str, subject: str, principal_id: str) -> None:
        await self._engine.change(principals.link_identity, issuer, subject, principal_id)

    # --- credentials ------------------------------------------------------------------------------------------------------------

    async def add_credential(self, credential: Credential) -> None:
        await self._engine.change(credentials.add_credential, credential)

    async def find_credential(self, kind: CredentialKind, secret_hash: bytes) -> tuple[Credential, Principal] | None:
        return await self._engine.read(credentials.find_credential, kind, secret_hash)

    async def consume_credential(
        self, kind: Literal["ticket", "login"], secret_hash: bytes
    ) -> tuple[Credential, Principal] | None:
        return await self._engine.change(credentials.consume_credential, kind, secret_hash)

    async def list_credentials(self, principal_id: str, kind: CredentialKind) -> Sequence[Credential]:
        return await self._engine.read(credentials.list_credentials, principal_id, kind)

    async def revoke_credential(self, principal_id: str, credential_id: str) -> None:
        await self._engine.change(credentials.revoke_credential, principal_id, credential_id)

    async def credential_states(self, credential_ids: Sequence[str]) -> Mapping[str, CredentialState]:
        now_ms = self._engine.clock()
        return await self._engine.read(credentials.credential_states, credential_ids, now_ms=now_ms)

    async def touch_credentials(self, used: Mapping[str, int]) -> None:
        await self._engine.change(credentials.touch_credentials, used)


def _ping(tx: Transaction) -> None:
    tx.db.execute("UPDATE marks SET value = ? WHERE name = 'pinged'", (tx.now_ms,))


def _pong(db: apsw.Connection) -> None:
    db.execute("SELECT value FROM marks").fetchall()
