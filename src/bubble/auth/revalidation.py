"""Which identities of open connections no longer count (protocol, section 4)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from weakref import WeakKeyDictionary

from bubble.auth.changes import Changes
from bubble.auth.drivers import is_disabled
from bubble.auth.identity import Identity
from bubble.protocol.errors import NotFound
from bubble.protocol.resources import Principal
from bubble.protocol.timestamps import Clock
from bubble.store.base import BubbleStore

__all__ = ["Revalidation"]


class Revalidation:
    """Finds them without asking the store more than is needed.

    Every identity has a time when it ends, which is compared each time. Before that it can only end by a revocation, and of that the store
    tells; so an identity that was found good since the last change is not looked up again. Where other servers share the data their changes
    may be heard of late, so there everything is looked up every time.
    """

    def __init__(self, store: BubbleStore, changes: Changes, *, clock: Clock) -> None:
        self._store = store
        self._changes = changes
        self._clock = clock
        self._good_at: WeakKeyDictionary[Identity, int] = WeakKeyDictionary()

    async def find_invalid(self, identities: Collection[Identity]) -> set[Identity]:
        """Those of `identities` that expired, were revoked, or whose principal was disabled or is no admin any more."""
        now = self._clock()
        ended = {each for each in identities if each.expires_ms is not None and each.expires_ms <= now}
        count = self._changes.count
        doubtful = [each for each in identities if each not in ended and not self._is_known_good(each)]
        if doubtful:
            found = await self._ended_among(doubtful)
            ended |= found
            self._good_at.update((each, count) for each in doubtful if each not in found)
        return ended

    def _is_known_good(self, identity: Identity) -> bool:
        if self._store.is_shared or not self._changes.is_listening:
            return False
        return self._good_at.get(identity) == self._changes.count

    async def _ended_among(self, identities: Collection[Identity]) -> set[Identity]:
        ids = {each.credential_id for each in identities if each.credential_id is not None}
        states = await self._store.credential_states(sorted(ids)) if ids else {}
        principals = await self._principals_of(filter(_rests_on_its_principal, identities))
        return {
            each
            for each in identities
            if (each.credential_id is not None and states.get(each.credential_id) != "valid")
            or (_rests_on_its_principal(each) and not _still_holds(each, principals))
        }

    async def _principals_of(self, identities: Iterable[Identity]) -> dict[str, Principal]:
        found = {}
        for principal_id in {each.principal.principal_id for each in identities}:
            try:
                found[principal_id] = await self._store.get_principal(principal_id)
            except NotFound:
                continue
        return found


def _rests_on_its_principal(identity: Identity) -> bool:
    """Whether the state of a credential does not tell all: a JWT has none, and being an admin is the principal's."""
    return identity.credential_id is None or identity.principal.deployment_role == "admin"


def _still_holds(identity: Identity, principals: dict[str, Principal]) -> bool:
    principal = principals.get(identity.principal.principal_id)
    if principal is None or is_disabled(principal):
        return False
    was_admin = identity.principal.deployment_role == "admin" and not identity.role_claimed
    return not was_admin or principal.deployment_role == "admin"
