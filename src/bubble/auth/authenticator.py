"""`Authenticator`: who is calling, for every door of the server, and all that makes bearers (protocol, section 4)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Self

from bubble.auth.changes import Changes
from bubble.auth.drivers import Driver, StoredBearers, resolve_by
from bubble.auth.external_subjects import MAX_SUBJECT, is_subject
from bubble.auth.first_start import AdminAccess, ensure_admin
from bubble.auth.identity import Identity
from bubble.auth.identity_cache import IdentityCache, KnownBearer
from bubble.auth.jwt_settings import JwtSettings
from bubble.auth.last_uses import LastUses
from bubble.auth.lifetimes import Lifetimes
from bubble.auth.one_use import IssuedSecret, OneUseSecrets
from bubble.auth.policy import Policy
from bubble.auth.provisioning import Provisioning
from bubble.auth.revalidation import Revalidation
from bubble.auth.sessions import OpenedSession, Sessions
from bubble.auth.tokens import Tokens
from bubble.protocol.errors import BubbleError, Forbidden, InvalidRequest, Unauthenticated
from bubble.protocol.resources import MintedToken, Token
from bubble.protocol.timestamps import Clock, system_clock
from bubble.store.base import BubbleStore

if TYPE_CHECKING:
    from bubble.auth.key_sets import KeySource

__all__ = ["Authenticator", "AuthenticatorStatistics"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticatorStatistics:
    """Counters since the start; `cached` is how many identities are held now."""

    resolved: int
    refused: int
    cached: int


class Authenticator:
    """Resolves bearers, sessions and tickets, and makes them.

    Use it as `async with`, or `start()` and `close()` it: only in between does it hear of revocations and so may answer from memory, for
    one second at most. Every method that takes a secret answers all that does not count with the same `Unauthenticated`, and raises
    `Unavailable` where the store or the issuer's keys are out of reach. Times are milliseconds since 1970.

    Raises `ValueError` for a `jwt.jwks` without a usable key.
    """

    def __init__(
        self,
        store: BubbleStore,
        *,
        policy: Policy | None = None,
        clock: Clock = system_clock,
        jwt: JwtSettings | None = None,
        lifetimes: Lifetimes | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._policy = policy or Policy()
        self._lifetimes = lifetimes or Lifetimes()
        self._changes = Changes()
        self._last_uses = LastUses(store)
        self._keys: KeySource | None = None
        self._provisioning: Provisioning | None = None
        self._drivers: list[Driver] = [StoredBearers(store, "token", clock=clock, last_uses=self._last_uses)]
        self._cookie_drivers: list[Driver] = [StoredBearers(store, "session", clock=clock, last_uses=self._last_uses)]
        if jwt is not None:
            self._accept_jwts(jwt)
        # Two caches: a session's cookie is no bearer, nor the other way round.
        self._known = IdentityCache(self._changes, clock=clock)
        self._known_sessions = IdentityCache(self._changes, clock=clock)
        self._revalidation = Revalidation(store, self._changes, clock=clock)
        self._tokens = Tokens(store, self._policy, clock=clock, last_uses=self._last_uses)
        self._sessions = Sessions(store, self._policy, lifetimes=self._lifetimes, clock=clock)
        self._tickets = OneUseSecrets(store, "ticket", lifetime_ms=self._lifetimes.ticket_ms, clock=clock)
        self._writing: asyncio.Task[None] | None = None
        self._resolved = 0
        self._refused = 0

    def _accept_jwts(self, jwt: JwtSettings) -> None:
        # Cryptography and an HTTP client: only a server with an issuer should pay for loading them.
        from bubble.auth.fetched_keys import keys_of
        from bubble.auth.jwt_bearers import JwtBearers

        self._keys = keys_of(jwt, clock=self._clock)
        self._provisioning = Provisioning(self._store, issuer=jwt.issuer, alias=jwt.alias)
        self._drivers.append(JwtBearers(jwt, self._keys, self._provisioning, clock=self._clock))

    # --- life -------------------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Begins to hear of revocations and to write last uses. Idempotent."""
        self._changes.listen(self._store)
        if self._writing is None:
            self._writing = asyncio.create_task(self._last_uses.keep_writing())

    async def close(self) -> None:
        """Writes the last uses, ends the background work, releases connections to the issuer. Idempotent; before the store's `close`."""
        self._changes.stop()
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await writing
            with contextlib.suppress(
                BubbleError
            ):  # a last use that cannot be written any more is no reason not to stop
                await self._last_uses.write()
        if self._keys is not None:
            await self._keys.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def statistics(self) -> AuthenticatorStatistics:
        """How many bearers, cookies and tickets were resolved and refused; what `known` answers does not count."""
        return AuthenticatorStatistics(
            resolved=self._resolved, refused=self._refused, cached=len(self._known) + len(self._known_sessions)
        )

    async def ensure_admin(self, *, admin_token: str | None = None) -> AdminAccess | None:
        """Makes sure that principal `admin` exists and can get in; what the first start has to print, or None.

        `admin_token` is `BUBBLE_ADMIN_TOKEN`: `ValueError` where it has less than 32 characters, `Conflict` where it was revoked.
        """
        return await ensure_admin(
            self._store, admin_token=admin_token, login_ms=self._lifetimes.login_ms, clock=self._clock
        )

    # --- who is calling ---------------------------------------------------------------------------------------------------------

    def known(self, token: str) -> Identity | None:
        """The identity behind a bearer, if it was resolved within the last second and nothing was revoked since; never waits."""
        return self._known.get(token)

    def recall(self, token: str) -> KnownBearer | None:
        """Like `known`; `still_known` then tells, without another look, whether the answer still counts."""
        return self._known.find(token)

    def still_known(self, bearer: KnownBearer) -> bool:
        """Whether what `recall` gave is as good as what it would give now."""
        return self._known.is_good(bearer)

    async def authenticate(self, token: str) -> Identity:
        """The identity behind the bearer of an `Authorization` header, by the chain of drivers."""
        return self._known.get(token) or await self._resolve(self._drivers, token, self._known)

    async def authenticate_session(self, cookie: str) -> Identity:
        """The identity behind a session cookie's value. `BrowserRules` says what else a request by cookie needs."""
        return self._known_sessions.get(cookie) or await self._resolve(
            self._cookie_drivers, cookie, self._known_sessions
        )

    async def authenticate_ticket(self, ticket: str) -> Identity:
        """The identity behind a ticket, which is spent by that; of several callers at once one gets it.

        It rests on the bearer that the ticket was made from: it ends when that one does.
        """
        try:
            spent = await self._tickets.spend(ticket)
        except Unauthenticated:
            self._refused += 1
            raise
        self._resolved += 1
        return Identity(
            principal=spent.principal,
            source="ticket",
            credential_id=spent.parent_id,
            expires_ms=spent.limit_ms,
            capabilities=spent.capabilities,
            threads=spent.threads,
        )

    async def refresh(self, current: Identity, token: str) -> Identity:
        """The identity to go on with after `auth.refresh`. Raises `Unauthenticated`, or `Forbidden` for another principal's token."""
        new = await self.authenticate(token)
        if new.principal.principal_id != current.principal.principal_id:
            raise Forbidden("`$.token` belongs to another principal.")
        return new

    async def find_invalid(self, identities: Collection[Identity]) -> set[Identity]:
        """Those of `identities` that no longer count: expired, revoked, or no longer backed by their principal."""
        return await self._revalidation.find_invalid(identities)

    async def _resolve(self, drivers: list[Driver], bearer: str, cache: IdentityCache) -> Identity:
        changes = self._changes.count
        try:
            identity = await resolve_by(drivers, bearer)
        except Unauthenticated:
            self._refused += 1
            raise
        self._resolved += 1
        cache.put(bearer, identity, changes=changes)
        return identity

    # --- making bearers ---------------------------------------------------------------------------------------------------------

    async def mint_token(
        self,
        principal_id: str,
        *,
        by: Identity,
        name: str | None = None,
        expires_ms: int | None = None,
        capabilities: Collection[str] | None = None,
        threads: Collection[str] | None = None,
    ) -> MintedToken:
        """A new local token of the principal, its secret shown this once.

        It ends at `expires_ms` or with `by`, whichever is first, and when `by` is revoked. `capabilities` and `threads` narrow it.
        Raises `InvalidRequest` naming a wrong field, `NotFound` for an unknown principal, `Conflict` for a disabled one, `Forbidden` where
        `by` is neither the user itself, its bot's owner nor an admin, or is narrowed.
        """
        return await self._tokens.mint(
            principal_id, by=by, name=name, expires_ms=expires_ms, capabilities=capabilities, threads=threads
        )

    async def list_tokens(self, principal_id: str, *, by: Identity) -> list[Token]:
        """The principal's tokens, newest first, revoked ones included. Raises `NotFound`, `Forbidden`."""
        return await self._tokens.listed(principal_id, by=by)

    async def revoke_token(self, principal_id: str, token_id: str, *, by: Identity) -> None:
        """Revokes a token and everything made from it. Raises `NotFound`, `Forbidden`."""
        await self._tokens.revoke(principal_id, token_id, by=by)
        self._changes.note()

    async def mint_ticket(self, *, by: Identity) -> IssuedSecret:
        """A ticket for one WebSocket upgrade, within 30 s by default, in the name of `by`.

        What a JWT's claims add to its principal does not pass on.
        """
        return await self._tickets.issue(by.principal.principal_id, by=by)

    async def start_login(self, principal_id: str, *, by: Identity | None = None) -> IssuedSecret:
        """The code of a login link, good once, within 15 minutes by default. Without `by` the server itself asks, as on its first start.

        Raises as `mint_token` does: a session can do what a token can.
        """
        return await self._sessions.start_login(principal_id, by=by)

    async def consume_login(self, code: str) -> OpenedSession:
        """Spends a login code for a session; of several callers at once one gets it."""
        return await self._sessions.consume_login(code)

    async def start_session(self, *, by: Identity) -> OpenedSession:
        """A browser session that may do what `by` may and ends with it. What a JWT's claims add to its principal does not pass on."""
        return await self._sessions.start(by)

    async def end_session(self, identity: Identity) -> None:
        """Ends the session that `identity` rests on; its sockets follow within a second. `InvalidRequest` if it rests on none."""
        await self._sessions.end(identity)
        self._changes.note()

    # --- external identities ----------------------------------------------------------------------------------------------------

    def reserves(self, principal_id: str) -> bool:
        """Whether the id belongs to subjects of the configured issuer, so that only an admin may give it to somebody."""
        return self._provisioning is not None and self._provisioning.reserves(principal_id)

    async def link_identity(self, subject: str, principal_id: str, *, by: Identity) -> None:
        """Lets the issuer's `subject` be that principal. For admins.

        Raises `Forbidden`, `InvalidRequest` where no issuer is configured or it can have no such subject, `NotFound`, and `Conflict` if it
        is another one already.
        """
        self._policy.require_deployment(by, "principals.manage")
        if self._provisioning is None:
            raise InvalidRequest("No issuer is configured.")
        if not is_subject(subject):
            raise InvalidRequest(
                f"`$.subject` must have 1 to {MAX_SUBJECT} characters, no control characters among them."
            )
        await self._provisioning.link(subject, principal_id)
