"""A WebSocket server on 127.0.0.1 that plays a script per connection: what a client meets on a bad day, at will."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TypeAlias

import anyio
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from bubble.client import Backoff, BubbleConnection
from bubble.client.tokens import TokenProvider
from bubble.protocol.events import sequence

__all__ = ["QUICK", "Dialogue", "Peer", "Script", "stored"]

FIRST_TOKEN = "t-1"
QUICK = Backoff(first=0.001, longest=0.01)
PATIENCE = 10.0
WHEN = "2026-05-06T12:34:56.789Z"


def stored(seq: int, *, type_: str = "run_started") -> bytes:
    """A stored event."""
    text = b'{"type":"%s","principalId":"p","runId":"r%d"}' % (type_.encode(), seq)
    return sequence(text, seq=seq, created_at=WHEN)


class Dialogue:
    """The server's side of one connection."""

    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection

    @property
    def bearer(self) -> str:
        """The token that the client came with."""
        request = self._connection.request
        assert request is not None
        return request.headers["Authorization"].removeprefix("Bearer ")

    async def expect(self, type_: str) -> dict[str, object]:
        """The next frame, which has to be of this type."""
        with anyio.fail_after(PATIENCE):
            frame: dict[str, object] = json.loads(await self._connection.recv())
        assert frame["type"] == type_, frame
        return frame

    async def send(self, text: bytes) -> None:
        """One frame as it is."""
        await self._connection.send(text, text=True)

    async def say(self, type_: str, **members: object) -> None:
        """One frame."""
        await self.send(json.dumps({"type": type_, **members}).encode())

    async def events(self, thread_id: str, *seqs: int) -> None:
        """Events of a thread."""
        for seq in seqs:
            await self.send(b'{"type":"thread.event","threadId":"%s","event":%s}' % (thread_id.encode(), stored(seq)))

    async def open(self, thread_id: str = "t", *, through: int = 0) -> int:
        """Waits for a subscribe to the thread and confirms it; where the client begins."""
        frame = await self.expect("thread.subscribe")
        assert frame["threadId"] == thread_id
        await self.say("thread.subscription_opened", threadId=thread_id, throughSeq=through)
        from_seq = frame.get("fromSeq", 1)
        assert isinstance(from_seq, int)
        return from_seq

    async def close(self, code: int, reason: str = "") -> None:
        """Closes with a code."""
        await self._connection.close(code, reason)

    def cut(self) -> None:
        """Breaks the connection off, without a word."""
        self._connection.transport.abort()

    async def until_gone(self) -> None:
        """Waits until the client has left."""
        with anyio.fail_after(PATIENCE):
            await self._connection.wait_closed()


Script: TypeAlias = Callable[[Dialogue], Awaitable[None]]


class Peer:
    """Plays the first script to the first connection, and so on; a connection more than there are scripts fails the test."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.bearers: list[str] = []
        self.failures: list[BaseException] = []
        self.refusals: list[HTTPStatus] = []
        self._scripts: list[Script] = []
        self._played = asyncio.Event()
        self._open = 0

    def client(self, token: TokenProvider = FIRST_TOKEN) -> BubbleConnection:
        """A client of this server that does not dawdle."""
        return BubbleConnection(self.url, token=token, backoff=QUICK, retry_for=PATIENCE)

    def plays(self, *scripts: Script) -> None:
        """What comes next."""
        self._scripts += scripts

    @property
    def connections(self) -> int:
        """How many came so far."""
        return len(self.bearers)

    async def played(self) -> None:
        """Returns when every script has been played to its end."""
        with anyio.fail_after(PATIENCE):
            while self._scripts or self._open:
                self._played.clear()
                await self._played.wait()
        self.check()

    def check(self) -> None:
        """Raises what a script failed with."""
        if self.failures:
            raise self.failures[0]

    def refuse(self, connection: ServerConnection, request: Request) -> Response | None:
        """Answers the handshake with a status instead, if one is in line."""
        if request.path != "/v1/ws":
            return connection.respond(HTTPStatus.NOT_FOUND, "")
        if not self.refusals:
            return None
        response = connection.respond(self.refusals.pop(0), "")
        response.headers["Retry-After"] = "0"
        return response

    async def serve(self, connection: ServerConnection) -> None:
        """One connection."""
        dialogue = Dialogue(connection)
        self.bearers.append(dialogue.bearer)
        self._open += 1
        try:
            assert self._scripts, "The client came once more than expected."
            await self._scripts.pop(0)(dialogue)
        except ConnectionClosed:
            pass
        except Exception as error:  # noqa: BLE001 - raised by `played`
            self.failures.append(error)
        finally:
            self._open -= 1
            self._played.set()


@asynccontextmanager
async def listening() -> AsyncIterator[Peer]:
    """A peer on a free port."""
    peer = Peer(0)

    async def handle(connection: ServerConnection) -> None:
        await peer.serve(connection)

    async def process(connection: ServerConnection, request: Request) -> Response | None:
        return peer.refuse(connection, request)

    async with serve(handle, "127.0.0.1", 0, process_request=process, compression=None, close_timeout=1) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        peer.port, peer.url = port, f"http://127.0.0.1:{port}"
        yield peer
