"""The ASGI application: `create_app(settings)` for a server of its own, or to be mounted in another application.

*Theory of operation.* The application is started by ASGI's lifespan, or by `async with app` where a host does not pass lifespan on.
Starting opens the store, starts the hub and the background work; stopping undoes it in the reverse order. In between every request goes
through one envelope (`envelope`), which answers errors, and one router made from the table of operations (`operations`).
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Literal, Self

from starlette._utils import get_route_path
from starlette.types import Receive, Scope, Send

from bubble.assembler import create_assembler
from bubble.auth.authenticator import Authenticator
from bubble.auth.drivers import is_disabled
from bubble.auth.first_start import ADMIN
from bubble.auth.policy import Policy
from bubble.extensions import installed_extensions
from bubble.hub import Hub
from bubble.hub.tasks import TaskOwner
from bubble.protocol.errors import Unavailable
from bubble.protocol.timestamps import Clock, system_clock
from bubble.server.background import start_background_work
from bubble.server.envelope import enclose
from bubble.server.messages.following import Followings
from bubble.server.messages.reading import Turns
from bubble.server.metrics import Metrics
from bubble.server.operations import Operation
from bubble.server.origins import browser_rules
from bubble.server.rates import RequestRates
from bubble.server.routes import OPERATIONS
from bubble.server.routing import make_router
from bubble.server.services import Services
from bubble.server.settings import Settings
from bubble.server.tracing import Tracing
from bubble.server.watching.following import BotFollowings
from bubble.server.websocket.endpoint import WebSocketEndpoint
from bubble.store.base import BubbleStore
from bubble.store.opening import open_store

__all__ = ["BubbleApp", "FirstStart", "create_app"]

State = Literal["new", "serving", "draining", "stopped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstStart:
    """What to tell the person who started the server, once: a link that logs a browser in, and the admin's token."""

    login_url: str = field(repr=False)
    token: str = field(repr=False)


def create_app(
    settings: Settings | None = None,
    *,
    store: BubbleStore | None = None,
    port: int | None = None,
    clock: Clock = system_clock,
) -> BubbleApp:
    """An application with these settings (None: `Settings()`).

    `store`, where given, is used instead of opening one and stays the caller's to close. `port` is the one that was bound where
    the settings leave it open.
    """
    return BubbleApp(settings or Settings(), store=store, port=port, clock=clock)


class BubbleApp:
    """An ASGI 3 application. Mount it anywhere; `async with app` starts and stops it where no lifespan reaches it."""

    def __init__(
        self, settings: Settings, *, store: BubbleStore | None = None, port: int | None = None, clock: Clock
    ) -> None:
        self.settings = settings
        self.first_start: FirstStart | None = None
        self.state: State = "new"
        self.background = TaskOwner()
        self._given_store = store
        self._port = port
        self._clock = clock
        self._services: Services | None = None
        self._sockets: WebSocketEndpoint | None = None
        self._stack = AsyncExitStack()
        self._router = make_router(OPERATIONS, self._services_for)

    # --- life -------------------------------------------------------------------------------------------------------------------

    @property
    def services(self) -> Services:
        """The parts of the running server. `RuntimeError` before it was started."""
        if self._services is None:
            raise RuntimeError("The application was not started: pass lifespan on, or use `async with app`.")
        return self._services

    async def __aenter__(self) -> Self:
        await self.startup()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.shutdown()

    async def startup(self) -> None:
        """Opens the store and starts everything. Raises what `open_store` raises."""
        async with AsyncExitStack() as stack:
            store = self._given_store
            if store is None:
                store = await stack.enter_async_context(await _open(self.settings, self._clock))
            self._services = services = await self._assemble(store, stack)
            self._sockets = WebSocketEndpoint(services)
            self.first_start = await _first_start(services)
            self.background = start_background_work(services)
            stack.push_async_callback(self.background.close)
            self._stack = stack.pop_all()
        self.state = "serving"

    async def _assemble(self, store: BubbleStore, stack: AsyncExitStack) -> Services:
        settings = self.settings
        policy = Policy.with_custom_roles(settings.roles)
        limits = settings.limits.limits()
        authenticator = Authenticator(
            store,
            policy=policy,
            clock=self._clock,
            jwt=settings.jwt.jwt_settings() if settings.jwt is not None else None,
            lifetimes=settings.sessions.lifetimes(),
        )
        await stack.enter_async_context(authenticator)
        hub = Hub(store, policy, limits=limits, find_invalid=authenticator.find_invalid)
        await hub.start()
        stack.push_async_callback(hub.close)
        handlers = [handler for extension in installed_extensions() for handler in extension.part_handlers]
        followings = Followings(hub, create_assembler(part_handlers=handlers), Turns())
        stack.push_async_callback(followings.close)
        watches = BotFollowings(hub, followings, self._clock)
        stack.push_async_callback(watches.close)
        return Services(
            settings=settings,
            store=store,
            hub=hub,
            followings=followings,
            watches=watches,
            authenticator=authenticator,
            policy=policy,
            limits=limits,
            clock=self._clock,
            metrics=Metrics(
                store=store.statistics,
                hub=hub.statistics,
                messages=followings.statistics,
                watches=watches.statistics,
            ),
            rates=RequestRates(rate=settings.rates.requests_per_second, burst=settings.rates.requests_burst),
            tracing=Tracing(),
            browser=browser_rules(settings, port=self._port),
            url=settings.url(port=self._port),
            draining=asyncio.Event(),
        )

    async def drain(self) -> None:
        """Takes no more work: `readyz` says no, open sockets are told to come back elsewhere, appends in flight are committed."""
        if self.state == "serving":
            self.state = "draining"
            self.services.draining.set()
            self.services.hub.drain()
            await asyncio.sleep(0)

    async def shutdown(self) -> None:
        """Drains, and stops everything. Idempotent."""
        await self.drain()
        self.state = "stopped"
        stack, self._stack = self._stack, AsyncExitStack()
        await stack.aclose()

    async def login_url(self) -> str | None:
        """A new link that logs a browser in as `admin`, once, within `sessions.login_lifetime`. None if `admin` is disabled or no admin."""
        services = self.services
        admin = await services.store.get_principal(ADMIN)
        if is_disabled(admin) or admin.deployment_role != "admin":
            return None
        return _login_url(services, (await services.authenticator.start_login(ADMIN)).secret)

    # --- requests ---------------------------------------------------------------------------------------------------------------

    def _services_for(self, operation: Operation) -> Services:
        if self.state != "serving" and not operation.while_draining:
            raise Unavailable("This server is not taking requests.")
        return self.services

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One lifespan, request or socket."""
        kind = scope["type"]
        if kind == "http":
            await self._http(scope, receive, send)
        elif kind == "websocket":
            await self._websocket(scope, receive, send)
        elif kind == "lifespan":
            await self._lifespan(receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        services = self.services
        await enclose(
            partial(self._route, receive),
            scope,
            send,
            metrics=services.metrics,
            tracing=services.tracing,
            log=self.settings.log.requests,
        )

    async def _route(self, receive: Receive, scope: Scope, send: Send) -> None:
        await self._router(scope, receive, send)

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._sockets is None or get_route_path(scope) != "/v1/ws":
            await receive()
            await send({"type": "websocket.close", "code": 1008, "reason": "no such route"})
            return
        await self._sockets(scope, receive, send)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self.startup()
        except Exception as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            raise
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.shutdown()
        await send({"type": "lifespan.shutdown.complete"})


async def _first_start(services: Services) -> FirstStart | None:
    chosen = services.settings.admin_token
    access = await services.authenticator.ensure_admin(admin_token=chosen.get_secret_value() if chosen else None)
    if access is None:
        return None
    return FirstStart(login_url=_login_url(services, access.login_code), token=access.token)


def _login_url(services: Services, code: str) -> str:
    return f"{services.url}/login?code={code}"


async def _open(settings: Settings, clock: Clock) -> BubbleStore:
    if settings.store is None:
        settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    return await open_store(settings.store_url, run_integrity=settings.run_integrity, clock=clock)
