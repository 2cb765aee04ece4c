"""Hearing what is said to runs: one subscription per thread, for all runs of this client on it that listen.

*Theory of operation.* The subscription carries live events only. A run that begins to listen is first put among the listeners, then the
subscription is opened if it is not there, and then what was said since the run's start is read once from the history. What was committed
before it was among the listeners is therefore read, what came later is delivered, and what is both is heard twice, which does no harm.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable

from bubble.client.hearing import Hearing, may_concern_a_run
from bubble.client.subscriptions import ThreadSubscription
from bubble.client.supervision import end_task
from bubble.protocol.events import SequencedEvent
from bubble.protocol.identifiers import MAX_SEQ

__all__ = ["Listening"]

_logger = logging.getLogger("bubble.client")


class _Watched:
    def __init__(self) -> None:
        self.hearings: set[Hearing] = set()
        self.task: asyncio.Task[None] | None = None
        self.is_open: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class Listening:
    """Listens on threads for the events that speak to runs, each for as long as somebody needs it."""

    def __init__(
        self,
        subscribe: Callable[[str, int], ThreadSubscription],
        read: Callable[[str, int], AsyncIterator[SequencedEvent]],
    ) -> None:
        self._subscribe = subscribe
        self._read = read
        self._threads: dict[str, _Watched] = {}

    async def begin(self, thread_id: str, hearing: Hearing, *, since: int | None = None) -> None:
        """Lets the run hear what is said from now on, and from seq `since` on where it is given.

        Raises what subscribing raises: `NotFound` without `events.subscribe`, `Unavailable` if there is no connection.
        """
        watched = self._threads.setdefault(thread_id, _Watched())
        hearing.error = None
        watched.hearings.add(hearing)
        try:
            await self._open(thread_id, watched)
            if since is not None:
                await self._catch_up(thread_id, hearing, since)
        except BaseException:
            await self.end(thread_id, hearing)
            raise

    async def end(self, thread_id: str, hearing: Hearing) -> None:
        """Lets the run hear no more. The subscription ends with the last one that listens."""
        watched = self._threads.get(thread_id)
        if watched is None or hearing not in watched.hearings:
            return
        watched.hearings.remove(hearing)
        if not watched.hearings:
            del self._threads[thread_id]
            if watched.task is not None:
                await end_task(watched.task)

    async def _open(self, thread_id: str, watched: _Watched) -> None:
        if watched.task is None or watched.task.done():
            watched.is_open = asyncio.get_running_loop().create_future()
            watched.task = asyncio.create_task(self._listen(thread_id, watched, watched.is_open))
        await asyncio.shield(watched.is_open)

    async def _listen(self, thread_id: str, watched: _Watched, is_open: asyncio.Future[None]) -> None:
        try:
            async with self._subscribe(thread_id, MAX_SEQ) as events:
                is_open.set_result(None)
                async for stored in events:
                    if may_concern_a_run(stored.text):
                        for hearing in watched.hearings:
                            hearing.hear(stored)
        except Exception as error:  # noqa: BLE001 - raised by whoever waits for something to be heard
            if (
                is_open.done()
            ):  # whoever may no longer read the thread may no longer append either: the run's own appends tell
                _logger.warning("Runs on thread %s hear nothing any longer: %s", thread_id, error)
                for hearing in watched.hearings:
                    hearing.fail(error)
            else:
                is_open.set_exception(error)
                is_open.exception()  # there may be nobody left who waits for it

    async def _catch_up(self, thread_id: str, hearing: Hearing, since: int) -> None:
        async for stored in self._read(thread_id, since):
            if may_concern_a_run(stored.text):
                hearing.hear(stored)
