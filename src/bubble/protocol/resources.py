"""The things that the HTTP routes speak of: principals, threads, grants, tokens, runs, pages."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from bubble.protocol.events import Outcome, RunKind
from bubble.protocol.jsontext import JSONValue

__all__ = [
    "DeploymentRole",
    "EventPage",
    "Grant",
    "GrantPage",
    "JoinPolicy",
    "Metadata",
    "MintedToken",
    "Principal",
    "PrincipalKind",
    "PrincipalPage",
    "PrincipalSummary",
    "Run",
    "RunPage",
    "RunStateName",
    "Thread",
    "ThreadPage",
    "Token",
    "TokenPage",
]

PrincipalKind = Literal["user", "bot", "system"]
DeploymentRole = Literal["user", "admin"]
JoinPolicy = Literal["invite", "open"]
RunStateName = Literal["open", "finished"]
Metadata: TypeAlias = dict[str, JSONValue]
RoleName: TypeAlias = Annotated[str, Meta(min_length=1, max_length=64)]


class _Resource(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    pass


class PrincipalSummary(_Resource, frozen=True, kw_only=True):
    """What others may know of a principal."""

    principal_id: str
    kind: PrincipalKind
    display_name: str


class Principal(_Resource, frozen=True, kw_only=True):
    """Somebody who takes part: a person, a bot (which has an owner), or a part of the system. Times are RFC 3339."""

    principal_id: str
    kind: PrincipalKind
    display_name: str
    created_at: str
    deployment_role: DeploymentRole = "user"
    owner_principal_id: str | UnsetType = UNSET
    metadata: Metadata | UnsetType = UNSET
    disabled_at: str | UnsetType = UNSET

    def summary(self) -> PrincipalSummary:
        """The part that others may see."""
        return PrincipalSummary(principal_id=self.principal_id, kind=self.kind, display_name=self.display_name)


class Thread(_Resource, frozen=True, kw_only=True):
    """A thread; `head_seq` is the seq of its last event (0: none), `role` the caller's own, where it has one."""

    thread_id: str
    join_policy: JoinPolicy
    created_at: str
    last_activity_at: str
    head_seq: int
    title: str | UnsetType = UNSET
    metadata: Metadata | UnsetType = UNSET
    role: str | UnsetType = UNSET


class Grant(_Resource, frozen=True, kw_only=True):
    """A principal's role on a thread."""

    thread_id: str
    principal_id: str
    role: str
    granted_by: str
    created_at: str
    principal: PrincipalSummary | UnsetType = UNSET


class Token(_Resource, frozen=True, kw_only=True):
    """A local token without its secret. `capabilities` and `threads` narrow it, where given."""

    token_id: str
    principal_id: str
    created_at: str
    name: str | UnsetType = UNSET
    capabilities: list[str] | UnsetType = UNSET
    threads: list[str] | UnsetType = UNSET
    expires_at: str | UnsetType = UNSET
    last_used_at: str | UnsetType = UNSET
    revoked_at: str | UnsetType = UNSET


class MintedToken(Token, frozen=True, kw_only=True):
    """A new token; `token` is the secret, shown this once."""

    token: str


class Run(_Resource, frozen=True, kw_only=True):
    """One run of a thread."""

    thread_id: str
    run_id: str
    principal_id: str
    state: RunStateName
    started_seq: int
    started_at: str
    last_seq: int
    last_event_at: str
    kind: RunKind | UnsetType = UNSET
    snapshot_seq: int | UnsetType = UNSET
    finished_seq: int | UnsetType = UNSET
    finished_at: str | UnsetType = UNSET
    outcome: Outcome | UnsetType = UNSET


class EventPage(_Resource, frozen=True, kw_only=True):
    """Stored events in ascending seq order; `next_seq` is where the next page begins, None at the end."""

    events: list[Raw]
    next_seq: int | None


class ThreadPage(_Resource, frozen=True, kw_only=True):
    """Threads by latest activity; `next_after` is the cursor of the next page."""

    threads: list[Thread]
    next_after: str | None


class GrantPage(_Resource, frozen=True, kw_only=True):
    """Grants; `next_after` is the cursor of the next page."""

    grants: list[Grant]
    next_after: str | None


class PrincipalPage(_Resource, frozen=True, kw_only=True):
    """Principals by id; `next_after` is the cursor of the next page."""

    principals: list[Principal]
    next_after: str | None


class TokenPage(_Resource, frozen=True, kw_only=True):
    """A principal's tokens, newest first."""

    tokens: list[Token]


class RunPage(_Resource, frozen=True, kw_only=True):
    """Runs by their first seq; `next_after` is the cursor of the next page."""

    runs: list[Run]
    next_after: str | None
