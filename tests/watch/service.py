"""A service that streams frames by the Connect protocol with its JSON codec: an ASGI application, and what its bytes look like."""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.types import Receive, Scope, Send

__all__ = ["COMPRESSED", "END", "Service", "Talking", "end", "message"]

COMPRESSED = 1
END = 2

Json = dict[str, Any]


def message(value: object, *, flags: int = 0) -> bytes:
    """One envelope."""
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return struct.pack(">BI", flags, len(data)) + data


def end(**members: object) -> bytes:
    """The envelope that ends a stream."""
    return message(members, flags=END)


@dataclass(kw_only=True)
class Service:
    """Answers each call with the chunks, one ASGI message each, and notes what it was asked."""

    chunks: Sequence[bytes] = ()
    status: int = 200
    content_type: str = "application/connect+json"
    stays_open: bool = False
    asked: list[Json] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    path: str = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        assert scope["method"] == "POST"
        self.path = scope["path"]
        self.headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.asked.append(await _message_of(receive))
        headers = [(b"content-type", self.content_type.encode())]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        for chunk in self.chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        while self.stays_open and (await receive())["type"] != "http.disconnect":
            pass
        await send({"type": "http.response.body", "body": b""})


class Talking:
    """Answers one call with what it is told to say, when it is told."""

    def __init__(self) -> None:
        self._chunks: asyncio.Queue[bytes] = asyncio.Queue()
        self._said = asyncio.Event()

    async def say(self, chunk: bytes) -> None:
        """Returns when it is said."""
        self._said.clear()
        self._chunks.put_nowait(chunk)
        await self._said.wait()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive
        headers = [(b"content-type", b"application/connect+json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        while True:
            await send({"type": "http.response.body", "body": await self._chunks.get(), "more_body": True})
            self._said.set()


async def _message_of(receive: Receive) -> Json:
    body, more = b"", True
    while more:
        part = await receive()
        body += part.get("body", b"")
        more = part.get("more_body", False)
    flags, size = struct.unpack(">BI", body[:5])
    assert (flags, size) == (0, len(body) - 5)
    asked: Json = json.loads(body[5:])
    return asked
