"""The real server in a process of its own, to be stopped, killed and started again on the same port."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from tests.docs.ports import free_ports
from tests.faults.signals import send_signal

__all__ = ["ServerProcess"]

PATIENCE = 60.0


class ServerProcess:
    """`bubble serve` on 127.0.0.1. It ends with this process in any case."""

    def __init__(self, directory: Path) -> None:
        self.admin_token = secrets.token_urlsafe(32)
        self.port = free_ports(1)[0]  # a port that no connection is given while the server is down
        self._directory = directory
        self._process: asyncio.subprocess.Process | None = None

    @property
    def url(self) -> str:
        """Where it is, before and after a restart."""
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Starts it, on the port it had before, and waits until it listens."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("BUBBLE_")}
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "bubble.cli", "serve", "--json", "--until-stdin-ends"),
            *("--data", str(self._directory / "data"), "--port", str(self.port)),
            cwd=self._directory,
            env={**kept, "BUBBLE_ADMIN_TOKEN": self.admin_token, "BUBBLE_LOG__REQUESTS": "false"},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        assert self._process.stdout is not None
        with anyio.fail_after(PATIENCE):
            line = await self._process.stdout.readline()
        assert line, "The server ended before it listened."
        self.port = json.loads(line)["port"]

    async def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Ends it with a signal; its exit code."""
        assert self._process is not None
        send_signal(self._process, how)
        with anyio.fail_after(PATIENCE):
            await self._process.communicate()
        assert self._process.returncode is not None
        return self._process.returncode

    @classmethod
    @asynccontextmanager
    async def running(cls, directory: Path) -> AsyncIterator[ServerProcess]:
        """A server for as long as the block lasts."""
        server = cls(directory)
        try:
            await server.start()
            yield server
        finally:
            with anyio.CancelScope(shield=True):
                await server.stop(signal.SIGKILL)
