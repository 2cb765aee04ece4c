"""`ThreadDriver`: what keeps one thread attended to (spec 5, "Resuming on restart").

*Theory of operation.* A life begins with the checkpoint and one fixed head: the window up to it is replayed, then what comes after it is
followed, each event handed to the relay before the next one is read. Whatever breaks a life (the server out of reach for long, above all)
ends with the relay's work unwound and is followed by another one, which begins in the same way. So there is one way of recovering, and a
restart of the process is only a special case of it.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Final

import anyio

from bubble.amphibian.forward import AbortReason
from bubble.amphibian.life import DriverServices, Life
from bubble.amphibian.relay import RelayStatistics
from bubble.amphibian.store import ThreadKey
from bubble.protocol.errors import BubbleError, Forbidden, NotFound, Unauthenticated

__all__ = ["DriverServices", "ThreadDriver"]

# A life that was longer than so many seconds is no sign of a lasting trouble.
_LONG_LIFE: Final = 60.0

_logger = logging.getLogger("bubble.amphibian")


class ThreadDriver:
    """`await run()` in a task; `end` it from anywhere. `live` is set while it follows the thread."""

    def __init__(self, thread_id: str, services: DriverServices) -> None:
        self.thread_id = thread_id
        self.live = asyncio.Event()
        self._services = services
        self._key = ThreadKey(server=services.bubble.base_url, principal_id=services.own_id, thread_id=thread_id)
        self._ending: AbortReason | None = None
        self._ends = asyncio.Event()
        self._life: Life | None = None
        self._living: asyncio.Task[None] | None = None

    @property
    def has_ended(self) -> bool:
        """Whether it was told to end."""
        return self._ending is not None

    def statistics(self) -> RelayStatistics | None:
        """The relay's, of the present life; None between two lives."""
        return None if self._life is None or self._life.relay is None else self._life.relay.statistics()

    def end(self, reason: AbortReason) -> None:
        """Unwinds what is under way, because of `reason`, and ends."""
        if self._ending is None:
            self._ending = reason
            self._ends.set()
            if self._living is not None:
                self._living.cancel()

    async def run(self) -> None:
        """Lives until ended, or until the bot may no longer be here. Raises `Unauthenticated` where its token is refused."""
        failures = 0
        while self._ending is None:
            began = asyncio.get_running_loop().time()
            try:
                await self._live()
            except (NotFound, Forbidden) as error:
                _logger.info("No longer on thread %s: %s", self.thread_id, error)
                return
            except Unauthenticated:
                raise
            except Exception as error:
                _logger.warning(
                    "Beginning anew on thread %s: %s",
                    self.thread_id,
                    error,
                    exc_info=not isinstance(error, BubbleError),
                )
            failures = 0 if asyncio.get_running_loop().time() - began > _LONG_LIFE else failures + 1
            with suppress(TimeoutError):
                async with asyncio.timeout(self._services.backoff.wait(failures)):
                    await self._ends.wait()

    async def _live(self) -> None:
        """One life. Raises what it failed with; returns where it was ended."""
        life = self._life = Life(self._key, self._services, live=self.live)
        living = self._living = asyncio.create_task(life.run())
        try:
            await asyncio.wait({living, life.failed}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.live.clear()
            living.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait({living})
                await life.close(self._ending or "stopped")
            self._life = self._living = None
        for ended in (life.failed, living):
            if ended.done() and not ended.cancelled():
                ended.result()
