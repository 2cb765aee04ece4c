"""What happens to principals and credentials. Each method decides, then writes, then tells; a refusal writes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import msgspec
from msgspec import UNSET

from bubble.protocol.resources import Principal
from bubble.protocol.timestamps import Clock, format_ms
from bubble.store.credentials import credential_not_found, credential_taken, is_forgettable, state_of
from bubble.store.memory.outbox import Outbox
from bubble.store.memory.state import MemoryState
from bubble.store.metadata import metadata_from_text, metadata_text
from bubble.store.notices import CredentialsChanged
from bubble.store.principals import check_new_principal, identity_linked, principal_taken, rights_changed
from bubble.store.records import Credential, CredentialKind, CredentialState, NewPrincipal, PrincipalChanges

__all__ = ["People"]


@dataclass(frozen=True, slots=True)
class People:
    """The changes that concern principals and what they prove themselves with."""

    state: MemoryState
    outbox: Outbox
    clock: Clock

    def create(self, new: NewPrincipal) -> Principal:
        """As `BubbleStore.create_principal`."""
        owner = None if new.owner_principal_id is None else self.state.principals.get(new.owner_principal_id)
        check_new_principal(new, owner)
        if new.principal_id in self.state.principals:
            raise principal_taken(new.principal_id)
        principal = Principal(
            principal_id=new.principal_id,
            kind=new.kind,
            display_name=new.display_name,
            created_at=format_ms(self.clock()),
            deployment_role=new.deployment_role,
            owner_principal_id=UNSET if new.owner_principal_id is None else new.owner_principal_id,
            metadata=metadata_from_text(metadata_text(new.metadata)),
        )
        self.state.principals[new.principal_id] = principal
        return principal

    def update(self, principal_id: str, changes: PrincipalChanges) -> Principal:
        """As `BubbleStore.update_principal`."""
        before = self.state.principal(principal_id)
        after = msgspec.structs.replace(before, **self._changed(before, changes))
        self.state.principals[principal_id] = after
        if rights_changed(before, after):
            self.outbox.tell(CredentialsChanged(principal_id))
        return after

    def _changed(self, before: Principal, changes: PrincipalChanges) -> Mapping[str, object]:
        changed: dict[str, object] = {}
        if changes.display_name is not UNSET:
            changed["display_name"] = changes.display_name
        if changes.deployment_role is not UNSET:
            changed["deployment_role"] = changes.deployment_role
        if changes.metadata is not UNSET:
            changed["metadata"] = metadata_from_text(metadata_text(changes.metadata))
        if changes.disabled is not UNSET and changes.disabled != (before.disabled_at is not UNSET):
            changed["disabled_at"] = format_ms(self.clock()) if changes.disabled else UNSET
        return changed

    def link(self, issuer: str, subject: str, principal_id: str) -> None:
        """As `BubbleStore.link_identity`."""
        self.state.principal(principal_id)
        linked = self.state.identities.setdefault((issuer, subject), principal_id)
        if linked != principal_id:
            raise identity_linked(linked)

    def add(self, credential: Credential) -> None:
        """As `BubbleStore.add_credential`."""
        self.state.principal(credential.principal_id)
        if credential.parent_id is not None and credential.parent_id not in self.state.credentials:
            raise credential_not_found(credential.parent_id)
        if credential.credential_id in self.state.credentials or self._by_hash(credential.secret_hash) is not None:
            raise credential_taken(credential.credential_id)
        self.state.credentials[credential.credential_id] = credential

    def _by_hash(self, secret_hash: bytes) -> Credential | None:
        return next((one for one in self.state.credentials.values() if one.secret_hash == secret_hash), None)

    def find(self, kind: CredentialKind, secret_hash: bytes) -> tuple[Credential, Principal] | None:
        """As `BubbleStore.find_credential`."""
        credential = self._by_hash(secret_hash)
        if credential is None or credential.kind != kind:
            return None
        return credential, self.state.principal(credential.principal_id)

    def consume(self, kind: Literal["ticket", "login"], secret_hash: bytes) -> tuple[Credential, Principal] | None:
        """As `BubbleStore.consume_credential`."""
        found = self.find(kind, secret_hash)
        if found is None or found[0].spent_ms is not None:
            return None
        spent = replace(found[0], spent_ms=self.clock())
        self.state.credentials[spent.credential_id] = spent
        return found

    def revoke(self, principal_id: str, credential_id: str) -> None:
        """As `BubbleStore.revoke_credential`."""
        credential = self.state.credentials.get(credential_id)
        if credential is None or credential.principal_id != principal_id:
            raise credential_not_found(credential_id)
        now_ms = self.clock()
        concerned: dict[str, None] = {}
        for one in self._family(credential_id):
            concerned[one.principal_id] = None
            if one.revoked_ms is None:
                self.state.credentials[one.credential_id] = replace(one, revoked_ms=now_ms)
        for name in concerned:
            self.outbox.tell(CredentialsChanged(name))

    def _family(self, credential_id: str) -> Sequence[Credential]:
        """The credential and everything made from it, however far down."""
        family = [self.state.credentials[credential_id]]
        for member in family:  # grows while it is walked
            family += [one for one in self.state.credentials.values() if one.parent_id == member.credential_id]
        return family

    def states(self, credential_ids: Sequence[str]) -> Mapping[str, CredentialState]:
        """As `BubbleStore.credential_states`."""
        known = [self.state.credentials[one] for one in credential_ids if one in self.state.credentials]
        now_ms = self.clock()
        return {one.credential_id: state_of(self.state.chain(one), now_ms=now_ms) for one in known}

    def touch(self, used: Mapping[str, int]) -> None:
        """As `BubbleStore.touch_credentials`."""
        for credential_id, ms in used.items():
            credential = self.state.credentials.get(credential_id)
            if credential is not None:
                latest = max(ms, credential.last_used_ms or 0)
                self.state.credentials[credential_id] = replace(credential, last_used_ms=latest)

    def purge(self) -> None:
        """Forgets one-use credentials that are done with and that nothing was made from."""
        now_ms = self.clock()
        parents = {one.parent_id for one in self.state.credentials.values()}
        for credential_id, one in list(self.state.credentials.items()):
            if credential_id not in parents and is_forgettable(one, now_ms=now_ms):
                del self.state.credentials[credential_id]
