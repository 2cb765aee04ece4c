"""What a caller asks of a store: appends, and the guard that decides about them inside the store's transaction.

Values that come once per event are msgspec structs, which cost a sixth of a dataclass to make.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

import msgspec

from bubble.protocol.errors import BubbleError
from bubble.protocol.events import EncodedEvent, SequencedEvent
from bubble.protocol.resources import PrincipalKind

__all__ = ["AppendCommand", "AppendResult", "Appended", "Guard", "IdempotencyKey"]


class Guard(Protocol):
    """A caller's rights, as data that a backend can apply while it holds the transaction.

    The role that counts is the one committed at that moment, so a revocation that was committed first always wins, on any node.
    Its answers depend on nothing but what it is asked, so a backend may remember one while role and join policy stay the same.
    """

    @property
    def principal_id(self) -> str:
        """The caller."""

    @property
    def kind(self) -> PrincipalKind:
        """What the caller is; only a `user` decides on tool calls."""

    def require(self, capability: str, *, thread_id: str, role: str | None, join_policy: str) -> None:
        """Returns if the caller with `role` on the thread has `capability` there; raises `NotFound` or `Forbidden`."""

    def has(self, capability: str, *, thread_id: str, role: str | None) -> bool:
        """Whether the caller with `role` on the thread has `capability` there."""


class IdempotencyKey(msgspec.Struct, frozen=True, gc=False):
    """Makes a repeat of an append answer with the first result. `digest` is the SHA-256 of the request's bytes."""

    caller: str
    key: str
    digest: bytes


class Appended(msgspec.Struct, frozen=True, gc=False):
    """The stored events of one append, in order; `replayed` if an earlier append under the same key stored them."""

    events: Sequence[SequencedEvent]
    replayed: bool = False


AppendResult: TypeAlias = Appended | BubbleError


class AppendCommand(msgspec.Struct):
    """One append of one or several events: all or none, consecutive seqs, in order.

    `done` is called on the event loop, once, after the events are durable or with the reason why not; None where the caller does
    not care. With `failures_only` it is called for a refusal alone, so that a stream of appends costs no callback each. With
    `create` an unknown thread is created (embedded use); without it, it is `NotFound`.
    """

    thread_id: str
    events: Sequence[EncodedEvent]
    done: Callable[[AppendResult], None] | None = None
    guard: Guard | None = None
    idempotency: IdempotencyKey | None = None
    expected_head: int | None = None
    create: bool = False
    failures_only: bool = False
