"""What creating and changing a thread means, the same on every backend.

Pure: a backend asks within its transaction and applies the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import UNSET

from bubble.protocol.errors import Conflict, InvalidRequest
from bubble.protocol.events import EncodedEvent, ThreadTitleUpdated, encode_event
from bubble.protocol.identifiers import SERVER_PRINCIPAL, check_name
from bubble.protocol.resources import JoinPolicy
from bubble.store.grants import OWNER, participant_event
from bubble.store.records import NewThread, Participant, ThreadChanges

__all__ = ["Seat", "ThreadUpdate", "plan_seats", "plan_update", "thread_id_taken"]


@dataclass(frozen=True, slots=True)
class Seat:
    """A first grant on a new thread, and the event that announces it (None: the role cannot append)."""

    participant: Participant
    granted_by: str
    event: EncodedEvent | None


@dataclass(frozen=True, slots=True)
class ThreadUpdate:
    """What an update writes: the event of a new title, and whether the grant version rises (the join policy changed)."""

    event: EncodedEvent | None
    policy_changed: bool


def thread_id_taken(thread_id: str) -> Conflict:
    """The answer for an id that a thread has or once had."""
    return Conflict(f'The thread id "{thread_id}" is taken.')


def plan_seats(new: NewThread) -> Sequence[Seat]:
    """The first grants of a new thread in order: its creator as owner, then each participant (protocol, section 5).

    `InvalidRequest` for an id that is none, and naming a participant that is given twice (the creator counts). Whether the
    principals exist is for the backend to see.
    """
    check_name(new.thread_id, path="threadId")
    by = new.creator if new.creator is not None else SERVER_PRINCIPAL
    seats = [] if new.creator is None else [Participant(principal_id=new.creator, role=OWNER, appends=True)]
    seated = {seat.principal_id for seat in seats}
    for index, participant in enumerate(new.participants):
        if participant.principal_id in seated:
            raise InvalidRequest(f'`$.participants[{index}]` gives "{participant.principal_id}" a second role.')
        seated.add(participant.principal_id)
        seats.append(participant)
    return [_seat(participant, by) for participant in seats]


def _seat(participant: Participant, by: str) -> Seat:
    event = participant_event(participant.principal_id, by=by, could_append=False, can_append=participant.appends)
    return Seat(participant, by, event)


def plan_update(title: str | None, join_policy: JoinPolicy, changes: ThreadChanges, *, by: str) -> ThreadUpdate:
    """What `changes` writes on a thread that has `title` and `join_policy` now. A cleared title is announced as an empty one."""
    event = None
    if changes.title is not UNSET and changes.title != title:
        announced = ThreadTitleUpdated(by_principal_id=by, title=changes.title or "")
        event = EncodedEvent(announced, encode_event(announced))
    return ThreadUpdate(
        event=event,
        policy_changed=changes.join_policy is not UNSET and changes.join_policy != join_policy,
    )
