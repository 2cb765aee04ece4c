"""Something that many want at the same time and that need be had only once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Generic, TypeVar

import anyio

__all__ = ["Shared"]

T = TypeVar("T")


class Shared(Generic[T]):
    """What `attempt` comes to. Whoever wants it while an attempt is under way waits for that one, and shares its failure, too.

    A success is kept; after a failure the next one who wants it begins another attempt. Nobody's cancellation ends the others' attempt.
    `close()` it.
    """

    def __init__(self, attempt: Callable[[], Coroutine[object, object, T]]) -> None:
        self._attempt = attempt
        self._trying: asyncio.Task[T] | None = None

    async def get(self) -> T:
        """The value. Raises what the attempt failed with."""
        if self._trying is None or _has_failed(self._trying):
            self._trying = asyncio.create_task(self._attempt())
            self._trying.add_done_callback(_has_failed)  # also where nobody waits any more
        return await asyncio.shield(self._trying)

    async def close(self) -> None:
        """Ends an attempt that is under way."""
        if self._trying is not None:
            self._trying.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait({self._trying})


def _has_failed(task: asyncio.Task[T]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)
