"""Frozen values that go in and out of a store beside the wire's own resources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from msgspec import UNSET, UnsetType

from bubble.protocol.resources import DeploymentRole, JoinPolicy, Metadata, PrincipalKind

__all__ = [
    "Credential",
    "CredentialKind",
    "CredentialState",
    "NewPrincipal",
    "NewThread",
    "Participant",
    "PrincipalChanges",
    "Problem",
    "StoreStatistics",
    "ThreadChanges",
]

CredentialKind = Literal["token", "session", "ticket", "login"]
CredentialState = Literal["valid", "expired", "revoked", "spent", "disabled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Participant:
    """A grant to give at creation; `appends` tells whether the role can append."""

    principal_id: str
    role: str
    appends: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NewThread:
    """A thread to create; `creator` None makes one without an owner (embedded use).

    `keeps_participants` concerns an import alone: whether those who joined by its events and did not leave take part again.
    """

    thread_id: str
    creator: str | None
    title: str | None = None
    join_policy: JoinPolicy = "invite"
    metadata: Metadata | None = None
    participants: Sequence[Participant] = ()
    keeps_participants: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadChanges:
    """What to change; UNSET leaves a field as it is, None clears title or metadata."""

    title: str | UnsetType | None = UNSET
    join_policy: JoinPolicy | UnsetType = UNSET
    metadata: Metadata | UnsetType | None = UNSET


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPrincipal:
    """A principal to register."""

    principal_id: str
    kind: PrincipalKind
    display_name: str
    deployment_role: DeploymentRole = "user"
    owner_principal_id: str | None = None
    metadata: Metadata | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PrincipalChanges:
    """What to change; UNSET leaves a field as it is."""

    display_name: str | UnsetType = UNSET
    deployment_role: DeploymentRole | UnsetType = UNSET
    metadata: Metadata | UnsetType | None = UNSET
    disabled: bool | UnsetType = UNSET


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """A bearer of some kind. Only `secret_hash` (SHA-256) of its secret is kept.

    `parent_id` names the credential it was made from: it is never valid when that one is not. `capabilities` and `threads` narrow
    it (None: not narrowed). `spent_ms` is set once a one-use one was consumed.
    """

    credential_id: str
    kind: CredentialKind
    secret_hash: bytes
    principal_id: str
    created_ms: int
    expires_ms: int | None = None
    parent_id: str | None = None
    name: str | None = None
    capabilities: tuple[str, ...] | None = None
    threads: tuple[str, ...] | None = None
    last_used_ms: int | None = None
    revoked_ms: int | None = None
    spent_ms: int | None = None

    def state(self, *, now_ms: int) -> CredentialState:
        """Its own state; `bubble.store.credentials.state_of` also looks at what it was made from and at the principals."""
        if self.revoked_ms is not None:
            return "revoked"
        if self.spent_ms is not None:
            return "spent"
        if self.expires_ms is not None and self.expires_ms <= now_ms:
            return "expired"
        return "valid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something `check` found: on which thread (None: the store itself) and what."""

    thread_id: str | None
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStatistics:
    """Counters since opening; `commit_seconds` is the sum of the time spent in commits."""

    appends: int
    refused: int
    commits: int
    largest_batch: int
    commit_seconds: float
    queued: int
