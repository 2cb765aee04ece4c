"""Credentials: tokens, sessions, tickets, login codes. Of their secrets the file holds only hashes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final, Literal

import apsw
import msgspec

from bubble.protocol.resources import Principal
from bubble.store.credentials import credential_not_found, credential_taken, state_of
from bubble.store.notices import CredentialsChanged
from bubble.store.records import Credential, CredentialKind, CredentialState
from bubble.store.sqlite.connection import find_all, find_one, query
from bubble.store.sqlite.principals import require_principal
from bubble.store.sqlite.transaction import Transaction

__all__ = [
    "add_credential",
    "consume_credential",
    "credential_states",
    "find_credential",
    "forget_credentials",
    "list_credentials",
    "revoke_credential",
    "touch_credentials",
]


class _CredentialRow(msgspec.Struct, frozen=True, array_like=True):
    credential_id: str
    kind: CredentialKind
    secret_hash: str  # in hexadecimal
    principal_id: str
    created_ms: int
    expires_ms: int | None
    parent_id: str | None
    name: str | None
    capabilities: tuple[str, ...] | None
    threads: tuple[str, ...] | None
    last_used_ms: int | None
    revoked_ms: int | None
    spent_ms: int | None

    def record(self) -> Credential:
        values = msgspec.structs.asdict(self)
        return Credential(**(values | {"secret_hash": bytes.fromhex(self.secret_hash)}))


class _Link(msgspec.Struct, frozen=True, array_like=True):
    """A member of a credential's chain; `asked` is the credential whose chain it is."""

    asked: str
    is_disabled: bool
    credential: _CredentialRow


_rows: Final = msgspec.json.Decoder(list[_CredentialRow])
_links: Final = msgspec.json.Decoder(list[_Link])


def add_credential(tx: Transaction, credential: Credential) -> None:
    """As `BubbleStore.add_credential`."""
    require_principal(tx.db, credential.principal_id)
    if credential.parent_id is not None and not _exists(tx.db, credential.parent_id):
        raise credential_not_found(credential.parent_id)
    if _exists(tx.db, credential.credential_id) or _by_hash(tx.db, credential.secret_hash) is not None:
        raise credential_taken(credential.credential_id)
    row = (
        credential.credential_id,
        credential.kind,
        credential.secret_hash,
        credential.principal_id,
        credential.created_ms,
        credential.expires_ms,
        credential.parent_id,
        credential.name,
        _json(credential.capabilities),
        _json(credential.threads),
        credential.last_used_ms,
        credential.revoked_ms,
        credential.spent_ms,
    )
    tx.db.execute(query("insert_credential"), row)


def consume_credential(
    tx: Transaction, kind: Literal["ticket", "login"], secret_hash: bytes
) -> tuple[Credential, Principal] | None:
    """As `BubbleStore.consume_credential`."""
    found = find_credential(tx.db, kind, secret_hash)
    if found is None or found[0].spent_ms is not None:
        return None
    tx.db.execute("UPDATE credentials SET spent_ms = ? WHERE credential_id = ?", (tx.now_ms, found[0].credential_id))
    return found


def revoke_credential(tx: Transaction, principal_id: str, credential_id: str) -> None:
    """As `BubbleStore.revoke_credential`."""
    owner = find_one(tx.db, "SELECT principal_id FROM credentials WHERE credential_id = ?", (credential_id,))
    if owner is None or owner[0] != principal_id:
        raise credential_not_found(credential_id)
    concerned = [str(name) for (name,) in tx.db.execute(query("principals_of_family"), (credential_id,))]
    tx.db.execute(query("revoke_family"), (credential_id, tx.now_ms))
    for name in concerned:
        tx.tell(CredentialsChanged(name))


def touch_credentials(tx: Transaction, used: Mapping[str, int]) -> None:
    """As `BubbleStore.touch_credentials`."""
    tx.db.execute(query("touch_credentials"), (msgspec.json.encode(used).decode(),))


def forget_credentials(tx: Transaction) -> None:
    """Drops what `bubble.store.credentials.is_forgettable` allows, where nothing was made from it."""
    tx.db.execute(query("forget_credentials"), (tx.now_ms,))


def find_credential(
    db: apsw.Connection, kind: CredentialKind, secret_hash: bytes
) -> tuple[Credential, Principal] | None:
    """As `BubbleStore.find_credential`."""
    credential = _by_hash(db, secret_hash)
    if credential is None or credential.kind != kind:
        return None
    return credential, require_principal(db, credential.principal_id)


def list_credentials(db: apsw.Connection, principal_id: str, kind: CredentialKind) -> Sequence[Credential]:
    """As `BubbleStore.list_credentials`."""
    return [row.record() for row in find_all(db, query("credentials_of"), (principal_id, kind), _rows)]


def credential_states(
    db: apsw.Connection, credential_ids: Sequence[str], *, now_ms: int
) -> Mapping[str, CredentialState]:
    """As `BubbleStore.credential_states`."""
    links = find_all(db, query("credential_chains"), (_json(credential_ids),), _links)
    return {
        asked: state_of([(link.credential.record(), link.is_disabled) for link in chain], now_ms=now_ms)
        for asked, chain in groupby(links, key=lambda link: link.asked)
    }


def _by_hash(db: apsw.Connection, secret_hash: bytes) -> Credential | None:
    found = find_all(db, query("credential_by_hash"), (secret_hash,), _rows)
    return found[0].record() if found else None


def _exists(db: apsw.Connection, credential_id: str) -> bool:
    return find_one(db, "SELECT 1 FROM credentials WHERE credential_id = ?", (credential_id,)) is not None


def _json(values: Sequence[str] | None) -> str | None:
    return None if values is None else msgspec.json.encode(values).decode()
