"""Tasks with an owner: nothing runs that nobody waits for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine

__all__ = ["TaskOwner"]

_log = logging.getLogger("bubble")


class TaskOwner:
    """Owns tasks that come and go: keeps them alive, logs what one died of, ends all on `close`."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def spawn(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        """Starts `work`."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a background task failed", exc_info=error)

    async def settled(self, count: int) -> None:
        """Returns once no more than `count` tasks are left."""
        while len(self._tasks) > count:
            await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)

    async def close(self) -> None:
        """Cancels what still runs and waits for it."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
