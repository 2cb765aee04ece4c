"""Who knows a bearer: the chain of drivers, and those that look into the store (protocol, section 4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from msgspec import UNSET

from bubble.auth.identity import Identity
from bubble.auth.last_uses import LastUses
from bubble.auth.secret_texts import MAX_BEARER, hash_of
from bubble.protocol.errors import Unauthenticated
from bubble.protocol.resources import Principal
from bubble.protocol.timestamps import Clock
from bubble.store.base import BubbleStore
from bubble.store.records import Credential

__all__ = ["Driver", "StoredBearers", "is_disabled", "narrowed", "resolve_by", "unauthenticated"]


class Driver(Protocol):
    """One way to tell who a bearer stands for."""

    async def resolve(self, bearer: str) -> Identity | None:
        """The identity, or None if the bearer is unknown here or does not count (any more). Raises `Unavailable` if that cannot be told."""


def unauthenticated() -> Unauthenticated:
    """The one answer to every bearer that does not count: it does not tell a guesser how far off a guess was."""
    return Unauthenticated("The bearer is missing, unknown, expired or revoked, or its principal is disabled.")


async def resolve_by(drivers: Sequence[Driver], bearer: str) -> Identity:
    """What the first driver that knows the bearer says. Raises `Unauthenticated` if none does."""
    if 0 < len(bearer) <= MAX_BEARER:
        for driver in drivers:
            identity = await driver.resolve(bearer)
            if identity is not None:
                return identity
    raise unauthenticated()


def is_disabled(principal: Principal) -> bool:
    """Whether none of the principal's bearers counts."""
    return principal.disabled_at is not UNSET


def narrowed(names: Sequence[str] | None) -> frozenset[str] | None:
    """What a credential is narrowed to, as an identity has it."""
    return None if names is None else frozenset(names)


class StoredBearers:
    """Local tokens or browser sessions: secrets whose hash the store keeps."""

    def __init__(
        self, store: BubbleStore, kind: Literal["token", "session"], *, clock: Clock, last_uses: LastUses
    ) -> None:
        self._store = store
        self._kind: Literal["token", "session"] = kind
        self._clock = clock
        self._last_uses = last_uses

    async def resolve(self, bearer: str) -> Identity | None:
        """The identity of a token or session that is valid now, by itself and by what it was made from."""
        found = await self._store.find_credential(self._kind, hash_of(bearer))
        if found is None or not await self._counts(*found):
            return None
        credential, principal = found
        self._last_uses.note(credential, now_ms=self._clock())
        return Identity(
            principal=principal,
            source=self._kind,
            credential_id=credential.credential_id,
            expires_ms=credential.expires_ms,
            capabilities=narrowed(credential.capabilities),
            threads=narrowed(credential.threads),
        )

    async def _counts(self, credential: Credential, principal: Principal) -> bool:
        if credential.state(now_ms=self._clock()) != "valid" or is_disabled(principal):
            return False
        if credential.parent_id is None:
            return True
        states = await self._store.credential_states([credential.credential_id])
        return states.get(credential.credential_id) == "valid"
