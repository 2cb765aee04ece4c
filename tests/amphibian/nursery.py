"""Connectors that are started one after the other, to be killed: forked from a process that has everything loaded.

That is quicker than a new interpreter, and a child is killed like any other process.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from tests.amphibian.processes import PATIENCE

__all__ = ["Nursery", "fork_for_each_line", "nursery"]

ROOT = Path(__file__).parents[2]


def fork_for_each_line(work: Callable[[], None]) -> None:
    """Does `work` in a child of its own for each line on standard input; says the child's process id, and then that it ended."""
    for _ in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                work()
            finally:
                os._exit(0)
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()
        os.waitpid(child, 0)
        sys.stdout.write("ended\n")
        sys.stdout.flush()


class Nursery:
    """Starts connectors one after the other, and kills them."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._child: int | None = None

    async def start(self) -> int:
        """A new one; its process id."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        self._child = int(await self._line())
        return self._child

    async def end(self, child: int, how: signal.Signals = signal.SIGKILL) -> None:
        """Sends it a signal and waits for its end."""
        os.kill(child, how)
        assert await self._line() == "ended"
        self._child = None

    async def close(self) -> None:
        """Kills what is left."""
        if self._child is not None:
            await self.end(self._child)
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()

    async def _line(self) -> str:
        assert self._process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            return (await self._process.stdout.readline()).decode().strip()


@asynccontextmanager
async def nursery(module: str, *arguments: str) -> AsyncIterator[Nursery]:
    """A nursery for as long as the block lasts; `module` is a program that calls `fork_for_each_line`."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module, *arguments),
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith("BUBBLE_")},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    found = Nursery(process)
    try:
        yield found
    finally:
        await found.close()
