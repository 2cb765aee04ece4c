"""A connector as a child process, with an agent that tells when it was called and how long its words took.

It obeys lines on its standard input: `await N` is answered once N threads are attended to. It stops when its input ends.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.servers.process import Server
from bubble.amphibian import AmphibianStore, Connector, Reply, Turn
from bubble.client import BubbleConnection

__all__ = ["BOT", "CHUNKS", "ConnectorProcess", "connector_process"]

BOT: Final = "bot"
CHUNKS: Final = 10
_STOP_SECONDS: Final = 20.0
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_TICKS: Final = os.sysconf("SC_CLK_TCK")


class Telling:
    """Says a few words, each durable before the next, and then the times: `called`, and how long each word took, in seconds."""

    async def respond(self, turn: Turn, reply: Reply) -> None:
        called = time.perf_counter()
        taken = []
        for _ in range(CHUNKS):
            began = time.perf_counter()
            await reply.run.text("Some words. ")
            await reply.run.flush()
            taken.append(time.perf_counter() - began)
        await reply.run.event("times", {"question": turn.text, "called": called, "taken": taken})


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorProcess:
    """A running connector."""

    process: subprocess.Popen[str]

    def attends(self, threads: int) -> None:
        """Returns once it attends to so many threads."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"await {threads}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "attending\n", "The connector ended."

    def resident_bytes(self) -> int:
        """How much memory its process holds."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii").split()[1]) * _PAGE

    def processor_seconds(self) -> float:
        """What its process has used of the processors so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS


@contextmanager
def connector_process(server: Server, token: str, directory: Path) -> Iterator[ConnectorProcess]:
    """A connector of the principal `BOT` for as long as the block lasts, with a store of its own."""
    settings = {"url": f"http://{server.host}:{server.port}", "token": token, "store": str(directory / "connector.db")}
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.servers.connector", json.dumps(settings)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).resolve().parents[2],
    )
    try:
        yield ConnectorProcess(process=process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stdout is not None
        process.stdout.close()


async def _run(url: str, token: str, store: str) -> None:
    stop = asyncio.Event()
    async with BubbleConnection(url, token=token) as bubble, await AmphibianStore.open(store) as kept:
        connector = Connector(Telling(), bubble=bubble, principal_id=BOT, store=kept)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(connector.run(stop=stop))
            await _obey(connector)
            stop.set()


async def _obey(connector: Connector) -> None:
    while line := await asyncio.to_thread(sys.stdin.readline):
        wanted = int(line.split()[1])
        while sum(driver.live.is_set() for driver in connector.drivers.values()) < wanted:  # noqa: ASYNC110 - no event says it
            await asyncio.sleep(0.01)
        sys.stdout.write("attending\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(_run(**json.loads(sys.argv[1])))
