"""The mock agent on a port of its own."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext

import uvicorn

from bubble.reef.mock.app import create_mock_agent

__all__ = ["serve_mock_agent"]


async def serve_mock_agent(
    *, host: str = "127.0.0.1", port: int = 0, pace: float = 0.05, on_started: Callable[[str], None]
) -> None:
    """Serves until SIGTERM or SIGINT, or until it is cancelled; `on_started` is told the URL. `OSError` if the address cannot be had."""
    with closing(_listening(host, port)) as listening:
        url = f"http://{_in_url(host)}:{listening.getsockname()[1]}"
        config = uvicorn.Config(
            create_mock_agent(url, pace=pace), log_level="warning", lifespan="off", timeout_graceful_shutdown=1
        )
        server = _Server(config, lambda: on_started(url))
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, server.handle_exit, number, None)
        await server.serve(sockets=[listening])


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, tell: Callable[[], None]) -> None:
        super().__init__(config)
        self._tell = tell

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]
        # Uvicorn would raise them again at the end, and the process would not end as it was asked to.
        return nullcontext()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._tell()


def _listening(host: str, port: int) -> socket.socket:
    # With its protocol: a socket that does not know that it is TCP's keeps Nagle's delay.
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except OSError:
        listening.close()
        raise
    return listening


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
