"""`GET /v1/ws`: from an upgrade request to a driven socket (spec 2, "Connection Model"; design, "Identity")."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import cast
from urllib.parse import parse_qs

from msgspec import UNSET
from starlette.types import Receive, Scope, Send

from bubble.auth.identity import Identity
from bubble.protocol.errors import BubbleError, Forbidden, Unauthenticated
from bubble.protocol.frames import ErrorFrame, encode_frame
from bubble.server.identifying import bearer_of
from bubble.server.reading import RequestHeaders
from bubble.server.services import Services
from bubble.server.websocket.asgi_skin import AsgiSocket
from bubble.server.websocket.driver import CLOSE_DRAINING, CLOSE_TOO_MANY, CLOSE_UNAUTHENTICATED, Driver
from bubble.server.websocket.keeper import Keeper
from bubble.server.websocket.uvicorn_skin import EXTENSION, BubbleWebSocketProtocol

__all__ = ["WebSocketEndpoint"]

_URL_BEARERS = ("token", "access_token", "bearer", "authorization", "authToken")


class WebSocketEndpoint:
    """The ASGI application behind `/v1/ws`."""

    def __init__(self, services: Services) -> None:
        self._services = services
        streams = services.settings.streams
        self._keeper = Keeper(ping_interval=streams.ping_interval, peer_timeout=streams.peer_timeout)
        self._keeper_runs = False
        self._high_water = streams.high_water_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one connection: until it is closed, or until it was taken over from ASGI."""
        await receive()  # websocket.connect
        try:
            identity = await self._identify(scope)
        except Forbidden:
            await send({"type": "websocket.close", "code": 1008, "reason": "forbidden"})  # 403 before the upgrade
            return
        except BubbleError as error:
            await send({"type": "websocket.accept"})
            await self._turn_away(error, receive, send)
            return
        await send({"type": "websocket.accept", "headers": [(b"bubble-protocol-version", b"1")]})
        refusal = self._refusal(identity)
        if refusal is not None:
            await self._close(refusal[0], refusal[1], receive, send)
            return
        direct = cast("BubbleWebSocketProtocol | None", scope.get("extensions", {}).get(EXTENSION))
        if direct is None:
            await self._drive_asgi(identity, receive, send)
        else:
            self._drive_directly(direct, identity)

    def _refusal(self, identity: Identity) -> tuple[int, str] | None:
        hub = self._services.hub
        if self._services.draining.is_set():
            return CLOSE_DRAINING, ""
        limit = self._services.settings.streams.connections_per_principal
        if hub.connections_of(identity.principal.principal_id) >= limit:
            return CLOSE_TOO_MANY, "10"
        return None

    async def _drive_asgi(self, identity: Identity, receive: Receive, send: Send) -> None:
        socket = AsgiSocket(receive, send, high_water=self._high_water)
        driver = Driver(self._services, socket, identity)
        try:
            await socket.run(driver)
        finally:
            driver.gone()

    def _drive_directly(self, socket: BubbleWebSocketProtocol, identity: Identity) -> None:
        self._keep(socket)
        driver = Driver(self._services, socket, identity, forget=partial(self._keeper.remove, socket))
        socket.attach(driver, high_water=self._high_water)

    def _keep(self, socket: BubbleWebSocketProtocol) -> None:
        self._keeper.add(socket)
        if not self._keeper_runs:
            self._keeper_runs = True
            self._services.hub.tasks.spawn(self._keeper.run())

    async def _turn_away(self, error: BubbleError, receive: Receive, send: Send) -> None:
        frame = ErrorFrame(code=error.code, message=error.message, details=error.details or UNSET)
        await send({"type": "websocket.send", "text": encode_frame(frame).decode("utf-8")})
        code = CLOSE_UNAUTHENTICATED if isinstance(error, Unauthenticated) else CLOSE_DRAINING
        await self._close(code, error.code, receive, send)

    async def _close(self, code: int, reason: str, receive: Receive, send: Send) -> None:
        await send({"type": "websocket.close", "code": code, "reason": reason})
        while (await receive())["type"] != "websocket.disconnect":
            pass

    # --- who is calling ---------------------------------------------------------------------------------------------------------

    async def _identify(self, scope: Scope) -> Identity:
        """The identity behind the upgrade: bearer, ticket or session cookie. A bearer header never falls back to the others."""
        authenticator = self._services.authenticator
        headers = RequestHeaders(scope["headers"])
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)
        try:
            bearer = bearer_of(headers)
            if bearer is not None:
                return await authenticator.authenticate(bearer)
            if "ticket" in query:
                return await authenticator.authenticate_ticket(query["ticket"][0])
            _refuse_url_bearers(query)
            return await self._identify_by_cookie(headers)
        except Unauthenticated:
            self._services.metrics.refused("websocket")
            raise

    async def _identify_by_cookie(self, headers: RequestHeaders) -> Identity:
        browser = self._services.browser
        cookie = browser.read_cookie("; ".join(headers.all(b"cookie")))
        if cookie is None:
            raise Unauthenticated("No bearer, ticket or session came with the upgrade.")
        browser.require_origin(headers.one(b"origin"))
        return await self._services.authenticator.authenticate_session(cookie)


def _refuse_url_bearers(query: Mapping[str, object]) -> None:
    if any(name in query for name in _URL_BEARERS):
        raise Unauthenticated("A bearer in the URL is refused, as URLs are logged: use a ticket.")
