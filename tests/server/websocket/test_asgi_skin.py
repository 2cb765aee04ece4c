"""The skin that works on any ASGI server, where the peer does not take part in its end."""

from __future__ import annotations

import asyncio

import pytest
from starlette.types import Message

from bubble.server.websocket import asgi_skin
from bubble.server.websocket.asgi_skin import AsgiSocket

pytestmark = pytest.mark.anyio


class _Receiver:
    max_message = 1_000

    def __init__(self) -> None:
        self.heard: list[bytes] = []

    def message(self, text: bytes) -> None:
        self.heard.append(text)

    def binary(self, data: bytes) -> None:
        self.heard.append(data)

    def oversized(self, size: int) -> None:
        self.heard.append(b"%d" % size)

    def drained(self) -> None:
        """It is never."""

    def gone(self) -> None:
        """The endpoint says so."""


class _FrozenPeer:
    """Sends what a test says, and takes nothing."""

    def __init__(self) -> None:
        self.messages: asyncio.Queue[Message] = asyncio.Queue()

    def says(self, **message: str | bytes) -> None:
        self.messages.put_nowait({"type": "websocket.receive", **message})

    async def receive(self) -> Message:
        return await self.messages.get()

    async def send(self, _: Message) -> None:
        await asyncio.get_running_loop().create_future()


async def test_a_frozen_peer_is_not_heard_after_the_close_and_cut_off_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asgi_skin, "CLOSE_SECONDS", 0.1)
    peer, receiver = _FrozenPeer(), _Receiver()
    socket = AsgiSocket(peer.receive, peer.send)
    running = asyncio.ensure_future(socket.run(receiver))
    peer.says(text="before")
    async with asyncio.timeout(5):
        while not receiver.heard:  # noqa: ASYNC110 - turns of the event loop, no time
            await asyncio.sleep(0)
        socket.send_text(b"never taken")
        socket.close(4401, "unauthenticated")
        peer.says(text="after")
        peer.says(bytes=b"after")
        await running
    assert peer.messages.empty(), "it was read to the end"
    assert receiver.heard == [b"before"]
