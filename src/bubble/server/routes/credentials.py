"""Tokens of principals, and one-use tickets for browsers' WebSockets (protocol, section 4)."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from bubble.protocol.errors import InvalidRequest
from bubble.protocol.resources import MintedToken, TokenPage
from bubble.protocol.timestamps import format_ms, parse_ms
from bubble.server.calls import Call
from bubble.server.operations import Operations
from bubble.server.routes.shapes import Body, Name

__all__ = ["OPERATIONS"]

OPERATIONS = Operations()

Moment = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Narrowing = Annotated[list[Annotated[str, Meta(min_length=1, max_length=64)]], Meta(min_length=1, max_length=1_000)]


class MintToken(Body, frozen=True, kw_only=True):
    """A token to mint. `capabilities` and `threads` narrow it. It never outlives the bearer that asks for it."""

    name: Annotated[str, Meta(min_length=1, max_length=128)] | UnsetType = UNSET
    expires_at: Moment | UnsetType = UNSET
    capabilities: Narrowing | UnsetType = UNSET
    threads: Annotated[list[Name], Meta(min_length=1, max_length=1_000)] | UnsetType = UNSET


class NoFields(Body, frozen=True, kw_only=True):
    """Nothing to say."""


class Ticket(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A ticket for one upgrade: `/v1/ws?ticket=...`, before `expiresAt`."""

    ticket: str
    expires_at: str


@OPERATIONS.add(
    "POST",
    "/v1/principals/{principalId}/tokens",
    summary="Mint a token",
    tag="Tokens",
    status=201,
    errors=("forbidden", "not_found", "conflict"),
    body_required=False,
)
async def mint_token(call: Call, principal_id: str, body: MintToken) -> MintedToken:
    """The secret is shown this once. For users themselves, owners of bots, and admins; a narrowed token mints none."""
    return await call.services.authenticator.mint_token(
        principal_id,
        by=call.identity,
        name=None if body.name is UNSET else body.name,
        expires_ms=None if body.expires_at is UNSET else _ms(body.expires_at),
        capabilities=None if body.capabilities is UNSET else body.capabilities,
        threads=None if body.threads is UNSET else body.threads,
    )


def _ms(moment: str) -> int:
    try:
        return parse_ms(moment)
    except ValueError as error:
        raise InvalidRequest(f"`$.expiresAt` {error}.") from None


@OPERATIONS.add(
    "GET",
    "/v1/principals/{principalId}/tokens",
    summary="List a principal's tokens",
    tag="Tokens",
    errors=("forbidden", "not_found"),
)
async def list_tokens(call: Call, principal_id: str) -> TokenPage:
    """Newest first, without their secrets, revoked ones included."""
    return TokenPage(tokens=await call.services.authenticator.list_tokens(principal_id, by=call.identity))


@OPERATIONS.add(
    "DELETE",
    "/v1/principals/{principalId}/tokens/{tokenId}",
    summary="Revoke a token",
    tag="Tokens",
    errors=("forbidden", "not_found"),
)
async def revoke_token(call: Call, principal_id: str, token_id: str) -> None:
    """And everything made from it; its sockets are closed within a second."""
    await call.services.authenticator.revoke_token(principal_id, token_id, by=call.identity)


@OPERATIONS.add(
    "POST", "/v1/ws/tickets", summary="Get a ticket for a WebSocket", tag="Sessions", status=201, body_required=False
)
async def issue_ticket(call: Call, body: NoFields) -> Ticket:  # noqa: ARG001 - it has no fields
    """For browsers, which cannot set a header on an upgrade. Good once, and briefly."""
    issued = await call.services.authenticator.mint_ticket(by=call.identity)
    return Ticket(ticket=issued.secret, expires_at=format_ms(issued.expires_ms))
