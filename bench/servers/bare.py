"""Next to nothing on the same stack: an endpoint that reads a body and answers, and a fan-out that is one loop.

`POST` anything: the body comes back with status 201. A WebSocket at `/follow` gets every message that one at `/publish` sends, one ASGI
`send` each, in turn.
"""

from __future__ import annotations

from argparse import ArgumentParser

from starlette.types import Receive, Scope, Send

from bench.servers.stack import listen, run, serve
from bubble.server.http_protocol import BubbleHttpProtocol

__all__ = ["main"]


class _Bare:
    def __init__(self) -> None:
        self._followers: dict[Send, None] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._answer(receive, send)
            return
        await receive()  # websocket.connect
        await send({"type": "websocket.accept"})
        if scope["path"] == "/publish":
            await self._publish(receive)
        else:
            await self._follow(receive, send)

    async def _answer(self, receive: Receive, send: Send) -> None:
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body", False):
                break
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 201, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _publish(self, receive: Receive) -> None:
        while (message := await receive())["type"] == "websocket.receive":
            passed_on = {"type": "websocket.send", "text": message["text"]}
            for send in list(self._followers):
                await send(passed_on)

    async def _follow(self, receive: Receive, send: Send) -> None:
        self._followers[send] = None
        try:
            while (await receive())["type"] == "websocket.receive":
                pass
        finally:
            del self._followers[send]


async def _serve() -> None:
    with listen() as listening:
        await serve(_Bare(), listening, http=BubbleHttpProtocol)


def main() -> None:
    """Serves until standard input ends."""
    parser = ArgumentParser(allow_abbrev=False)
    parser.add_argument("--data", required=True)  # every server is given a place; this one keeps nothing
    parser.parse_args()
    run(_serve())


if __name__ == "__main__":
    main()
