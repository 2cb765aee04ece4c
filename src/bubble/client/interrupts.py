"""Who asked a run to stop: one subscription per thread, for all runs of this client on it that want to know."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from bubble.client.subscriptions import ThreadSubscription
from bubble.client.supervision import end_task
from bubble.protocol.errors import BubbleError
from bubble.protocol.events import BubbleEvent, RunInterruptRequested
from bubble.protocol.identifiers import MAX_SEQ

__all__ = ["InterruptWatch"]

_MARK = b'"type":"run_interrupt_requested"'
_logger = logging.getLogger("bubble.client")


class _Watched:
    def __init__(self) -> None:
        self.runs: dict[str, asyncio.Event] = {}
        self.users = 0
        self.opening = asyncio.Lock()
        self.task: asyncio.Task[None] | None = None


class InterruptWatch:
    """Watches threads for `run_interrupt_requested`, each for as long as somebody needs it."""

    def __init__(self, subscribe: Callable[[str, int], ThreadSubscription]) -> None:
        self._subscribe = subscribe
        self._threads: dict[str, _Watched] = {}

    @asynccontextmanager
    async def watching(self, thread_id: str, run_id: str, interrupted: asyncio.Event) -> AsyncIterator[None]:
        """Sets `interrupted` when the run is asked to stop. Enter it before `run_started` is appended: then no request is missed.

        Raises what subscribing raises: `NotFound` without `events.subscribe`, `Unavailable` if there is no connection.
        """
        watched = self._threads.setdefault(thread_id, _Watched())
        watched.users += 1
        watched.runs[run_id] = interrupted
        try:
            await self._open(thread_id, watched)
            yield
        finally:
            watched.users -= 1
            del watched.runs[run_id]
            if watched.users == 0:
                del self._threads[thread_id]
                if watched.task is not None:
                    await end_task(watched.task)

    async def _open(self, thread_id: str, watched: _Watched) -> None:
        async with watched.opening:
            if watched.task is None or watched.task.done():
                is_open: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                watched.task = asyncio.create_task(self._listen(thread_id, watched, is_open))
                await is_open

    async def _listen(self, thread_id: str, watched: _Watched, is_open: asyncio.Future[None]) -> None:
        try:
            async with self._subscribe(thread_id, MAX_SEQ) as events:
                if not is_open.done():
                    is_open.set_result(None)
                async for stored in events:
                    if _MARK in stored.text:
                        _pass_on(stored.event, watched)
        except BubbleError as error:
            if not is_open.done():
                is_open.set_exception(error)
            else:  # whoever may no longer read the thread may no longer append either: the run's own appends tell
                _logger.warning("Interrupts of runs on thread %s are no longer heard: %s", thread_id, error)


def _pass_on(event: BubbleEvent, watched: _Watched) -> None:
    if isinstance(event, RunInterruptRequested) and event.run_id in watched.runs:
        watched.runs[event.run_id].set()
