"""Principals and their tokens (protocol, sections 4 and 6): administration, and what a user may do with its bots."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from msgspec import UNSET, UnsetType

from bubble.client.http import Call, Routes, json_body, or_unset
from bubble.client.listing import Listing
from bubble.client.paths import principal_path
from bubble.client.wire import decode_resource
from bubble.protocol.errors import InternalError
from bubble.protocol.resources import (
    DeploymentRole,
    Metadata,
    MintedToken,
    Principal,
    PrincipalKind,
    PrincipalPage,
    PrincipalSummary,
    Token,
    TokenPage,
)

__all__ = ["Administration"]


class Administration(Routes):
    """What `BubbleConnection` does about principals and their tokens: the routes below `/v1/principals`."""

    async def create_principal(
        self,
        principal_id: str | None = None,
        *,
        kind: PrincipalKind,
        display_name: str | None = None,
        deployment_role: DeploymentRole | None = None,
        owner_principal_id: str | None = None,
        metadata: Metadata | None = None,
    ) -> Principal:
        """Registers a principal; admins anybody, users their bots. `display_name` is by default the id."""
        body = json_body(
            principalId=or_unset(principal_id),
            kind=kind,
            displayName=display_name or principal_id or kind,
            deploymentRole=or_unset(deployment_role),
            ownerPrincipalId=or_unset(owner_principal_id),
            metadata=or_unset(metadata),
        )
        return await self._http.post("/v1/principals", Principal, body)

    async def get_principal(self, principal_id: str) -> Principal | PrincipalSummary:
        """One principal; of others a user sees a summary only."""
        body = (await self._http.send(Call(method="GET", path=principal_path(principal_id), repeatable=True))).body
        try:
            return decode_resource(body, Principal)
        except InternalError:
            return decode_resource(body, PrincipalSummary)

    def list_principals(
        self, *, owner: str | None = None, limit: int | None = None
    ) -> Listing[PrincipalPage, Principal]:
        """Principals by id; with `owner`, the bots of that user."""
        return Listing(
            lambda after: self._http.get(
                "/v1/principals", PrincipalPage, after=after, limit=limit, ownerPrincipalId=owner
            ),
            lambda page: page.principals,
        )

    async def update_principal(
        self,
        principal_id: str,
        *,
        display_name: str | None = None,
        deployment_role: DeploymentRole | None = None,
        disabled: bool | None = None,
        metadata: Metadata | UnsetType | None = UNSET,
    ) -> Principal:
        """Changes what is given; metadata None clears it. Disabling ends the principal's sockets and refuses its tokens."""
        body = json_body(
            displayName=or_unset(display_name),
            deploymentRole=or_unset(deployment_role),
            disabled=or_unset(disabled),
            metadata=metadata,
        )
        return await self._http.patch(principal_path(principal_id), Principal, body)

    async def close_connections(self, principal_id: str) -> None:
        """Closes a principal's sockets (4401). For admins."""
        await self._http.delete(principal_path(principal_id, "/connections"))

    async def mint_token(
        self,
        principal_id: str,
        *,
        name: str | None = None,
        expires_at: str | None = None,
        capabilities: Sequence[str] | None = None,
        threads: Sequence[str] | None = None,
    ) -> MintedToken:
        """A new token; its secret is in this answer only. `expires_at` is RFC 3339; `capabilities` and `threads` narrow it."""
        body = json_body(
            name=or_unset(name),
            expiresAt=or_unset(expires_at),
            capabilities=UNSET if capabilities is None else list(capabilities),
            threads=UNSET if threads is None else list(threads),
        )
        return await self._http.post(principal_path(principal_id, "/tokens"), MintedToken, body)

    async def list_tokens(self, principal_id: str) -> Sequence[Token]:
        """A principal's tokens, newest first, revoked ones included."""
        return (await self._http.get(principal_path(principal_id, "/tokens"), TokenPage)).tokens

    async def revoke_token(self, principal_id: str, token_id: str) -> None:
        """Ends a token, what was made from it, and their sockets."""
        await self._http.delete(principal_path(principal_id, f"/tokens/{quote(token_id, safe='')}"))
