"""Grants: giving, changing and taking them in the writer's transaction; listing them on a reader."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import apsw
import msgspec
from msgspec import UNSET

from bubble.protocol.errors import thread_not_found
from bubble.protocol.resources import Grant, GrantPage, JoinPolicy, PrincipalKind, PrincipalSummary
from bubble.protocol.timestamps import format_ms
from bubble.store.commands import Guard
from bubble.store.cursors import decode_cursor, encode_cursor, page_size
from bubble.store.grants import OWNER, HeldRole, authorize_grant, authorize_removal, plan_grant, plan_removal
from bubble.store.notices import GrantChange, GrantChanged, Position
from bubble.store.sqlite.connection import find_all, find_one, number, query
from bubble.store.sqlite.principals import require_principal
from bubble.store.sqlite.thread_state import ThreadState
from bubble.store.sqlite.transaction import Transaction

__all__ = ["all_roles", "list_grants", "list_grants_of", "put_grant", "remove_grant", "role_on", "seat", "take_all"]


class _GrantRow(msgspec.Struct, frozen=True, array_like=True):
    thread_id: str
    principal_id: str
    role: str
    granted_by: str
    created_ms: int
    kind: PrincipalKind | None
    display_name: str | None

    def resource(self) -> Grant:
        summary: PrincipalSummary | msgspec.UnsetType = UNSET
        if self.kind is not None and self.display_name is not None:
            summary = PrincipalSummary(principal_id=self.principal_id, kind=self.kind, display_name=self.display_name)
        return Grant(
            thread_id=self.thread_id,
            principal_id=self.principal_id,
            role=self.role,
            granted_by=self.granted_by,
            created_at=format_ms(self.created_ms),
            principal=summary,
        )


_rows: Final = msgspec.json.Decoder(list[_GrantRow])
_roles: Final = msgspec.json.Decoder(dict[str, str])


# --- in the writer's transaction ------------------------------------------------------------------------------------------------


def put_grant(
    tx: Transaction, thread_id: str, principal_id: str, wanted: HeldRole, *, by: str, guard: Guard | None
) -> tuple[Grant, bool]:
    """As `BubbleStore.put_grant`."""
    state = tx.thread(thread_id)
    authorize_grant(
        guard,
        thread_id=thread_id,
        principal_id=principal_id,
        role=wanted.role,
        caller_role=None if guard is None else state.role_of(guard.principal_id),
        join_policy=state.join_policy,
    )
    require_principal(tx.db, principal_id)
    held = _held(tx, state, principal_id)
    plan = plan_grant(held, wanted, thread_id=thread_id, principal_id=principal_id, by=by, owners=_owners(tx, state))
    if plan.change is not None:
        tx.raise_grant_version(state)
        seat(tx, state, principal_id, wanted, granted_by=by, created_ms=tx.now_ms, change=plan.change)
        tx.write(state, plan.events(_open_runs(tx, state, principal_id)))
    return _grant(tx, state, principal_id), plan.change == "granted"


def remove_grant(tx: Transaction, thread_id: str, principal_id: str, *, by: str, guard: Guard | None) -> None:
    """As `BubbleStore.remove_grant`."""
    state = tx.thread(thread_id)
    authorize_removal(
        guard,
        thread_id=thread_id,
        principal_id=principal_id,
        caller_role=None if guard is None else state.role_of(guard.principal_id),
        join_policy=state.join_policy,
    )
    plan = plan_removal(
        _held(tx, state, principal_id), thread_id=thread_id, principal_id=principal_id, by=by, owners=_owners(tx, state)
    )
    tx.tell(GrantChanged("revoked", _grant(tx, state, principal_id)))
    tx.db.execute("DELETE FROM grants WHERE thread_key = ? AND principal_id = ?", (state.key, principal_id))
    tx.raise_grant_version(state)
    tx.write(state, plan.events(_open_runs(tx, state, principal_id)))


def seat(
    tx: Transaction,
    state: ThreadState,
    principal_id: str,
    role: HeldRole,
    *,
    granted_by: str,
    created_ms: int,
    change: GrantChange = "granted",
) -> None:
    """Writes a grant and tells of it. One that is only changed keeps its `created_ms`."""
    row = (state.key, principal_id, state.thread_id, role.role, int(role.appends), granted_by, created_ms)
    tx.db.execute(query("put_grant"), row)
    state.forget_grants()
    tx.tell(GrantChanged(change, _grant(tx, state, principal_id)))


def take_all(tx: Transaction, state: ThreadState) -> None:
    """Tells that every grant of a thread that is being deleted is gone. The rows go with the rest of the thread."""
    for row in find_all(tx.db, query("grants_of_thread"), (state.key, "", -1), _rows):
        tx.tell(GrantChanged("revoked", row.resource()))


def _held(tx: Transaction, state: ThreadState, principal_id: str) -> HeldRole | None:
    row = find_one(
        tx.db, "SELECT role, appends FROM grants WHERE thread_key = ? AND principal_id = ?", (state.key, principal_id)
    )
    return None if row is None else HeldRole(row[0], bool(row[1]))


def _open_runs(tx: Transaction, state: ThreadState, principal_id: str) -> Iterator[str]:
    yield from (row[0] for row in tx.db.execute(query("open_runs_of"), (state.key, principal_id)))


def _owners(tx: Transaction, state: ThreadState) -> int:
    # Two are as good as many.
    return number(
        tx.db,
        "SELECT count(*) FROM (SELECT 1 FROM grants WHERE thread_key = ? AND role = ? LIMIT 2)",
        (state.key, OWNER),
    )


def _grant(tx: Transaction, state: ThreadState, principal_id: str) -> Grant:
    return find_all(tx.db, query("grant"), (state.key, principal_id), _rows)[0].resource()


# --- on a reader ----------------------------------------------------------------------------------------------------------------


def role_on(db: apsw.Connection, thread_id: str, principal_id: str) -> tuple[str | None, JoinPolicy]:
    """As `BubbleStore.get_role`."""
    row = find_one(db, query("role_on"), (thread_id, principal_id))
    if row is None:
        raise thread_not_found(thread_id)
    role, join_policy = row
    return role, join_policy


def all_roles(db: apsw.Connection, thread_id: str) -> tuple[dict[str, str], Position]:
    """As `BubbleStore.get_roles`."""
    row = find_one(db, query("all_roles"), (thread_id,))
    if row is None:
        raise thread_not_found(thread_id)
    roles, head, grant_version = row
    return _roles.decode(roles), Position(head, grant_version)


def list_grants(db: apsw.Connection, thread_id: str, *, after: str | None, limit: int) -> GrantPage:
    """As `BubbleStore.list_grants`."""
    key = find_one(db, "SELECT thread_key FROM threads WHERE thread_id = ?", (thread_id,))
    if key is None:
        raise thread_not_found(thread_id)
    size, start = page_size(limit), decode_cursor(after, tuple[str])
    rows = find_all(db, query("grants_of_thread"), (key[0], start[0] if start else "", size + 1), _rows)
    return _page(rows, size, [row.principal_id for row in rows])


def list_grants_of(db: apsw.Connection, principal_id: str, *, after: str | None, limit: int) -> GrantPage:
    """As `BubbleStore.list_grants_of`."""
    size, start = page_size(limit), decode_cursor(after, tuple[str])
    rows = find_all(db, query("grants_of_principal"), (principal_id, start[0] if start else "", size + 1), _rows)
    return _page(rows, size, [row.thread_id for row in rows])


def _page(rows: list[_GrantRow], size: int, keys: list[str]) -> GrantPage:
    return GrantPage(
        grants=[row.resource() for row in rows[:size]],
        next_after=encode_cursor(keys[size - 1]) if len(rows) > size else None,
    )
