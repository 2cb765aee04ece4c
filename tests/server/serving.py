"""A server of its own for a test: in this process, or in one that can be killed; and a bare connection to it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2

from bubble.server.running import Started, serve
from bubble.server.settings import Settings
from tests.faults.signals import send_signal
from tests.server.world import ADMIN_TOKEN

__all__ = ["BEARER", "Child", "a_child", "parsed", "serving", "talk"]

CHILD = Path(__file__).with_name("child.py")
BEARER = {"Authorization": f"Bearer {ADMIN_TOKEN}"}


@asynccontextmanager
async def serving(**settings: object) -> AsyncIterator[Started]:
    """A server in this process, which is cancelled at the end."""
    values = {"store": "memory:", "port": 0, "admin_token": ADMIN_TOKEN, "log": {"requests": False}, **settings}
    up: asyncio.Future[Started] = asyncio.get_running_loop().create_future()
    running = asyncio.create_task(serve(Settings(**values), on_started=up.set_result))  # type: ignore[arg-type]

    def ended(task: asyncio.Task[None]) -> None:
        if not up.done():
            up.set_exception(task.exception() or RuntimeError("it ended"))

    running.add_done_callback(ended)
    try:
        async with asyncio.timeout(10):
            started = await up
        yield started
    finally:
        running.cancel()
        async with asyncio.timeout(12):
            with contextlib.suppress(asyncio.CancelledError):
                await running


@dataclass(frozen=True, kw_only=True)
class Child:
    """A server in a process of its own."""

    process: asyncio.subprocess.Process
    url: str
    token: str

    async def stop(self, number: int = signal.SIGTERM) -> int:
        """Sends the signal; the exit code, which must come within 10 s."""
        send_signal(self.process, number)
        async with asyncio.timeout(10):
            return await self.process.wait()

    def client(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(base_url=self.url, headers={"Authorization": f"Bearer {self.token}"})


@asynccontextmanager
async def a_child(**settings: object) -> AsyncIterator[Child]:
    values = {"port": 0, "store": "memory:", "admin_token": ADMIN_TOKEN, **settings}
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(CHILD), json.dumps(values), stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(30):
            line = json.loads(await process.stdout.readline())
        yield Child(process=process, url=line["url"], token=line["token"] or ADMIN_TOKEN)
    finally:
        send_signal(process, signal.SIGKILL)
        await process.wait()


async def talk(port: int, *pieces: bytes) -> bytes:
    """Sends the pieces on a bare connection; everything that comes back until it is closed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        async with asyncio.timeout(10):
            return await reader.read()
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


def parsed(answer: bytes) -> tuple[int, dict[str, str], dict[str, object]]:
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    return int(status.split(" ")[1]), headers, json.loads(body)
