"""WebSockets to an application without a network, for `BubbleConnection(connector=...)`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, MutableMapping
from urllib.parse import unquote, urlsplit

import anyio
from starlette.types import ASGIApp, Message

from bubble.client.transport import Connector, Socket, SocketClosed, handshake_refusal
from bubble.protocol.errors import BubbleError

__all__ = ["asgi_connector"]

_BUFFERED_MESSAGES = 16


def asgi_connector(
    app: ASGIApp,
    *,
    root_path: str = "",
    client: tuple[str, int] = ("127.0.0.1", 50_000),
    state: Mapping[str, object] | None = None,
    grace: float = 5.0,
) -> Connector:
    """Opens WebSockets of the application. A side that does not read holds the other up after a few messages, as a full socket would.

    An exception of the application is raised to whoever reads from the socket. One that does not end within `grace` seconds of the
    disconnect is cancelled.
    """

    async def open_socket(url: str, headers: Mapping[str, str]) -> Socket:
        parts = urlsplit(url)
        scope: MutableMapping[str, object] = {
            "type": "websocket",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "scheme": parts.scheme,
            "path": root_path + unquote(parts.path),
            "raw_path": (root_path + parts.path).encode(),
            "query_string": parts.query.encode(),
            "headers": [
                (b"host", parts.netloc.encode()),
                *((name.lower().encode(), value.encode()) for name, value in headers.items()),
            ],
            "server": (parts.hostname, parts.port),
            "client": client,
            "root_path": root_path,
            "subprotocols": [],
            "extensions": {"websocket.http.response": {}},
            "state": dict(state or {}),
        }
        socket = _ASGISocket(app, scope, grace=grace)
        try:
            await socket.shake_hands(url)
        except BaseException:
            await socket.close()
            raise
        return socket

    return open_socket


class _ASGISocket:
    def __init__(self, app: ASGIApp, scope: MutableMapping[str, object], *, grace: float) -> None:
        self._grace = grace
        self._closed: SocketClosed | None = None
        self._to_app, self._app_reads = anyio.create_memory_object_stream[Message](_BUFFERED_MESSAGES)
        self._app_writes, self._from_app = anyio.create_memory_object_stream[Message](_BUFFERED_MESSAGES)
        self._to_app.send_nowait({"type": "websocket.connect"})
        self._task = asyncio.create_task(self._run(app, scope))

    async def _run(self, app: ASGIApp, scope: MutableMapping[str, object]) -> None:
        try:
            await app(scope, self._app_receives, self._app_sends)
        finally:
            self._app_writes.close()
            self._app_reads.close()

    async def _app_receives(self) -> Message:
        try:
            return await self._app_reads.receive()
        except anyio.EndOfStream:
            closed = self._closed or SocketClosed(1006)
            return {"type": "websocket.disconnect", "code": closed.code, "reason": closed.reason}

    async def _app_sends(self, message: Message) -> None:
        try:
            await self._app_writes.send(message)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise OSError("The WebSocket is closed.") from None

    async def shake_hands(self, url: str) -> None:
        message = await self._next()
        kind = message["type"]
        if kind != "websocket.accept":
            raise self._refusal(url, message)

    def _refusal(self, url: str, message: Message) -> BubbleError:
        if message["type"] != "websocket.http.response.start":
            return handshake_refusal(url, 403, None)
        headers = {name.lower(): value for name, value in message.get("headers", [])}
        retry_after = headers.get(b"retry-after")
        return handshake_refusal(url, message["status"], None if retry_after is None else retry_after.decode())

    async def send(self, text: bytes) -> None:
        if self._closed is not None:
            raise self._closed
        try:
            await self._to_app.send({"type": "websocket.receive", "text": text.decode()})
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise self._end(SocketClosed(1006, "the application ended")) from None

    async def receive(self) -> bytes:
        if self._closed is not None:
            raise self._closed
        message = await self._next()
        if message["type"] == "websocket.close":
            raise self._end(SocketClosed(message.get("code", 1000), message.get("reason") or ""))
        text: str | None = message.get("text")
        return message["bytes"] if text is None else text.encode()

    async def _next(self) -> Message:
        try:
            return await self._from_app.receive()
        except anyio.EndOfStream:
            await asyncio.wait({self._task})
            failure = None if self._task.cancelled() else self._task.exception()
            if failure is not None:
                raise failure from None
            raise self._end(SocketClosed(1006, "the application ended")) from None
        except anyio.ClosedResourceError:
            raise self._end(SocketClosed(1006)) from None

    def _end(self, closed: SocketClosed) -> SocketClosed:
        if self._closed is None:
            self._closed = closed
        self._to_app.close()
        return self._closed

    async def close(self) -> None:
        self._end(SocketClosed(1000))
        with anyio.CancelScope(shield=True):
            self._from_app.close()
            done, _ = await asyncio.wait({self._task}, timeout=self._grace)
            if not done:
                self._task.cancel()
                await asyncio.wait({self._task})
        if not self._task.cancelled():
            self._task.exception()
