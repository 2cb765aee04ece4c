"""A service that streams frames by the Connect protocol with its JSON codec: an ASGI application, and what its bytes look like."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.types import Receive, Scope, Send

__all__ = ["COMPRESSED", "END", "Service", "end", "message"]

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
