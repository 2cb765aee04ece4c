"""The smallest clients that measure a server rather than themselves: one keep-alive HTTP connection, one WebSocket.

They understand just what a Bubble server says to well-formed requests, keep nothing, and parse as little as they can.
"""

from __future__ import annotations

import asyncio
import base64
import secrets
import struct
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlsplit

from bubble.cli.failures import CommandError

__all__ = ["HttpLine", "SocketLine", "text_frame"]

_EVENT: Final = b'"type":"thread.event"'
_CHUNK: Final = 256 * 1024


class _Line:
    """A TCP connection. Use as `async with`."""

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 80
        self._token = token
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter

    async def __aenter__(self) -> Self:
        self._reader, self._writer = await asyncio.open_connection(self._host, self._port, limit=4 * _CHUNK)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()

    def _headers(self, method: str, path: str, *more: str) -> bytes:
        lines = (
            f"{method} {path} HTTP/1.1",
            f"Host: {self._host}:{self._port}",
            f"Authorization: Bearer {self._token}",
            *more,
        )
        return "\r\n".join((*lines, "", "")).encode("ascii")

    async def _head(self) -> bytes:
        return await self._reader.readuntil(b"\r\n\r\n")


class HttpLine(_Line):
    """One request at a time over a connection that is kept alive."""

    def request(self, path: str, body: bytes) -> bytes:
        """The bytes of a POST, made once and sent often."""
        return self._headers("POST", path, "Content-Type: application/json", f"Content-Length: {len(body)}") + body

    async def send(self, request: bytes) -> None:
        """Sends it and reads the answer to its end. Raises `CommandError` for an answer that is no success."""
        self._writer.write(request)
        head = await self._head()
        body = await self._reader.readexactly(_content_length(head))
        if head[9:10] != b"2":
            raise CommandError(
                f"The server refused a request of the measurement: {body.decode('utf-8', 'replace')[:200]}"
            )


class SocketLine(_Line):
    """A WebSocket that counts `thread.event` frames."""

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        key = base64.b64encode(secrets.token_bytes(16)).decode("ascii")
        self._writer.write(
            self._headers(
                "GET",
                "/v1/ws",
                "Connection: Upgrade",
                "Upgrade: websocket",
                "Sec-WebSocket-Version: 13",
                f"Sec-WebSocket-Key: {key}",
            )
        )
        head = await self._head()
        if b" 101 " not in head.partition(b"\r\n")[0]:
            raise CommandError("The server refused the WebSocket of the measurement.")
        return self

    async def subscribe(self, thread_id: str, *, from_seq: int = 1) -> None:
        """Follows a thread; returns once the server has confirmed it."""
        self.write(
            text_frame(b'{"type":"thread.subscribe","threadId":"%s","fromSeq":%d}' % (thread_id.encode(), from_seq))
        )
        await self._reader.readuntil(b'"throughSeq":')
        await self._reader.readuntil(b"}")

    def write(self, frames: bytes) -> None:
        """Sends frames, without waiting."""
        self._writer.write(frames)

    async def drain(self) -> None:
        """Returns once the way out has room."""
        await self._writer.drain()

    async def read_events(self) -> int:
        """How many `thread.event` frames began in what arrived next."""
        chunk = await self._reader.read(_CHUNK)
        if not chunk:
            raise CommandError("The server closed a WebSocket of the measurement.")
        whole = self._rest + chunk
        # A marker that is cut between two chunks is counted with the second one.
        self._rest = whole[-(len(_EVENT) - 1) :]
        return whole.count(_EVENT)

    async def read_until(self, events: int) -> None:
        """Returns once so many have arrived."""
        seen = 0
        while seen < events:
            seen += await self.read_events()

    _rest = b""


def text_frame(payload: bytes) -> bytes:
    """A client's text frame. Its mask is zero, which masks nothing and costs nothing (RFC 6455, section 5.3)."""
    size = len(payload)
    if size < 126:
        head = struct.pack("!BB", 0x81, 0x80 | size)
    elif size < 65_536:
        head = struct.pack("!BBH", 0x81, 0x80 | 126, size)
    else:
        head = struct.pack("!BBQ", 0x81, 0x80 | 127, size)
    return head + b"\0\0\0\0" + payload


def _content_length(head: bytes) -> int:
    _, found, rest = head.lower().partition(b"content-length:")
    return int(rest.partition(b"\r\n")[0]) if found else 0
