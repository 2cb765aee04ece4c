"""The skin that works on any ASGI server: messages in and out through `receive` and `send`."""

from __future__ import annotations

import asyncio
from collections import deque

from starlette.types import Receive, Send

from bubble.hub.encodings import JSON_MESSAGES, Chunk, Encoding
from bubble.server.websocket.socket import Receiver

__all__ = ["AsgiSocket"]

HIGH_WATER = 128 * 1024
#: How long a peer may take to read what was written before the close.
CLOSE_SECONDS = 5.0


class AsgiSocket:
    """A `Socket` over ASGI messages. `run` it until the peer is gone."""

    encoding: Encoding = JSON_MESSAGES

    def __init__(self, receive: Receive, send: Send, *, high_water: int = HIGH_WATER) -> None:
        self._receive = receive
        self._send = send
        self._high_water = high_water
        self._out: deque[bytes] = deque()
        self._bell = asyncio.Event()
        self._may_read = asyncio.Event()
        self._may_read.set()
        self._closing: tuple[int, str] | None = None
        self._was_full = False
        self._receiver: Receiver | None = None
        self._writing: asyncio.Task[None] | None = None
        self._last_moment: asyncio.TimerHandle | None = None
        self.buffered = 0

    async def run(self, receiver: Receiver) -> None:
        """Hands over what comes in, and sends what is written, until the peer is gone or `close` has been carried out."""
        self._receiver = receiver
        reading = asyncio.ensure_future(self._read())
        writing = self._writing = asyncio.ensure_future(self._write())
        try:
            await asyncio.wait([reading, writing], return_when=asyncio.FIRST_COMPLETED)
        finally:
            if self._last_moment is not None:
                self._last_moment.cancel()
            reading.cancel()
            writing.cancel()
            await asyncio.wait([reading, writing])

    async def _read(self) -> None:
        while self._receiver is not None:
            await self._may_read.wait()
            message = await self._receive()
            if message["type"] == "websocket.disconnect":
                return
            if self._closing is not None:
                continue  # whoever closes, for instance because a bearer was revoked, wants no more
            text = message.get("text")
            if text is None:
                self._receiver.binary(message.get("bytes") or b"")
                continue
            payload = text.encode("utf-8")
            if len(payload) > self._receiver.max_message:
                self._receiver.oversized(len(payload))
            else:
                self._receiver.message(payload)

    async def _write(self) -> None:
        while True:
            while self._out:
                payload = self._out.popleft()
                await self._send({"type": "websocket.send", "text": payload.decode("utf-8")})
                self.buffered -= len(payload)
                if self._was_full and self.buffered <= self._high_water // 4 and self._receiver is not None:
                    self._was_full = False
                    self._receiver.drained()
            if self._closing is not None:
                code, reason = self._closing
                await self._send({"type": "websocket.close", "code": code, "reason": reason})
                return
            self._bell.clear()
            await self._bell.wait()

    def is_writable(self) -> bool:
        """Whether less than the high-water mark waits to be sent."""
        if self.buffered >= self._high_water:
            self._was_full = True
        return self._closing is None and not self._was_full

    def send_text(self, payload: bytes) -> None:
        """One text message."""
        if self._closing is None:
            self._out.append(payload)
            self.buffered += len(payload)
            self._bell.set()

    def write_chunk(self, chunk: Chunk) -> None:
        """Events, one message each."""
        if self._closing is None:
            self._out.extend(chunk.pieces)
            self.buffered += chunk.size
            self._bell.set()

    def pause_reading(self) -> None:
        """Takes no more from the peer."""
        self._may_read.clear()

    def resume_reading(self) -> None:
        """Takes from the peer again."""
        self._may_read.set()

    def close(self, code: int, reason: str) -> None:
        """Closes once what was written before has been sent; a peer that does not take it is cut off after a few seconds."""
        if self._closing is None:
            self._closing = (code, reason)
            self._bell.set()
            self._may_read.set()
            if self._writing is not None:
                self._last_moment = asyncio.get_running_loop().call_later(CLOSE_SECONDS, self._writing.cancel)
