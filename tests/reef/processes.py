"""`bubble reef` and `bubble mock-agent` as processes of their own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from tests.amphibian.processes import PATIENCE, BotProcess, Scene, write
from tests.docs.ports import free_ports
from tests.faults.signals import send_signal
from tests.reef.raw_agent import RawAgent

__all__ = ["MockProcess", "ReefProcess", "reef_on"]

_COMMAND = (sys.executable, "-m", "bubble.cli")


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("BUBBLE_")}


class ReefProcess(BotProcess):
    """`bubble reef`."""

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            *(*_COMMAND, "reef", "--config", str(self._config)),
            env=_environment(),
            stderr=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
        )


class MockProcess:
    """`bubble mock-agent`, on the same port after every start."""

    def __init__(self, *, pace: float) -> None:
        self.port = free_ports(1)[0]
        self._pace = pace
        self._process: asyncio.subprocess.Process | None = None

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Starts it, and waits until it listens."""
        self._process = await asyncio.create_subprocess_exec(
            *(*_COMMAND, "mock-agent", "--json", "--until-stdin-ends"),
            *("--port", str(self.port), "--pace", str(self._pace)),
            env=_environment(),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        assert self._process.stdout is not None
        with anyio.fail_after(PATIENCE):
            line = await self._process.stdout.readline()
        assert json.loads(line)["url"] == self.url

    async def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Ends it with a signal; the exit code."""
        assert self._process is not None
        send_signal(self._process, how)
        with anyio.fail_after(PATIENCE):
            await self._process.communicate()
        assert self._process.returncode is not None
        return self._process.returncode

    @classmethod
    @asynccontextmanager
    async def running(cls, *, pace: float = 0.005) -> AsyncIterator[MockProcess]:
        """A mock agent for as long as the block lasts."""
        mock = cls(pace=pace)
        try:
            await mock.start()
            yield mock
        finally:
            with anyio.CancelScope(shield=True):
                await mock.stop(signal.SIGKILL)


def configured(here: Scene, mock: MockProcess | RawAgent, **a2a: object) -> Path:
    """The scene's configuration, for reef."""
    more = "".join(f"{name} = {json.dumps(value)}\n" for name, value in a2a.items())
    path = here.config.with_name("reef.toml")
    write(path, f'{here.config.read_text("utf-8")}\n[a2a]\nagentCardUrl = "{mock.url}"\n{more}')
    return path


async def reef_on(here: Scene, mock: MockProcess) -> ReefProcess:
    """Reef, attending. It ends with the scene in any case."""
    reef = ReefProcess(configured(here, mock))
    await reef.start()
    here.stack.push_async_callback(reef.stop, signal.SIGKILL)
    await reef.hears("is attending")
    return reef
