"""Which tokens may be minted, by whom, for whom and for how long. Pure (protocol, sections 4 and 5)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from bubble.auth.drivers import is_disabled
from bubble.auth.identity import Identity
from bubble.auth.policy import NARROWING_CAPABILITIES, Policy
from bubble.protocol.errors import Conflict, Forbidden, InvalidRequest
from bubble.protocol.identifiers import SERVER_PRINCIPAL, check_name
from bubble.protocol.resources import Principal

__all__ = ["check_mint", "check_narrowing", "earlier", "require_manager"]

MAX_NARROWING: Final = 1_000


def earlier(one: int | None, other: int | None) -> int | None:
    """The earlier of two ends; None is never."""
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)


def require_manager(policy: Policy, by: Identity, target: Principal) -> None:
    """Raises `Forbidden` unless `by` may list, mint and revoke the target's tokens: itself (a person), its owner, or an admin.

    A narrowed bearer never may, as managing tokens would lead out of what it is narrowed to.
    """
    caller = by.principal
    if by.is_narrowed:
        raise Forbidden("A narrowed token manages no tokens.")
    if _is_admin(policy, by):
        return
    is_own = caller.principal_id == target.principal_id
    is_owner = caller.kind == "user" and target.owner_principal_id == caller.principal_id
    if not (is_own and caller.kind == "user") and not (is_owner and target.deployment_role == "user"):
        raise Forbidden(f'Principal "{caller.principal_id}" may not manage the tokens of "{target.principal_id}".')


def check_mint(policy: Policy, by: Identity, target: Principal) -> None:
    """Raises `Forbidden` unless `by` may make a bearer for the target, `Conflict` if the target is disabled."""
    require_manager(policy, by, target)
    if target.kind == "bot" and by.principal.principal_id == target.principal_id:
        raise Forbidden("A bot mints no tokens for itself; its owner does.")
    if target.principal_id == SERVER_PRINCIPAL:
        raise Forbidden(f'"{SERVER_PRINCIPAL}" is the server itself and has no tokens.')
    if is_disabled(target):
        raise Conflict(f'Principal "{target.principal_id}" is disabled.')


def check_narrowing(
    capabilities: Collection[str] | None, threads: Collection[str] | None
) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """What a token is to be narrowed to, in the order and form that is stored. Raises `InvalidRequest` naming the field."""
    return (
        _listed(capabilities, path="capabilities", check=_check_capability),
        _listed(threads, path="threads", check=lambda thread_id, path: check_name(thread_id, path=path)),
    )


def _is_admin(policy: Policy, by: Identity) -> bool:
    return "principals.manage" in policy.deployment_capabilities(by)


def _check_capability(capability: str, path: str) -> str:
    if capability not in NARROWING_CAPABILITIES:
        known = ", ".join(sorted(NARROWING_CAPABILITIES))
        raise InvalidRequest(f'`{path}` is "{capability}", which is no capability. There are {known}.')
    return capability


def _listed(names: Collection[str] | None, *, path: str, check: Callable[[str, str], str]) -> tuple[str, ...] | None:
    if names is None:
        return None
    if not 1 <= len(names) <= MAX_NARROWING:
        raise InvalidRequest(
            f"`{path}` must name 1 to {MAX_NARROWING:,}; leave it out for a token that is not narrowed."
        )
    return tuple(dict.fromkeys(check(name, f"{path}[{index}]") for index, name in enumerate(names)))
