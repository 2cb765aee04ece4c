"""Principals and their tokens (protocol, sections 4 and 6): administration, and what a user may do with its bots."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from msgspec import UNSET, UnsetType

from bubble.client.http import Call, HttpClient, json_body, or_unset
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


class Administration:
    """The routes below `/v1/principals`."""

    def __init__(self, http: HttpClient) -> None:
        self._http = http

    async def create_principal(
        self,
        principal_id: str | None,
        *,
        kind: PrincipalKind,
        display_name: str | None,
        deployment_role: DeploymentRole | None,
        owner_principal_id: str | None,
        metadata: Metadata | None,
    ) -> Principal:
        """Registers a principal."""
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
        """One principal, as much of it as the caller may see."""
        body = (await self._http.send(Call(method="GET", path=principal_path(principal_id), repeatable=True))).body
        try:
            return decode_resource(body, Principal)
        except InternalError:
            return decode_resource(body, PrincipalSummary)

    def list_principals(self, *, owner: str | None, limit: int | None) -> Listing[PrincipalPage, Principal]:
        """Principals by id."""
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
        display_name: str | None,
        deployment_role: DeploymentRole | None,
        disabled: bool | None,
        metadata: Metadata | UnsetType | None,
    ) -> Principal:
        """Changes what is given."""
        body = json_body(
            displayName=or_unset(display_name),
            deploymentRole=or_unset(deployment_role),
            disabled=or_unset(disabled),
            metadata=metadata,
        )
        return await self._http.patch(principal_path(principal_id), Principal, body)

    async def close_connections(self, principal_id: str) -> None:
        """Closes the principal's sockets."""
        await self._http.delete(principal_path(principal_id, "/connections"))

    async def mint_token(
        self,
        principal_id: str,
        *,
        name: str | None,
        expires_at: str | None,
        capabilities: Sequence[str] | None,
        threads: Sequence[str] | None,
    ) -> MintedToken:
        """A new token of the principal."""
        body = json_body(
            name=or_unset(name),
            expiresAt=or_unset(expires_at),
            capabilities=UNSET if capabilities is None else list(capabilities),
            threads=UNSET if threads is None else list(threads),
        )
        return await self._http.post(principal_path(principal_id, "/tokens"), MintedToken, body)

    async def list_tokens(self, principal_id: str) -> Sequence[Token]:
        """The principal's tokens, newest first."""
        return (await self._http.get(principal_path(principal_id, "/tokens"), TokenPage)).tokens

    async def revoke_token(self, principal_id: str, token_id: str) -> None:
        """Ends a token."""
        await self._http.delete(principal_path(principal_id, f"/tokens/{quote(token_id, safe='')}"))
