"""A WebSocket client that reads only when a test says so."""

from __future__ import annotations

import asyncio
import socket as sockets

from tests.server.websocket.live import ADMIN_TOKEN

__all__ = ["RawReader"]


class RawReader:
    """A WebSocket client on a bare socket: nothing is read, and no ping answered, unless the test asks for it."""

    def __init__(self, port: int, *, receive_buffer: int = 16 * 1024) -> None:
        self._socket = sockets.socket()
        self._socket.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, receive_buffer)
        self._socket.setsockopt(sockets.IPPROTO_TCP, sockets.TCP_NODELAY, 1)
        self._socket.settimeout(0)
        self._port = port
        self._buffer = b""
        self._at = 0

    async def open(self) -> None:
        """Connects and upgrades."""
        loop = asyncio.get_running_loop()
        await loop.sock_connect(self._socket, ("127.0.0.1", self._port))
        request = (
            "GET /v1/ws HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n"
            f"Authorization: Bearer {ADMIN_TOKEN}\r\n\r\n"
        )
        await loop.sock_sendall(self._socket, request.encode())
        while b"\r\n\r\n" not in self._buffer:
            self._buffer += await loop.sock_recv(self._socket, 65_536)
        self._buffer = self._buffer.partition(b"\r\n\r\n")[2]

    async def send(self, text: str) -> None:
        """One text frame below 64 KiB, masked with zeros."""
        payload = text.encode()
        size = bytes((0x80 | len(payload),)) if len(payload) < 126 else b"\xfe" + len(payload).to_bytes(2, "big")
        await self.send_raw(b"\x81" + size + bytes(4) + payload)

    async def send_raw(self, data: bytes) -> None:
        """Bytes as they are."""
        await asyncio.get_running_loop().sock_sendall(self._socket, data)

    async def seqs(self, last: int) -> list[int]:
        """Reads until the event `last`: all seqs, in the order they came."""
        found: list[int] = []
        while not found or found[-1] != last:
            _, payload = await self._frame()
            if payload.startswith(b'{"type":"thread.event"'):
                found.append(int(payload.partition(b'"seq":')[2].partition(b",")[0]))
        return found

    async def bytes_until(self, end: bytes) -> bytes:
        """Everything up to and with `end`, which must be the last thing that is on its way."""
        received = [self._buffer[self._at :]]
        self._buffer, self._at = b"", 0
        async with asyncio.timeout(20):
            while not received[-1].endswith(end):
                tail = received[-1][-len(end) :]
                received.append(await asyncio.get_running_loop().sock_recv(self._socket, 1024 * 1024))
                if (tail + received[-1]).endswith(end):
                    break
        return b"".join(received)

    async def close_code(self) -> int:
        """Reads on until the server closes."""
        while True:
            opcode, payload = await self._frame()
            if opcode == 8:
                return int.from_bytes(payload[:2], "big")

    async def _frame(self) -> tuple[int, bytes]:
        await self._have(2)
        opcode, size, start = self._buffer[self._at] & 0x0F, self._buffer[self._at + 1] & 0x7F, 2
        if size == 126:
            await self._have(4)
            size, start = int.from_bytes(self._buffer[self._at + 2 : self._at + 4], "big"), 4
        await self._have(start + size)
        begin = self._at + start
        self._at = begin + size
        return opcode, self._buffer[begin : self._at]

    async def _have(self, count: int) -> None:
        if len(self._buffer) - self._at >= count:
            return
        self._buffer, self._at = self._buffer[self._at :], 0
        async with asyncio.timeout(20):
            while len(self._buffer) < count:
                received = await asyncio.get_running_loop().sock_recv(self._socket, 1024 * 1024)
                assert received, "the server closed"
                self._buffer += received

    def close(self) -> None:
        """Drops the connection."""
        self._socket.close()
