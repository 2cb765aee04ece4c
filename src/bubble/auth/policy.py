"""What a role may do, and the guard that carries it into a store's transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from bubble.auth.identity import Identity
from bubble.protocol.errors import Forbidden, thread_not_found
from bubble.protocol.events import APPENDABLE_TYPES
from bubble.protocol.resources import Principal, PrincipalKind

__all__ = [
    "BUILTIN_ROLES",
    "CAPABILITIES",
    "DEPLOYMENT_CAPABILITIES",
    "NARROWING_CAPABILITIES",
    "IdentityGuard",
    "Policy",
]

_APPENDS: Final = frozenset(f"events.{name}" for name in APPENDABLE_TYPES)
_OBSERVER: Final = frozenset({"events.subscribe", "thread.read", "cursor.write", "grants.leave"})
_PARTICIPANT: Final = _OBSERVER | _APPENDS
_OWNER: Final = _PARTICIPANT | {"thread.update", "thread.delete", "grants.manage", "runs.finish_any"}

BUILTIN_ROLES: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {"observer": _OBSERVER, "participant": _PARTICIPANT, "owner": _OWNER}
)
DEPLOYMENT_CAPABILITIES: Final = frozenset(
    {"threads.create", "threads.name", "principals.manage", "events.impersonate"}
)
CAPABILITIES: Final = _OWNER | DEPLOYMENT_CAPABILITIES
_ON_OPEN_THREADS: Final = frozenset({"thread.read", "grants.join"})
#: What a token may be narrowed to.
NARROWING_CAPABILITIES: Final = CAPABILITIES | _ON_OPEN_THREADS
_HIDDEN: Final = frozenset({"events.subscribe", "thread.read"})


@dataclass(frozen=True, slots=True)
class Policy:
    """Roles by name. Custom roles stand beside the built-in ones and may not replace them."""

    roles: Mapping[str, frozenset[str]] = field(default_factory=lambda: BUILTIN_ROLES)

    @classmethod
    def with_custom_roles(cls, custom: Mapping[str, Iterable[str]]) -> Policy:
        """The built-in roles and `custom` ones; `ValueError` naming a role or capability that cannot be."""
        roles = dict(BUILTIN_ROLES)
        for name, capabilities in custom.items():
            if name in BUILTIN_ROLES:
                raise ValueError(f"role `{name}` is built in")
            unknown = sorted(set(capabilities) - _OWNER)
            if unknown:
                known = ", ".join(sorted(_OWNER))
                raise ValueError(f"role `{name}` names unknown capability `{unknown[0]}`; it may have {known}")
            roles[name] = frozenset(capabilities)
        return cls(MappingProxyType(roles))

    def role_appends(self, role: str) -> bool:
        """Whether the role can append any event (it is then a participant, and its coming and going is an event)."""
        return not _APPENDS.isdisjoint(self.roles.get(role, frozenset()))

    def guard(self, identity: Identity) -> IdentityGuard:
        """The identity's rights, for the store."""
        return IdentityGuard(self, identity)

    def deployment_capabilities(self, identity: Identity) -> frozenset[str]:
        """What the identity may do beside any thread; nothing, where it is narrowed to some threads."""
        if identity.threads is not None:
            return frozenset()
        granted = _of_the_deployment(identity.principal)
        return granted if identity.capabilities is None else granted & identity.capabilities

    def require_deployment(self, identity: Identity, capability: str) -> None:
        """Raises `Forbidden` unless the identity may do this in the deployment."""
        if capability not in self.deployment_capabilities(identity):
            raise self.denial(identity, capability)

    def denial(self, identity: Identity, capability: str) -> Forbidden:
        """What to tell who may not do this in the deployment: whether that is a matter of the principal, or of its bearer alone."""
        has_it = capability in _of_the_deployment(identity.principal)
        return _lacking(identity.principal.principal_id, f'"{capability}"', but_for_the_bearer=has_it)


class IdentityGuard:
    """`bubble.store.commands.Guard` of one identity. Make it once per connection: it keeps what it worked out per role."""

    __slots__ = ("_by_role", "_identity", "_is_admin", "_policy", "_threads", "kind", "principal_id")

    def __init__(self, policy: Policy, identity: Identity) -> None:
        self.principal_id: str = identity.principal.principal_id
        self.kind: PrincipalKind = identity.principal.kind
        self._policy = policy
        self._identity = identity
        self._threads = identity.threads
        self._is_admin = identity.principal.deployment_role == "admin"
        self._by_role: dict[str | None, frozenset[str]] = {}

    def require(self, capability: str, *, thread_id: str, role: str | None, join_policy: str) -> None:
        """Returns if allowed; `NotFound` where the caller may not know the thread, `Forbidden` where it lacks the capability."""
        within = self._threads is None or thread_id in self._threads
        if within and capability in (self._by_role.get(role) or self._carried(role)):
            return
        is_open = join_policy == "open" and within
        if is_open and capability in _ON_OPEN_THREADS and self._allows(capability):
            return
        if capability in _HIDDEN or not (within and self._sees(role, is_open=is_open)):
            raise thread_not_found(thread_id)
        has_it = capability in self._of_the_principal(role) or (is_open and capability in _ON_OPEN_THREADS)
        raise _lacking(self.principal_id, f'"{capability}" on thread "{thread_id}"', but_for_the_bearer=has_it)

    def has(self, capability: str, *, thread_id: str, role: str | None) -> bool:
        """Whether the role (or being an admin) carries the capability, within what the bearer is narrowed to."""
        within = self._threads is None or thread_id in self._threads
        return within and capability in self._carried(role)

    def _sees(self, role: str | None, *, is_open: bool) -> bool:
        # Whoever has no capability on a thread, by its role or by how its bearer is narrowed, does not learn that there is one.
        return not _OWNER.isdisjoint(self._carried(role)) or (is_open and self._allows("thread.read"))

    def _carried(self, role: str | None) -> frozenset[str]:
        capabilities = self._by_role.get(role)
        if capabilities is None:
            capabilities = self._by_role[role] = self._work_out(role)
        return capabilities

    def _work_out(self, role: str | None) -> frozenset[str]:
        carried = self._of_the_principal(role)
        narrowing = self._identity.capabilities
        return carried if narrowing is None else carried & narrowing

    def _of_the_principal(self, role: str | None) -> frozenset[str]:
        return CAPABILITIES if self._is_admin else self._policy.roles.get(role or "", frozenset())

    def _allows(self, capability: str) -> bool:
        return self._identity.capabilities is None or capability in self._identity.capabilities


def _of_the_deployment(principal: Principal) -> frozenset[str]:
    if principal.deployment_role == "admin":
        return DEPLOYMENT_CAPABILITIES
    return frozenset({"threads.create"}) if principal.kind == "user" else frozenset()


def _lacking(principal_id: str, what: str, *, but_for_the_bearer: bool) -> Forbidden:
    if but_for_the_bearer:
        return Forbidden(f'Principal "{principal_id}" has {what}, but not with this token, which is narrowed.')
    return Forbidden(f'Principal "{principal_id}" lacks {what}.')
