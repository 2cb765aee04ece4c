"""What a store tells its listeners after a commit, in commit order.

A listener is called on the event loop with the notices of one commit. Another process's commit may arrive as a `Committed` without events
(its reader fetches them) or, where a doorbell was lost, only as a different answer of `positions`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import msgspec

from bubble.protocol.resources import Grant

__all__ = [
    "Committed",
    "CredentialsChanged",
    "GrantChange",
    "GrantChanged",
    "Listener",
    "Notice",
    "Position",
    "ThreadDeleted",
]

GrantChange = Literal["granted", "updated", "revoked"]


@dataclass(frozen=True, slots=True)
class Position:
    """Where a thread stands: its head (0: empty) and the version of its grants, read together.

    `grant_version` rises with every change of a grant of the thread or of the thread's join policy.
    """

    head: int
    grant_version: int


class Committed(msgspec.Struct, frozen=True, gc=False):
    """A thread's new position. `events` are the wire texts of the last seqs up to `head`; empty if not known here.

    All of `events` were committed under `grant_version`. So one commit that appends, revokes and appends again gives two of these, and
    a change of grants without an event gives one without events.
    """

    thread_id: str
    head: int
    grant_version: int
    events: Sequence[bytes] = ()


@dataclass(frozen=True, slots=True)
class ThreadDeleted:
    """The thread is gone for good."""

    thread_id: str


@dataclass(frozen=True, slots=True)
class GrantChanged:
    """One principal's grant on one thread is new, has another role, or is gone (`grant` is then the last one).

    Told before the `Committed` that carries the new grant version.
    """

    change: GrantChange
    grant: Grant


@dataclass(frozen=True, slots=True)
class CredentialsChanged:
    """Tokens or sessions of a principal were revoked, or the principal was disabled: look again now."""

    principal_id: str


Notice: TypeAlias = Committed | ThreadDeleted | GrantChanged | CredentialsChanged
Listener: TypeAlias = Callable[[Sequence[Notice]], None]
