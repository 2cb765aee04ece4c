"""Principals: people, bots and parts of the system. Administration, and what a person may do with the bots it owns."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from bubble.auth.identity import Identity
from bubble.protocol.errors import Conflict, Forbidden, InvalidRequest
from bubble.protocol.identifiers import check_name, new_id
from bubble.protocol.resources import (
    DeploymentRole,
    Metadata,
    Principal,
    PrincipalKind,
    PrincipalPage,
    PrincipalSummary,
)
from bubble.server.calls import Call
from bubble.server.operations import Operations
from bubble.server.routes.shapes import Body, Name, PageQuery, check_metadata, page_limit, refuse_reserved
from bubble.store.records import NewPrincipal, PrincipalChanges

__all__ = ["OPERATIONS"]

OPERATIONS = Operations()

DisplayName = Annotated[str, Meta(min_length=1, max_length=256)]


class CreatePrincipal(Body, frozen=True, kw_only=True):
    """A principal to register. Without `principalId` it gets a random one. A bot has an owner, by default the caller."""

    kind: PrincipalKind
    display_name: DisplayName
    principal_id: Name | UnsetType = UNSET
    owner_principal_id: Name | UnsetType = UNSET
    deployment_role: DeploymentRole = "user"
    metadata: Metadata | UnsetType = UNSET


class ListPrincipals(PageQuery, frozen=True, kw_only=True):
    """`ownerPrincipalId` keeps the bots of one owner."""

    owner_principal_id: Name | None = None


class UpdatePrincipal(Body, frozen=True, kw_only=True):
    """What to change. `disabled` ends its sockets and refuses its tokens. `subject` is for admins: who it is at the issuer of JWTs."""

    display_name: DisplayName | UnsetType = UNSET
    metadata: Metadata | UnsetType | None = UNSET
    disabled: bool | UnsetType = UNSET
    deployment_role: DeploymentRole | UnsetType = UNSET
    subject: Annotated[str, Meta(min_length=1, max_length=2048)] | UnsetType = UNSET


@OPERATIONS.add(
    "POST",
    "/v1/principals",
    summary="Register a principal",
    tag="Principals",
    status=201,
    errors=("forbidden", "not_found", "conflict"),
)
async def create_principal(call: Call, body: CreatePrincipal) -> Principal:
    """Admins register anybody, users the bots they own."""
    new = _new_principal(call, body)
    if not _is_admin(call):
        _require_own_bot(call, new, body)
    return await call.services.store.create_principal(new)


def _new_principal(call: Call, body: CreatePrincipal) -> NewPrincipal:
    principal_id = new_id() if body.principal_id is UNSET else check_name(body.principal_id, path="$.principalId")
    refuse_reserved(principal_id, path="$.principalId")
    if body.metadata is not UNSET:
        check_metadata(body.metadata)
    owner = None
    if body.owner_principal_id is not UNSET:
        owner = check_name(body.owner_principal_id, path="$.ownerPrincipalId")
    elif body.kind == "bot":
        owner = call.principal_id
    if owner is not None and body.kind != "bot":
        raise InvalidRequest("`$.ownerPrincipalId` belongs to bots.")
    return NewPrincipal(
        principal_id=principal_id,
        kind=body.kind,
        display_name=body.display_name,
        deployment_role=body.deployment_role,
        owner_principal_id=owner,
        metadata=None if body.metadata is UNSET else body.metadata,
    )


def _require_own_bot(call: Call, new: NewPrincipal, body: CreatePrincipal) -> None:
    _require_plain_user(call.identity)
    is_own = new.kind == "bot" and new.owner_principal_id == call.principal_id
    if not is_own or body.deployment_role != "user" or call.services.authenticator.reserves(new.principal_id):
        raise _lacks_management(call)


@OPERATIONS.add("GET", "/v1/principals", summary="List principals", tag="Principals", errors=("forbidden",))
async def list_principals(call: Call, query: ListPrincipals) -> PrincipalPage:
    """By id, for admins. A user may list its own bots, by naming itself in `ownerPrincipalId`."""
    owner = query.owner_principal_id
    if owner is not None:
        check_name(owner, path="ownerPrincipalId")
    if not _is_admin(call):
        if owner != call.principal_id:
            raise _lacks_management(call)
        _require_plain_user(call.identity)
    return await call.services.store.list_principals(
        owner=owner, after=query.after, limit=page_limit(query.limit, call.services.limits)
    )


@OPERATIONS.add(
    "GET",
    "/v1/principals/{principalId}",
    summary="Read a principal",
    tag="Principals",
    errors=("forbidden", "not_found"),
)
async def get_principal(call: Call, principal_id: str) -> Principal | PrincipalSummary:
    """Admins, the principal itself and a bot's owner see all of it; any other user what it needs to invite somebody."""
    if principal_id == call.principal_id:
        return call.identity.principal
    is_admin = _is_admin(call)
    if not is_admin:
        _require_plain_user(call.identity)
    principal = await call.services.store.get_principal(principal_id)
    is_owner = principal.owner_principal_id == call.principal_id
    return principal if is_admin or is_owner else principal.summary()


@OPERATIONS.add(
    "PATCH",
    "/v1/principals/{principalId}",
    summary="Change a principal",
    tag="Principals",
    errors=("forbidden", "not_found", "conflict"),
)
async def update_principal(call: Call, principal_id: str, body: UpdatePrincipal) -> Principal:
    """Admins change anybody, but neither disable nor demote themselves; users change and disable the bots they own."""
    store = call.services.store
    if isinstance(body.metadata, dict):
        check_metadata(body.metadata)
    if not _is_admin(call):
        _require_plain_user(call.identity)
    _require_manager(call, await store.get_principal(principal_id), body)
    if body.subject is not UNSET:
        await call.services.authenticator.link_identity(body.subject, principal_id, by=call.identity)
    changes = PrincipalChanges(
        display_name=body.display_name,
        deployment_role=body.deployment_role,
        metadata=body.metadata,
        disabled=body.disabled,
    )
    return await store.update_principal(principal_id, changes)


def _require_manager(call: Call, target: Principal, body: UpdatePrincipal) -> None:
    if not _is_admin(call):
        is_owner = target.owner_principal_id == call.principal_id and target.deployment_role == "user"
        if not is_owner or body.subject is not UNSET or body.deployment_role is not UNSET:
            raise _lacks_management(call)
    elif target.principal_id == call.principal_id and (body.disabled is True or body.deployment_role == "user"):
        raise Conflict("An admin neither disables nor demotes itself.")


@OPERATIONS.add(
    "DELETE",
    "/v1/principals/{principalId}/connections",
    summary="Close a principal's connections",
    tag="Principals",
    errors=("forbidden", "not_found"),
)
async def close_connections(call: Call, principal_id: str) -> None:
    """Its open sockets are closed with 4401. For admins."""
    call.services.policy.require_deployment(call.identity, "principals.manage")
    await call.services.store.get_principal(principal_id)
    call.services.hub.end_connections(principal_id)


def _is_admin(call: Call) -> bool:
    return "principals.manage" in call.services.policy.deployment_capabilities(call.identity)


def _require_plain_user(identity: Identity) -> None:
    if identity.principal.kind != "user":
        raise Forbidden(f'Principal "{identity.principal.principal_id}" lacks "principals.manage".')
    if identity.is_narrowed:
        raise Forbidden("A narrowed token neither sees nor manages principals.")


def _lacks_management(call: Call) -> Forbidden:
    return call.services.policy.denial(call.identity, "principals.manage")
