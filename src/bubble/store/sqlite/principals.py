"""Principals and the external identities linked to them."""

from __future__ import annotations

from typing import Final

import apsw
import msgspec
from msgspec import UNSET

from bubble.protocol.resources import DeploymentRole, Principal, PrincipalKind, PrincipalPage
from bubble.protocol.timestamps import format_ms, parse_ms
from bubble.store.cursors import decode_cursor, encode_cursor, page_size
from bubble.store.metadata import metadata_from_text, metadata_text
from bubble.store.notices import CredentialsChanged
from bubble.store.principals import (
    check_new_principal,
    identity_linked,
    principal_not_found,
    principal_taken,
    rights_changed,
)
from bubble.store.records import NewPrincipal, PrincipalChanges
from bubble.store.sqlite.connection import find_all, find_one, query
from bubble.store.sqlite.transaction import Transaction

__all__ = [
    "create_principal",
    "find_identity",
    "find_principal",
    "link_identity",
    "list_principals",
    "require_principal",
    "update_principal",
]


class _PrincipalRow(msgspec.Struct, frozen=True, array_like=True):
    principal_id: str
    kind: PrincipalKind
    display_name: str
    deployment_role: DeploymentRole
    owner_principal_id: str | None
    metadata: str | None
    created_ms: int
    disabled_ms: int | None

    def resource(self) -> Principal:
        return Principal(
            principal_id=self.principal_id,
            kind=self.kind,
            display_name=self.display_name,
            created_at=format_ms(self.created_ms),
            deployment_role=self.deployment_role,
            owner_principal_id=UNSET if self.owner_principal_id is None else self.owner_principal_id,
            metadata=metadata_from_text(None if self.metadata is None else self.metadata.encode()),
            disabled_at=UNSET if self.disabled_ms is None else format_ms(self.disabled_ms),
        )


_rows: Final = msgspec.json.Decoder(list[_PrincipalRow])


def find_principal(db: apsw.Connection, principal_id: str) -> Principal | None:
    """The principal, if there is one."""
    found = find_all(db, query("principal"), (principal_id,), _rows)
    return found[0].resource() if found else None


def require_principal(db: apsw.Connection, principal_id: str) -> Principal:
    """The principal; `NotFound` if there is none."""
    principal = find_principal(db, principal_id)
    if principal is None:
        raise principal_not_found(principal_id)
    return principal


def create_principal(tx: Transaction, new: NewPrincipal) -> Principal:
    """As `BubbleStore.create_principal`."""
    owner = None if new.owner_principal_id is None else find_principal(tx.db, new.owner_principal_id)
    check_new_principal(new, owner)
    if find_principal(tx.db, new.principal_id) is not None:
        raise principal_taken(new.principal_id)
    row = (
        new.principal_id,
        new.kind,
        new.display_name,
        new.deployment_role,
        new.owner_principal_id,
        metadata_text(new.metadata),
        tx.now_ms,
    )
    tx.db.execute(query("insert_principal"), row)
    return require_principal(tx.db, new.principal_id)


def update_principal(tx: Transaction, principal_id: str, changes: PrincipalChanges) -> Principal:
    """As `BubbleStore.update_principal`."""
    before = require_principal(tx.db, principal_id)
    display_name = before.display_name if changes.display_name is UNSET else changes.display_name
    role = before.deployment_role if changes.deployment_role is UNSET else changes.deployment_role
    tx.db.execute(
        "UPDATE principals SET display_name = ?, deployment_role = ?, disabled_ms = ? WHERE principal_id = ?",
        (display_name, role, _disabled_ms(before, changes, tx.now_ms), principal_id),
    )
    if changes.metadata is not UNSET:
        tx.db.execute(
            "UPDATE principals SET metadata = ? WHERE principal_id = ?", (metadata_text(changes.metadata), principal_id)
        )
    after = require_principal(tx.db, principal_id)
    if rights_changed(before, after):
        tx.tell(CredentialsChanged(principal_id))
    return after


def _disabled_ms(before: Principal, changes: PrincipalChanges, now_ms: int) -> int | None:
    since = None if before.disabled_at is UNSET else parse_ms(before.disabled_at)
    if changes.disabled is UNSET:
        return since
    return (now_ms if since is None else since) if changes.disabled else None


def link_identity(tx: Transaction, issuer: str, subject: str, principal_id: str) -> None:
    """As `BubbleStore.link_identity`."""
    require_principal(tx.db, principal_id)
    linked = _linked(tx.db, issuer, subject)
    if linked is None:
        tx.db.execute("INSERT INTO identities VALUES (?, ?, ?)", (issuer, subject, principal_id))
    elif linked != principal_id:
        raise identity_linked(linked)


def find_identity(db: apsw.Connection, issuer: str, subject: str) -> Principal | None:
    """As `BubbleStore.find_identity`."""
    linked = _linked(db, issuer, subject)
    return None if linked is None else find_principal(db, linked)


def _linked(db: apsw.Connection, issuer: str, subject: str) -> str | None:
    row = find_one(db, "SELECT principal_id FROM identities WHERE issuer = ? AND subject = ?", (issuer, subject))
    return None if row is None else str(row[0])


def list_principals(db: apsw.Connection, *, owner: str | None, after: str | None, limit: int) -> PrincipalPage:
    """As `BubbleStore.list_principals`."""
    size, start = page_size(limit), decode_cursor(after, tuple[str])
    from_id = start[0] if start else ""
    if owner is None:
        rows = find_all(db, query("principals"), (from_id, size + 1), _rows)
    else:
        rows = find_all(db, query("principals_of"), (owner, from_id, size + 1), _rows)
    return PrincipalPage(
        principals=[row.resource() for row in rows[:size]],
        next_after=encode_cursor(rows[size - 1].principal_id) if len(rows) > size else None,
    )
