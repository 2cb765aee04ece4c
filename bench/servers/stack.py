"""The stack that `bubble serve` stands on, for the references: uvicorn on uvloop; announced and ended as a child of the bench."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from collections.abc import Coroutine
from typing import Final

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

__all__ = ["listen", "run", "serve"]

_BACKLOG: Final = 2_048
_KEEP_ALIVE_SECONDS: Final = 75
_MAX_FRAME: Final = 16 * 1024 * 1024


def run(main: Coroutine[None, None, None]) -> None:
    """Runs a server on the event loop that the product chooses."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(main)
        return
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)


def listen() -> socket.socket:
    """A socket on a free port of the loopback interface."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=_BACKLOG)
    listening.setblocking(False)  # noqa: FBT003 - the standard library's signature
    return listening


class _Announced(uvicorn.Server):
    """Says where it is once it listens, and stops when standard input ends."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        port = sockets[0].getsockname()[1] if sockets else 0
        sys.stdout.write(json.dumps({"port": port, "pid": os.getpid()}) + "\n")
        sys.stdout.flush()
        asyncio.get_running_loop().add_reader(sys.stdin.fileno(), self._stop_at_end)

    def _stop_at_end(self) -> None:
        if not os.read(sys.stdin.fileno(), 4_096):
            asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
            self.should_exit = self.force_exit = True


async def serve(app: object, listening: socket.socket, *, http: type[HttpToolsProtocol]) -> None:
    """Serves an ASGI application as `bubble serve` does, but with uvicorn's own WebSocket class."""
    config = uvicorn.Config(
        app,  # type: ignore[arg-type]
        http=http,
        ws=WebSocketsSansIOProtocol,
        ws_max_size=_MAX_FRAME,
        ws_ping_interval=None,
        ws_per_message_deflate=False,
        interface="asgi3",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=_BACKLOG,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
    )
    await _Announced(config).serve([listening])
