"""Local tokens: minted, listed, revoked (protocol, sections 4 and 6).

A token minted through another bearer is that one's child in the store: it ends when the parent is revoked, and no later than it expires.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec
from msgspec import UNSET, UnsetType

from bubble.auth.identity import Identity
from bubble.auth.last_uses import LastUses
from bubble.auth.minting import check_mint, check_narrowing, earlier, require_manager
from bubble.auth.policy import Policy
from bubble.auth.secret_texts import hash_of, new_token
from bubble.protocol.errors import InvalidRequest, NotFound
from bubble.protocol.identifiers import new_id
from bubble.protocol.resources import MintedToken, Token
from bubble.protocol.timestamps import Clock, format_ms
from bubble.store.base import BubbleStore
from bubble.store.records import Credential

__all__ = ["Tokens"]

MAX_NAME = 128


class Tokens:
    """The local tokens of all principals."""

    def __init__(self, store: BubbleStore, policy: Policy, *, clock: Clock, last_uses: LastUses) -> None:
        self._store = store
        self._policy = policy
        self._clock = clock
        self._last_uses = last_uses

    async def mint(
        self,
        principal_id: str,
        *,
        by: Identity,
        name: str | None,
        expires_ms: int | None,
        capabilities: Collection[str] | None,
        threads: Collection[str] | None,
    ) -> MintedToken:
        """A new token of the principal, which ends no later than `by` does."""
        now = self._clock()
        narrowing = check_narrowing(capabilities, threads)
        if name is not None and not 1 <= len(name) <= MAX_NAME:
            raise InvalidRequest(f"`name` must have 1 to {MAX_NAME} characters.")
        if expires_ms is not None and expires_ms <= now:
            raise InvalidRequest("`expiresAt` must lie in the future.")
        principal = await self._store.get_principal(principal_id)
        check_mint(self._policy, by, principal)
        secret = new_token(principal.kind)
        credential = Credential(
            credential_id=new_id(),
            kind="token",
            secret_hash=hash_of(secret),
            principal_id=principal_id,
            created_ms=now,
            expires_ms=earlier(expires_ms, by.expires_ms),
            parent_id=by.credential_id,
            name=name,
            capabilities=narrowing[0],
            threads=narrowing[1],
        )
        await self._store.add_credential(credential)
        return MintedToken(**msgspec.structs.asdict(_shown(credential)), token=secret)

    async def listed(self, principal_id: str, *, by: Identity) -> list[Token]:
        """The principal's tokens, newest first."""
        await self._require_manager(principal_id, by)
        await self._last_uses.write()
        return [_shown(credential) for credential in await self._store.list_credentials(principal_id, "token")]

    async def revoke(self, principal_id: str, token_id: str, *, by: Identity) -> None:
        """Revokes one of the principal's tokens and everything made from it."""
        await self._require_manager(principal_id, by)
        tokens = await self._store.list_credentials(principal_id, "token")
        if all(token.credential_id != token_id for token in tokens):
            raise NotFound(f'Principal "{principal_id}" has no token "{token_id}".')
        await self._store.revoke_credential(principal_id, token_id)

    async def _require_manager(self, principal_id: str, by: Identity) -> None:
        require_manager(self._policy, by, await self._store.get_principal(principal_id))


def _shown(credential: Credential) -> Token:
    return Token(
        token_id=credential.credential_id,
        principal_id=credential.principal_id,
        created_at=format_ms(credential.created_ms),
        name=UNSET if credential.name is None else credential.name,
        capabilities=UNSET if credential.capabilities is None else list(credential.capabilities),
        threads=UNSET if credential.threads is None else list(credential.threads),
        expires_at=_moment(credential.expires_ms),
        last_used_at=_moment(credential.last_used_ms),
        revoked_at=_moment(credential.revoked_ms),
    )


def _moment(ms: int | None) -> str | UnsetType:
    return UNSET if ms is None else format_ms(ms)
