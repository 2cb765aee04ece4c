"""What may become of a grant: who may change it, what a change writes into the log, and that a thread keeps an owner.

Who can no longer append can no longer end what it began. So the server finishes the open runs of a principal that leaves, in the same
transaction: nobody watches a spinner for ever.

Pure: a backend asks within its transaction with the roles committed at that moment, then applies the answer (protocol, section 5).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from bubble.protocol.errors import Conflict, NotFound
from bubble.protocol.events import EncodedEvent, ParticipantJoined, ParticipantLeft, RunFinished, encode_event
from bubble.protocol.identifiers import SERVER_PRINCIPAL
from bubble.protocol.resources import JoinPolicy
from bubble.store.commands import Guard
from bubble.store.notices import GrantChange

__all__ = [
    "OWNER",
    "SELF_SERVICE_ROLES",
    "GrantPlan",
    "HeldRole",
    "authorize_grant",
    "authorize_removal",
    "lost_run",
    "participant_event",
    "plan_grant",
    "plan_removal",
]

OWNER: Final = "owner"
SELF_SERVICE_ROLES: Final = frozenset({"observer", "participant"})


@dataclass(frozen=True, slots=True)
class HeldRole:
    """A role on a thread, and whether it can append there."""

    role: str
    appends: bool


@dataclass(frozen=True, slots=True)
class GrantPlan:
    """What to apply: the change to tell (None: nothing changes), and the event that goes with it in the same transaction."""

    change: GrantChange | None
    event: EncodedEvent | None = None

    @property
    def ends_runs(self) -> bool:
        """Whether the principal's open runs end as well: it can no longer append."""
        return self.event is not None and isinstance(self.event.event, ParticipantLeft)

    def events(self, open_runs: Iterable[str]) -> list[EncodedEvent]:
        """What to write, given the principal's open runs here by their ids (not asked for where they go on)."""
        ended = [lost_run(run_id) for run_id in open_runs] if self.ends_runs else []
        return [*ended, self.event] if self.event is not None else []


def authorize_grant(
    guard: Guard | None,
    *,
    thread_id: str,
    principal_id: str,
    role: str,
    caller_role: str | None,
    join_policy: JoinPolicy,
) -> None:
    """Raises `NotFound` or `Forbidden` unless the caller may give `principal_id` this `role`."""
    if guard is None or guard.has("grants.manage", thread_id=thread_id, role=caller_role):
        return
    joins = join_policy == "open" and principal_id == guard.principal_id and role in SELF_SERVICE_ROLES
    needed = "grants.join" if joins else "grants.manage"
    guard.require(needed, thread_id=thread_id, role=caller_role, join_policy=join_policy)


def authorize_removal(
    guard: Guard | None, *, thread_id: str, principal_id: str, caller_role: str | None, join_policy: JoinPolicy
) -> None:
    """Raises `NotFound` or `Forbidden` unless the caller may take `principal_id`'s grant away."""
    if guard is None or guard.has("grants.manage", thread_id=thread_id, role=caller_role):
        return
    needed = "grants.leave" if principal_id == guard.principal_id else "grants.manage"
    guard.require(needed, thread_id=thread_id, role=caller_role, join_policy=join_policy)


def plan_grant(
    held: HeldRole | None, wanted: HeldRole, *, thread_id: str, principal_id: str, by: str, owners: int
) -> GrantPlan:
    """Giving `wanted` to a principal that holds `held`; `owners` counts the thread's owners now. `Conflict` for the last one.

    A grant that is only changed keeps its `created_at`; `granted_by` tells who changed it last.
    """
    if held is not None and held.role == wanted.role and held.appends == wanted.appends:
        return GrantPlan(None)
    if wanted.role != OWNER:
        _keep_an_owner(held, thread_id, principal_id, owners)
    event = participant_event(
        principal_id, by=by, could_append=held is not None and held.appends, can_append=wanted.appends
    )
    return GrantPlan("granted" if held is None else "updated", event)


def plan_removal(held: HeldRole | None, *, thread_id: str, principal_id: str, by: str, owners: int) -> GrantPlan:
    """Taking a grant away. `NotFound` where there is none, `Conflict` for the last owner's."""
    if held is None:
        raise NotFound(f'Principal "{principal_id}" has no grant on thread "{thread_id}".')
    _keep_an_owner(held, thread_id, principal_id, owners)
    return GrantPlan("revoked", participant_event(principal_id, by=by, could_append=held.appends, can_append=False))


def participant_event(principal_id: str, *, by: str, could_append: bool, can_append: bool) -> EncodedEvent | None:
    """`participant_joined` or `participant_left` where the ability to append comes or goes, else None."""
    if could_append == can_append:
        return None
    kind = ParticipantJoined if can_append else ParticipantLeft
    event = kind(by_principal_id=by, principal_id=principal_id)
    return EncodedEvent(event, encode_event(event))


def lost_run(run_id: str) -> EncodedEvent:
    """The `run_finished` by which the server ends a run that its principal cannot, or will not, end."""
    event = RunFinished(principal_id=SERVER_PRINCIPAL, run_id=run_id, outcome="lost")
    return EncodedEvent(event, encode_event(event))


def _keep_an_owner(held: HeldRole | None, thread_id: str, principal_id: str, owners: int) -> None:
    if held is not None and held.role == OWNER and owners <= 1:
        raise Conflict(f'Principal "{principal_id}" is the last owner of thread "{thread_id}".')
