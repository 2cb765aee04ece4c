"""The WebSocket as the client sees it: text frames out, text frames in, and a close code at the end."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol, TypeAlias

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI

from bubble.protocol.errors import (
    BubbleError,
    Forbidden,
    InvalidRequest,
    NotFound,
    RateLimited,
    Unauthenticated,
    Unavailable,
)
from bubble.protocol.version import VERSION

__all__ = ["Connector", "Socket", "SocketClosed", "handshake_refusal", "websocket_connector"]

_logger = logging.getLogger("bubble.client.websocket")


class SocketClosed(Exception):
    """The socket is closed, by whichever side. `code` is the close code; 1006 where there was none (RFC 6455, section 7.4.1)."""

    def __init__(self, code: int, reason: str = "") -> None:
        super().__init__(f"closed with {code}" + (f" ({reason})" if reason else ""))
        self.code = code
        self.reason = reason


class Socket(Protocol):
    """An open WebSocket. One task receives; another may send at the same time."""

    async def send(self, text: bytes) -> None:
        """Sends one text frame, waiting while the way out is full. Raises `SocketClosed`."""

    async def receive(self) -> bytes:
        """The next text frame. Raises `SocketClosed`."""

    async def close(self) -> None:
        """Closes with 1000, within a few seconds at most. Idempotent."""


Connector: TypeAlias = Callable[[str, Mapping[str, str]], Awaitable[Socket]]
"""Opens a WebSocket at a `ws:` or `wss:` URL with headers.

Raises `Unavailable` where trying again may help, `RateLimited` where it helps later, `Unauthenticated`, `Forbidden`, `NotFound` or
`InvalidRequest` where the handshake was refused for good.
"""


class _WebSocket:
    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection

    async def send(self, text: bytes) -> None:
        try:
            await self._connection.send(text, text=True)
        except ConnectionClosed as closed:
            raise _closed(closed) from None

    async def receive(self) -> bytes:
        try:
            return await self._connection.recv(decode=False)
        except ConnectionClosed as closed:
            raise _closed(closed) from None

    async def close(self) -> None:
        await self._connection.close()


def _closed(closed: ConnectionClosed) -> SocketClosed:
    if closed.rcvd is None:
        return SocketClosed(1006, "the connection broke off")
    return SocketClosed(closed.rcvd.code, closed.rcvd.reason)


def websocket_connector(
    *, ssl_context: ssl.SSLContext | None = None, open_timeout: float = 10.0, ping_every: float = 20.0
) -> Connector:
    """Connects over the network. Times in seconds; a server that leaves a ping unanswered for three times `ping_every` is given up."""

    async def open_websocket(url: str, headers: Mapping[str, str]) -> Socket:
        try:
            connection = await connect(
                url,
                additional_headers=dict(headers),
                user_agent_header=f"bubble-threads/{VERSION}",
                compression=None,
                ssl=ssl_context if url.startswith("wss:") else None,
                open_timeout=open_timeout,
                ping_interval=ping_every,
                ping_timeout=3 * ping_every,
                close_timeout=2.0,
                # The limits on what the server sends are the server's own settings; one event may be as large as they allow.
                max_size=None,
                max_queue=256,
                logger=_logger,
            )
        except InvalidStatus as refused:
            raise handshake_refusal(
                url, refused.response.status_code, refused.response.headers.get("Retry-After")
            ) from None
        except InvalidURI as error:
            raise InvalidRequest(f"{url} is no address of a WebSocket: {error}.") from None
        except (OSError, EOFError, TimeoutError, InvalidHandshake) as error:
            raise Unavailable(f"Cannot reach {url}: {str(error) or type(error).__name__}.") from None
        return _WebSocket(connection)

    return open_websocket


def handshake_refusal(url: str, status: int, retry_after: str | None) -> BubbleError:
    """What an HTTP status instead of a WebSocket means."""
    message = f"{url} answered {status} instead of opening a WebSocket."
    if status == 429:
        seconds = float(retry_after) if retry_after is not None and retry_after.isdigit() else 1.0
        return RateLimited(message, retry_after=seconds)
    if status >= 500 or status in (408, 425):
        return Unavailable(message)
    return {401: Unauthenticated, 403: Forbidden, 404: NotFound}.get(status, InvalidRequest)(message)
