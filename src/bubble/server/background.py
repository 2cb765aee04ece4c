"""What a running server does by itself: forgets what is over, finishes lost runs, notices when it is late."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from bubble.hub.tasks import TaskOwner
from bubble.protocol.errors import BubbleError
from bubble.server.logs import logger
from bubble.server.services import Services

__all__ = ["start_background_work"]

PURGE_SECONDS = 60.0
LOST_RUNS_SECONDS = 30.0
LAG_SECONDS = 1.0
_HOUR_MS = 3_600_000


def start_background_work(services: Services) -> TaskOwner:
    """Starts everything; `close()` what comes back."""
    owner = TaskOwner()
    owner.spawn(_regularly(PURGE_SECONDS, "purge", lambda: purge(services)))
    lost_after = services.settings.runs.lost_after
    if lost_after:
        interval = min(LOST_RUNS_SECONDS, lost_after / 2)
        owner.spawn(_regularly(interval, "lost runs", lambda: finish_lost_runs(services)))
    owner.spawn(_watch_lag(services))
    return owner


async def purge(services: Services) -> None:
    """Forgets keys past their time and spent credentials."""
    await services.store.purge(idempotency_ms=services.limits.idempotency_hours * _HOUR_MS)


async def finish_lost_runs(services: Services) -> None:
    """Finishes the runs that a crash left open (protocol, section 1).

    Who is connected here says so first: after a clock that leapt, or a machine that slept, what was said before has run out.
    """
    await services.hub.renew_presence()
    idle_since_ms = services.clock() - round(services.settings.runs.lost_after * 1000)
    finished = await services.store.finish_lost_runs(idle_since_ms=idle_since_ms)
    if finished:
        logger.warning("finished lost runs", runs=finished)


async def _regularly(seconds: float, name: str, work: Callable[[], Awaitable[None]]) -> None:
    while True:
        await asyncio.sleep(seconds)
        try:
            await work()
        except BubbleError as error:  # the store is out of reach: the next turn tries again
            logger.warning("background work failed", work=name, error=error.message)


async def _watch_lag(services: Services) -> None:
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + LAG_SECONDS
        await asyncio.sleep(LAG_SECONDS)
        services.metrics.loop_lag(max(0.0, loop.time() - due))
