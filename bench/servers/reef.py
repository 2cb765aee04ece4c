"""`bubble reef` as a child process, and an A2A agent in this one, which knows when it was asked and when it spoke."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from bench.servers.process import Server

__all__ = ["PIECES", "TimedAgent", "reef_process"]

PIECES: Final = 10
_STOP_SECONDS: Final = 20.0
_CONFIG: Final = """\
[bubble]
url = "http://{host}:{port}"
token = "{token}"
principalId = "{bot}"
[a2a]
agentCardUrl = "{agent}"
[store]
path = "{store}"
"""


class TimedAgent:
    """Answers each message with `PIECES` pieces, the next one when the last one was heard. `asked` and `spoke` are moments, in seconds."""

    def __init__(self) -> None:
        self.asked = 0.0
        self.spoke: list[float] = []
        self.heard: asyncio.Queue[None] = asyncio.Queue()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        """Its URL."""
        # By its protocol too: a socket that does not know that it is TCP's keeps Nagle's delay.
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.bind(("127.0.0.1", 0))
        self._url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        async with await asyncio.start_server(self._serve, sock=listening):
            yield self._url

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                if head.startswith(b"GET"):
                    _write(writer, "application/json", self._card())
                    _end(writer)
                    continue
                length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
                await reader.readexactly(int(length))
                self.asked, self.spoke = time.perf_counter(), []
                await self._answer(writer)
        writer.close()

    async def _answer(self, writer: asyncio.StreamWriter) -> None:
        _write(writer, "text/event-stream", b"")
        for number in range(PIECES):
            artifact = {"artifactId": "a", "parts": [{"text": f"Piece {number}. "}]}
            self.spoke.append(time.perf_counter())
            _event(writer, {"artifactUpdate": {"taskId": "t", "artifact": artifact, "append": number > 0}})
            await self.heard.get()
        _event(writer, {"statusUpdate": {"taskId": "t", "status": {"state": "TASK_STATE_COMPLETED"}}})
        _end(writer)

    def _card(self) -> bytes:
        interface = {"url": self._url, "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}
        return json.dumps({"capabilities": {"streaming": True}, "supportedInterfaces": [interface]}).encode()


def _write(writer: asyncio.StreamWriter, media_type: str, body: bytes) -> None:
    writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
    if body:
        writer.write(b"%x\r\n%b\r\n" % (len(body), body))


def _event(writer: asyncio.StreamWriter, payload: object) -> None:
    event = f"data: {json.dumps(payload)}\n\n".encode()
    writer.write(b"%x\r\n%b\r\n" % (len(event), event))


def _end(writer: asyncio.StreamWriter) -> None:
    writer.write(b"0\r\n\r\n")


@asynccontextmanager
async def reef_process(server: Server, *, bot: str, token: str, agent: str, directory: Path) -> AsyncIterator[None]:
    """A reef that attends, for as long as the block lasts."""
    config = directory / "reef.toml"
    where = {"host": server.host, "port": server.port, "token": token, "bot": bot}
    text = _CONFIG.format(**where, agent=agent, store=directory / "reef.db")
    await asyncio.to_thread(config.write_text, text, encoding="utf-8")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bubble.cli", "reef", "--config", str(config), "--json", "--until-stdin-ends"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert await process.stdout.readline(), "Reef did not start."
        yield
    finally:
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), _STOP_SECONDS)
        except TimeoutError:
            process.kill()
            await process.wait()
