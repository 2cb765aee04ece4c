"""An echo on the product's own WebSocket skins, for the Autobahn cases."""

from __future__ import annotations

import uvicorn
from starlette.types import Message, Receive, Scope, Send
from websockets.frames import Frame, Opcode

from bubble.server.websocket.asgi_skin import AsgiSocket
from bubble.server.websocket.uvicorn_skin import EXTENSION, BubbleWebSocketProtocol

MAX_MESSAGE = 32 * 1024 * 1024


class DirectEcho:
    """Echoes on uvicorn's transport."""

    max_message = MAX_MESSAGE

    def __init__(self, socket: BubbleWebSocketProtocol) -> None:
        self._socket = socket

    def message(self, text: bytes) -> None:
        self._socket.send_text(text)

    def binary(self, data: bytes) -> None:
        self._socket.transport.write(Frame(Opcode.BINARY, data).serialize(mask=False))

    def oversized(self, size: int) -> None:
        self._socket.close(1009, f"{size} bytes")

    def drained(self) -> None:
        pass

    def gone(self) -> None:
        pass


class AsgiEcho:
    """Echoes through ASGI messages; binary ones go past the skin, which has no use for them."""

    max_message = MAX_MESSAGE

    def __init__(self, receive: Receive, send: Send) -> None:
        self.socket = AsgiSocket(self._receive, self._send)
        self._from = receive
        self._to = send

    async def _receive(self) -> Message:
        while True:
            message = await self._from()
            data = message.get("bytes")
            if data is None:
                return message
            await self._to({"type": "websocket.send", "bytes": data})

    async def _send(self, message: Message) -> None:
        await self._to(message)

    def message(self, text: bytes) -> None:
        self.socket.send_text(text)

    def binary(self, data: bytes) -> None:
        raise AssertionError(len(data))

    def oversized(self, size: int) -> None:
        self.socket.close(1009, f"{size} bytes")

    def drained(self) -> None:
        pass

    def gone(self) -> None:
        pass


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """`/direct` takes uvicorn's transport over, any other path speaks plain ASGI."""
    if scope["type"] != "websocket":
        return
    await receive()
    await send({"type": "websocket.accept"})
    if scope["path"] == "/direct":
        socket: BubbleWebSocketProtocol = scope["extensions"][EXTENSION]
        socket.attach(DirectEcho(socket))
    else:
        echo = AsgiEcho(receive, send)
        await echo.socket.run(echo)


def main() -> None:
    """Serves on a free port and prints it."""
    config = uvicorn.Config(
        app,
        host="127.0.0.1",
        port=0,
        ws=BubbleWebSocketProtocol,
        ws_max_size=MAX_MESSAGE,
        lifespan="off",
        log_level="warning",
    )
    listening = config.bind_socket()
    print(listening.getsockname()[1], flush=True)  # noqa: T201 - this is how the test learns it
    uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
