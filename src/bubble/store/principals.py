"""What a principal may be, and which changes of one concern its open connections. Pure."""

from __future__ import annotations

from bubble.protocol.errors import Conflict, InvalidRequest, NotFound
from bubble.protocol.identifiers import check_name
from bubble.protocol.resources import Principal
from bubble.store.records import NewPrincipal

__all__ = ["check_new_principal", "identity_linked", "principal_not_found", "principal_taken", "rights_changed"]


def principal_not_found(principal_id: str) -> NotFound:
    """The answer for a principal that does not exist."""
    return NotFound(f'There is no principal "{principal_id}".')


def principal_taken(principal_id: str) -> Conflict:
    """The answer for an id that another principal has."""
    return Conflict(f'The principal id "{principal_id}" is taken.')


def identity_linked(principal_id: str) -> Conflict:
    """The answer for an external identity that belongs to another principal."""
    return Conflict(f'The identity is linked to principal "{principal_id}".')


def check_new_principal(new: NewPrincipal, owner: Principal | None) -> None:
    """A bot has an owner, which is a user, and nobody else has one (protocol, section 4). `owner` is who `new` names, if it exists.

    Raises `InvalidRequest`, or `NotFound` for an unknown owner.
    """
    check_name(new.principal_id, path="principalId")
    if (new.owner_principal_id is not None) != (new.kind == "bot"):
        raise InvalidRequest("`ownerPrincipalId` belongs to bots, and each bot has one.")
    if new.owner_principal_id is None:
        return
    if owner is None:
        raise principal_not_found(new.owner_principal_id)
    if owner.kind != "user":
        raise InvalidRequest("`ownerPrincipalId` must name a user.")


def rights_changed(before: Principal, after: Principal) -> bool:
    """Whether what the principal may do changed, so that its connections must look again (`CredentialsChanged`)."""
    return before.disabled_at != after.disabled_at or before.deployment_role != after.deployment_role
