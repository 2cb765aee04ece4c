"""The node's own way to read along with a thread, for what it makes of the log and shares among readers (assembled messages).

An `Along` is a member of the tail like a subscription: a cursor that its user keeps, and a bell. It reads on nobody's behalf, so nothing is
withheld from it but what the tail has not released; whoever is shown something made of it needs a subscription of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from bubble.hub.encodings import WIRE_TEXTS
from bubble.hub.tail import Tail
from bubble.protocol.errors import BubbleError, thread_not_found
from bubble.protocol.identifiers import SERVER_PRINCIPAL
from bubble.protocol.resources import PrincipalKind
from bubble.store.commands import Guard

__all__ = ["NODE", "Along"]


class _Node:
    """The rights of the node itself, which reads every thread."""

    @property
    def principal_id(self) -> str:
        return SERVER_PRINCIPAL

    @property
    def kind(self) -> PrincipalKind:
        return "system"

    def require(self, capability: str, *, thread_id: str, role: str | None, join_policy: str) -> None: ...

    def has(self, capability: str, *, thread_id: str, role: str | None) -> bool:  # noqa: ARG002 - the contract's
        return True


NODE: Guard = _Node()


class Along:
    """Reads along with one thread. Made by `Hub.read_along`; `close()` it."""

    guard = NODE

    def __init__(self, tail: Tail, *, release: Callable[[Tail], None]) -> None:
        self._tail = tail
        self._release = release
        self._bell = asyncio.Event()
        self._error: BubbleError | None = None

    @property
    def head(self) -> int:
        """The last seq that may be read."""
        return self._tail.released

    async def beyond(self, seq: int) -> None:
        """Returns once there is an event after `seq`. Raises what ended the tail: the thread was deleted, or the store is out of reach."""
        while self._error is None and self.head <= seq:
            self._bell.clear()
            await self._bell.wait()
        if self._error is not None:
            raise self._error

    async def read(self, from_seq: int) -> Sequence[bytes]:
        """The wire texts from `from_seq`, which must not be beyond the head: a slice, at least one. Raises what the store raises."""
        chunk = self._tail.chunk(WIRE_TEXTS, from_seq)
        if chunk is None:
            chunk = await self._tail.read(WIRE_TEXTS, from_seq)
        if chunk is None:
            raise self._error or thread_not_found(self._tail.thread_id)
        return chunk.pieces

    def released(self) -> None:
        """There is more."""
        self._bell.set()

    def close(self, error: BubbleError | None = None) -> None:
        """Reads no longer: the user is done, or the tail is. Idempotent."""
        self._error = self._error or error
        self._tail.members.discard(self)
        self._release(self._tail)
        self._bell.set()
