"""A server of its own: `serve(settings)` binds, runs until it is told to stop, and stops without losing anything.

Stopping, on SIGTERM or SIGINT: no new connection is taken, `readyz` says no, open sockets are told to come back elsewhere (1012), requests
in flight are answered, appends are committed. A second signal ends the waiting.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import uvicorn

from bubble.server.app import BubbleApp, FirstStart, create_app
from bubble.server.hot import HotAppends
from bubble.server.hot_protocol import hot_protocol
from bubble.server.logs import configure_logging, logger
from bubble.server.settings import Settings, SettingsError
from bubble.server.websocket.uvicorn_skin import BubbleWebSocketProtocol

__all__ = ["Started", "run", "serve"]

_BACKLOG = 2_048
_KEEP_ALIVE_SECONDS = 75  # longer than a proxy keeps its own connections, so that the proxy is the one that closes


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A server that takes requests now. `first_start` holds secrets to show once, on the first start on empty data.

    `login_url` is a link that logs a browser in, once: that of the first start, later a new one if it was asked for.
    """

    url: str
    port: int
    first_start: FirstStart | None
    login_url: str | None = field(repr=False)


def run(
    settings: Settings, *, on_started: Callable[[Started], None] | None = None, with_login_link: bool = False
) -> None:
    """Serves until a signal says stop, on a fast event loop where there is one; logs as the settings say. Raises what `serve` raises."""
    configure_logging(settings.log)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(serve(settings, on_started=on_started, with_login_link=with_login_link))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


async def serve(
    settings: Settings, *, on_started: Callable[[Started], None] | None = None, with_login_link: bool = False
) -> None:
    """Serves until a signal says stop, or until it is cancelled; `on_started` is called once the socket listens.

    `with_login_link` makes a login link at every start, and not at the first alone.
    Raises `SettingsError` for a public address without TLS, `OSError` if the address cannot be had, and what `open_store` raises.
    """
    _require_private_or_safe(settings)
    with _bound(settings) as listening:
        port: int = listening.getsockname()[1]
        app = create_app(settings, port=port)
        async with app:
            server = _Server(_config(app), app)
            with _signals(server):
                started = await _started(app, port, with_login_link=with_login_link)
                await server.start_and_tell(listening, started, on_started)
    logger.info("stopped")


async def _started(app: BubbleApp, port: int, *, with_login_link: bool) -> Started:
    first = app.first_start
    if first is not None:
        login_url: str | None = first.login_url
    else:
        login_url = await app.login_url() if with_login_link else None
    return Started(url=app.services.url, port=port, first_start=first, login_url=login_url)


def _require_private_or_safe(settings: Settings) -> None:
    is_behind_tls = settings.public_url is not None and settings.public_url.startswith("https://")
    if not (settings.is_loopback or settings.scheme == "https" or is_behind_tls or settings.insecure):
        raise SettingsError(
            f"Refusing to listen on {settings.host} without TLS: bearers would travel in the clear. Put a TLS proxy in front and "
            "set public_url to its https address, set tls_certificate and tls_key, or allow it with insecure (--insecure)."
        )


@contextmanager
def _bound(settings: Settings) -> Iterator[socket.socket]:
    family, kind, protocol, _, address = socket.getaddrinfo(
        settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    with socket.socket(family, kind, protocol) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.setblocking(False)  # noqa: FBT003 - the standard library's signature
        yield listening


def _config(app: BubbleApp) -> uvicorn.Config:
    settings = app.settings
    return uvicorn.Config(
        app,
        http=hot_protocol(HotAppends(app.services)),
        ws=BubbleWebSocketProtocol,
        ws_max_size=settings.limits.frame_hard_bytes,
        ws_ping_interval=None,
        ws_per_message_deflate=False,
        interface="asgi3",
        lifespan="off",  # the application is started before, so that its errors reach whoever called `serve`
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=_BACKLOG,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=max(1, round(settings.shutdown_after)),
        ssl_certfile=settings.tls_certificate,
        ssl_keyfile=settings.tls_key,
    )


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, app: BubbleApp) -> None:
        super().__init__(config)
        self._app = app
        self._tell: Callable[[], None] = lambda: None

    async def start_and_tell(
        self, listening: socket.socket, started: Started, on_started: Callable[[Started], None] | None
    ) -> None:
        if on_started is not None:
            self._tell = lambda: on_started(started)
        try:
            await self._serve([listening])
        except asyncio.CancelledError:
            if self.started:
                await self.shutdown([listening])
            raise

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        logger.info("serving", url=self._app.services.url)
        self._tell()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        await self._app.drain()
        await super().shutdown(sockets)


@contextmanager
def _signals(server: uvicorn.Server) -> Iterator[None]:
    """Signals stop the server for as long as this lasts. uvicorn's own handling would raise the signal again at the end, and exit by it."""
    loop = asyncio.get_running_loop()
    taken = []
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):  # not the main thread, or Windows
            loop.add_signal_handler(number, server.handle_exit, number, None)
            taken.append(number)
    try:
        yield
    finally:
        for number in taken:
            loop.remove_signal_handler(number)
