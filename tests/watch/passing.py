"""Time that passes when a test says so: the event loop's own clock, moved."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Passing", "passing_time"]


class Passing:
    """How far the loop's clock is ahead of the machine's."""

    def __init__(self) -> None:
        self.ahead = 0.0

    async def by(self, seconds: float) -> None:
        """So much time goes by at once; whatever was due meanwhile happens."""
        self.ahead += seconds
        for _ in range(20):  # a timer, the task that it wakes, and what that one wakes
            await asyncio.sleep(0)


@contextmanager
def passing_time() -> Iterator[Passing]:
    """Moves the clock of the running loop for as long as the block lasts."""
    loop, passing = asyncio.get_running_loop(), Passing()
    of_the_machine = loop.time
    loop.time = lambda: of_the_machine() + passing.ahead  # type: ignore[method-assign]
    try:
        yield passing
    finally:
        del loop.time  # the class's own is back
