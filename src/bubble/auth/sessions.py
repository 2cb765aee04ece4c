"""Browser sessions, opened by a bearer or by the one-time code of a login link (protocol, section 4)."""

from __future__ import annotations

from dataclasses import dataclass, field

from bubble.auth.identity import Identity
from bubble.auth.lifetimes import Lifetimes
from bubble.auth.minting import check_mint
from bubble.auth.one_use import IssuedSecret, OneUseSecrets, Spent, listed
from bubble.auth.policy import Policy
from bubble.auth.secret_texts import hash_of, new_secret
from bubble.protocol.errors import InvalidRequest
from bubble.protocol.identifiers import new_id
from bubble.protocol.timestamps import Clock
from bubble.store.base import BubbleStore
from bubble.store.records import Credential

__all__ = ["OpenedSession", "Sessions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedSession:
    """A new session. `cookie` is the secret for the browser, which ends at `expires_ms`."""

    cookie: str = field(repr=False)
    identity: Identity
    expires_ms: int


class Sessions:
    """Opens and ends sessions."""

    def __init__(self, store: BubbleStore, policy: Policy, *, lifetimes: Lifetimes, clock: Clock) -> None:
        self._store = store
        self._policy = policy
        self._clock = clock
        self._lifetime_ms = lifetimes.session_ms
        self._codes = OneUseSecrets(store, "login", lifetime_ms=lifetimes.login_ms, clock=clock)

    async def start_login(self, principal_id: str, *, by: Identity | None) -> IssuedSecret:
        """A code that opens one session of the principal; without `by` it is the server itself that asks."""
        principal = await self._store.get_principal(principal_id)
        if by is not None:
            check_mint(self._policy, by, principal)
        return await self._codes.issue(principal_id, by=by)

    async def consume_login(self, code: str) -> OpenedSession:
        """Spends a login code for a session."""
        return await self._open(await self._codes.spend(code))

    async def start(self, by: Identity) -> OpenedSession:
        """A session that may do what `by` may, for no longer than that lasts. It is the principal's: what only claims gave stays behind."""
        return await self._open(
            Spent(
                principal=await self._store.get_principal(by.principal.principal_id),
                parent_id=by.credential_id,
                limit_ms=by.expires_ms,
                capabilities=by.capabilities,
                threads=by.threads,
            )
        )

    async def end(self, identity: Identity) -> None:
        """Ends the session that `identity` rests on, and what was made from it. `InvalidRequest` if it rests on none."""
        if identity.source != "session" or identity.credential_id is None:
            raise InvalidRequest("This request was not made by a session.")
        await self._store.revoke_credential(identity.principal.principal_id, identity.credential_id)

    async def _open(self, source: Spent) -> OpenedSession:
        now = self._clock()
        end = now + self._lifetime_ms
        expires_ms = end if source.limit_ms is None else min(end, source.limit_ms)
        cookie = new_secret("session")
        credential = Credential(
            credential_id=new_id(),
            kind="session",
            secret_hash=hash_of(cookie),
            principal_id=source.principal.principal_id,
            created_ms=now,
            expires_ms=expires_ms,
            parent_id=source.parent_id,
            capabilities=listed(source.capabilities),
            threads=listed(source.threads),
        )
        await self._store.add_credential(credential)
        identity = Identity(
            principal=source.principal,
            source="session",
            credential_id=credential.credential_id,
            expires_ms=expires_ms,
            capabilities=source.capabilities,
            threads=source.threads,
        )
        return OpenedSession(cookie=cookie, identity=identity, expires_ms=expires_ms)
