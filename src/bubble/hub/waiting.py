"""A page held open until there is something for it (`waitMs`)."""

from __future__ import annotations

import asyncio

from bubble.hub.tail import Tail
from bubble.protocol.errors import BubbleError
from bubble.store.commands import Guard

__all__ = ["HeldPage"]


class HeldPage:
    """A member of a tail that waits for one seq."""

    __slots__ = ("_from_seq", "_outcome", "_tail", "guard")

    def __init__(self, tail: Tail, from_seq: int, guard: Guard) -> None:
        self.guard = guard
        self._tail = tail
        self._from_seq = from_seq
        self._outcome: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def released(self) -> None:
        """There is more; perhaps enough."""
        if self._tail.released >= self._from_seq and not self._outcome.done():
            self._outcome.set_result(None)

    def close(self, error: BubbleError) -> None:
        """The caller may not read the thread any longer."""
        if not self._outcome.done():
            self._outcome.set_exception(error)
            self._outcome.exception()  # it may never be awaited: the caller may be leaving already

    async def wait(self, seconds: float) -> None:
        """Until the seq is there, the member is closed (raises), or the time is over."""
        self.released()
        await asyncio.wait([self._outcome], timeout=seconds)
        if self._outcome.done():
            await self._outcome
