"""Secrets that are good once and briefly: login codes and WebSocket tickets (protocol, section 4)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from bubble.auth.drivers import is_disabled, narrowed, unauthenticated
from bubble.auth.identity import Identity
from bubble.auth.secret_texts import MAX_BEARER, hash_of, limit_of, new_secret
from bubble.protocol.identifiers import new_id
from bubble.protocol.resources import Principal
from bubble.protocol.timestamps import Clock
from bubble.store.base import BubbleStore
from bubble.store.records import Credential

__all__ = ["IssuedSecret", "OneUseSecrets", "Spent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedSecret:
    """A new secret, good once, before `expires_ms`."""

    secret: str = field(repr=False)
    expires_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What a secret stood for: what is made from it is narrowed like this, hangs on `parent_id` and ends at `limit_ms` at the latest."""

    principal: Principal
    parent_id: str | None
    limit_ms: int | None
    capabilities: frozenset[str] | None
    threads: frozenset[str] | None


class OneUseSecrets:
    """The login codes, or the tickets."""

    def __init__(self, store: BubbleStore, kind: Literal["login", "ticket"], *, lifetime_ms: int, clock: Clock) -> None:
        self._store = store
        self._kind: Literal["login", "ticket"] = kind
        self._lifetime_ms = lifetime_ms
        self._clock = clock

    async def issue(self, principal_id: str, *, by: Identity | None) -> IssuedSecret:
        """A secret of the principal that carries on what `by` is narrowed to and when it ends (None: the server itself asks)."""
        now = self._clock()
        limit_ms = by.expires_ms if by else None
        secret = new_secret(self._kind, limit_ms=limit_ms)
        expires_ms = now + self._lifetime_ms if limit_ms is None else min(now + self._lifetime_ms, limit_ms)
        await self._store.add_credential(
            Credential(
                credential_id=new_id(),
                kind=self._kind,
                secret_hash=hash_of(secret),
                principal_id=principal_id,
                created_ms=now,
                expires_ms=expires_ms,
                parent_id=by.credential_id if by else None,
                capabilities=listed(by.capabilities) if by else None,
                threads=listed(by.threads) if by else None,
            )
        )
        return IssuedSecret(secret=secret, expires_ms=expires_ms)

    async def spend(self, secret: str) -> Spent:
        """What the secret stands for; of several callers at once one gets it.

        Raises `Unauthenticated` if it is unknown, spent or too old, or if what it was made from no longer counts.
        """
        found = await self._store.consume_credential(self._kind, hash_of(secret)) if _is_plausible(secret) else None
        if found is None or not await self._counted(*found):
            raise unauthenticated()
        credential, principal = found
        return Spent(
            principal=principal,
            parent_id=credential.parent_id,
            limit_ms=limit_of(secret),
            capabilities=narrowed(credential.capabilities),
            threads=narrowed(credential.threads),
        )

    async def _counted(self, credential: Credential, principal: Principal) -> bool:
        """Whether the secret, which is spent now, was good until then."""
        is_late = credential.expires_ms is not None and credential.expires_ms <= self._clock()
        if credential.revoked_ms is not None or is_late or is_disabled(principal):
            return False
        if credential.parent_id is None:
            return True
        states = await self._store.credential_states([credential.parent_id])
        return states.get(credential.parent_id) == "valid"


def listed(names: frozenset[str] | None) -> tuple[str, ...] | None:
    """What an identity is narrowed to, as a credential keeps it."""
    return None if names is None else tuple(sorted(names))


def _is_plausible(secret: str) -> bool:
    return 0 < len(secret) <= MAX_BEARER
