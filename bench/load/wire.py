"""Connections, requests and frames: made once, used often."""

from __future__ import annotations

import base64
import secrets
import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final

from bench.load.events import VerificationError
from bench.servers.process import Server

__all__ = [
    "append_frame",
    "http_request",
    "open_http",
    "open_websockets",
    "subscribe",
    "subscribe_frame",
    "text_frame",
    "unsubscribe_frame",
]

_SECONDS: Final = 30.0
_AT_ONCE: Final = 64
_SEND_BUFFER: Final = 512 * 1024  # a request goes out whole


def http_request(server: Server, path: str, body: bytes, *, method: str = "POST") -> bytes:
    """The bytes of one request of the administrator."""
    lines = [
        f"{method} {path} HTTP/1.1",
        f"Host: {server.host}:{server.port}",
        f"Authorization: Bearer {server.token}",
    ]
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode("ascii") + body


def text_frame(payload: bytes) -> bytes:
    """A client's text frame. Its mask is zero, which is a mask like any other and leaves the payload as it is (RFC 6455, section 5.3)."""
    size = len(payload)
    if size < 126:
        head = struct.pack("!BB", 0x81, 0x80 | size)
    elif size < 65_536:
        head = struct.pack("!BBH", 0x81, 0x80 | 126, size)
    else:
        head = struct.pack("!BBQ", 0x81, 0x80 | 127, size)
    return head + b"\0\0\0\0" + payload


def append_frame(thread_id: str, event: bytes) -> bytes:
    """The frame that appends an event."""
    return text_frame(b'{"type":"thread.append","threadId":"%b","event":%b}' % (thread_id.encode(), event))


@contextmanager
def open_http(server: Server, count: int) -> Iterator[Sequence[socket.socket]]:
    """Connections for requests, non-blocking."""
    with ExitStack() as stack:
        connections = [stack.enter_context(_connect(server)) for _ in range(count)]
        for connection in connections:
            connection.setblocking(False)  # noqa: FBT003 - the standard library's signature
        yield connections


@contextmanager
def open_websockets(
    server: Server, count: int, *, path: str = "/v1/ws", receive_buffer: int | None = None
) -> Iterator[Sequence[socket.socket]]:
    """WebSockets of the administrator, still blocking; many at a time are on their way."""
    with ExitStack() as stack:
        opened: list[socket.socket] = []
        while len(opened) < count:
            some = [
                stack.enter_context(_connect(server, receive_buffer=receive_buffer))
                for _ in range(min(_AT_ONCE, count - len(opened)))
            ]
            _upgrade(server, path, some)
            opened += some
        yield opened


def _connect(server: Server, *, receive_buffer: int | None = None) -> socket.socket:
    connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    connection.settimeout(_SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
    if receive_buffer is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    connection.connect((server.host, server.port))
    return connection


def _upgrade(server: Server, path: str, connections: Sequence[socket.socket]) -> None:
    for connection in connections:
        request = http_request(server, path, b"", method="GET")
        key = base64.b64encode(secrets.token_bytes(16))
        upgrade = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + key
        connection.sendall(request[:-2] + upgrade + b"\r\n\r\n")
    for connection in connections:
        head = _read_until(connection, b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 101 "):
            raise VerificationError(f"The server refused a WebSocket: {head[:80]!r}.")


def subscribe(connections: Sequence[socket.socket], threads: Sequence[str], *, from_seq: int) -> None:
    """Follows a thread on each connection; returns when the server has confirmed all, before any event has been read."""
    for connection, thread_id in zip(connections, threads, strict=True):
        connection.sendall(subscribe_frame(thread_id, from_seq=from_seq))
    for connection in connections:
        opened = _read_short_frame(connection)
        if b'"type":"thread.subscription_opened"' not in opened:
            raise VerificationError(f"The server refused a subscription: {opened!r}.")


def subscribe_frame(thread_id: str, *, from_seq: int) -> bytes:
    """The frame that follows a thread."""
    return text_frame(b'{"type":"thread.subscribe","threadId":"%b","fromSeq":%d}' % (thread_id.encode(), from_seq))


def unsubscribe_frame(thread_id: str) -> bytes:
    """The frame that ends it."""
    return text_frame(b'{"type":"thread.unsubscribe","threadId":"%b"}' % thread_id.encode())


def _read_short_frame(connection: socket.socket) -> bytes:
    """The payload of the next frame, which has at most 125 bytes or a length of two bytes."""
    _, length = _read(connection, 2)
    if length >= 126:
        length = int.from_bytes(_read(connection, 2), "big")
    return _read(connection, length)


def _read(connection: socket.socket, size: int) -> bytes:
    received = connection.recv(size, socket.MSG_WAITALL)
    if len(received) != size:
        raise VerificationError("The server closed a connection.")
    return received


def _read_until(connection: socket.socket, end: bytes) -> bytes:
    # One byte less than could be too much: what follows is the measurement's. Nothing here is timed.
    received = b""
    while not received.endswith(end):
        byte = connection.recv(1)
        if not byte:
            raise VerificationError("The server closed a connection.")
        received += byte
    return received
