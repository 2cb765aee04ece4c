"""What the event loops of the load have in common."""

from __future__ import annotations

import gc
import resource
import select
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from bench.servers.process import Server

__all__ = ["Stalled", "Stopwatch", "polled", "timed"]

_PATIENCE: Final = 30.0


class Stalled(Exception):
    """Nothing came for so long that nothing will."""


def polled(poll: select.epoll, timeout: float = _PATIENCE) -> list[tuple[int, int]]:
    """What is ready; `Stalled` if nothing gets ready within the patience of a measurement."""
    ready = poll.poll(timeout)
    if not ready and timeout >= _PATIENCE:
        raise Stalled(f"No server did anything for {_PATIENCE:g} s.")
    return ready


class Stopwatch:
    """Seconds of the clock, and what each side used of the processors meanwhile."""

    def __init__(self, server: Server | None) -> None:
        self._server = server
        self._server_began = _processor_seconds_of(server)
        self._load_began = _processor_seconds()
        self._began = time.perf_counter()
        self.seconds = 0.0
        self._server_used = 0.0
        self._load_used = 0.0

    def stop(self) -> None:
        """The end of the measurement."""
        self.seconds = time.perf_counter() - self._began
        self._load_used = _processor_seconds() - self._load_began
        self._server_used = _processor_seconds_of(self._server) - self._server_began

    def busy(self) -> dict[str, float]:
        """The share of one processor that server and load each used: which of them the figure is about."""
        return {"server_busy": self._server_used / self.seconds, "load_busy": self._load_used / self.seconds}


def _processor_seconds_of(server: Server | None) -> float:
    return 0.0 if server is None else server.processor_seconds()


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


@contextmanager
def timed(server: Server | None) -> Iterator[Stopwatch]:
    """Times a block, without pauses of this process's garbage collector in it."""
    gc.collect()
    gc.disable()
    watch = Stopwatch(server)
    try:
        yield watch
    finally:
        watch.stop()
        gc.enable()
