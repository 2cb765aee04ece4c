"""A real server in the test's own process: every route and the WebSocket, on a store in memory, without a network."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bubble.client import Backoff, BubbleConnection
from bubble.client.tokens import TokenProvider
from bubble.testing.asgi import StreamingASGITransport
from bubble.testing.asgi_sockets import asgi_connector

if TYPE_CHECKING:
    from bubble.protocol.resources import DeploymentRole, Principal, PrincipalKind
    from bubble.server.app import BubbleApp
    from bubble.server.settings import Settings
    from bubble.store.base import BubbleStore

__all__ = ["Account", "BubbleServer", "running_server"]

_URL = "http://bubble.test"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A principal and a token of it."""

    principal: Principal
    token: str

    @property
    def principal_id(self) -> str:
        """The principal's id."""
        return self.principal.principal_id


class BubbleServer:
    """A running server. `app` is its ASGI application, `store` what it keeps, `admin` a client of principal `admin`."""

    def __init__(self, app: BubbleApp, store: BubbleStore, *, admin_token: str) -> None:
        self.app = app
        self.store = store
        self.url = _URL
        self.admin_token = admin_token
        self.admin = self.connect(admin_token)

    def connect(self, token: TokenProvider | Account) -> BubbleConnection:
        """A client in somebody's name; use it as `async with`. It comes back quickly after a lost connection."""
        return BubbleConnection(
            self.url,
            token=token.token if isinstance(token, Account) else token,
            backoff=Backoff(first=0.01, longest=0.1),
            transport=StreamingASGITransport(self.app),
            connector=asgi_connector(self.app),
        )

    async def register(
        self,
        principal_id: str,
        *,
        kind: PrincipalKind = "user",
        deployment_role: DeploymentRole | None = None,
        owner: Account | None = None,
    ) -> Account:
        """A new principal with a token. A bot belongs to `owner`, by default to `admin`."""
        principal = await self.admin.create_principal(
            principal_id,
            kind=kind,
            deployment_role=deployment_role,
            owner_principal_id=None if owner is None else owner.principal_id,
        )
        minted = await self.admin.mint_token(principal_id)
        return Account(principal=principal, token=minted.token)


@asynccontextmanager
async def running_server(
    *, store: BubbleStore | None = None, settings: Settings | None = None
) -> AsyncIterator[BubbleServer]:
    """Starts a server and stops it at the end. Without `settings` it has the defaults, whatever the environment says.

    `store`, where given, stays the caller's to close.
    """
    from bubble.server.app import create_app
    from bubble.server.settings import Settings
    from bubble.store.opening import open_store

    token = secrets.token_urlsafe(32)
    chosen = settings or _default_settings(Settings, token)
    if chosen.admin_token is not None:
        token = chosen.admin_token.get_secret_value()
    own_store = store or await open_store("memory:")
    try:
        app = create_app(chosen, store=own_store)
        async with app:
            server = BubbleServer(app, own_store, admin_token=token)
            async with server.admin:
                yield server
    finally:
        if store is None:
            await own_store.close()


def _default_settings(kind: type[Settings], token: str) -> Settings:
    # No await in here: nobody else sees the environment without its variables.
    hidden = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("BUBBLE_")}
    try:
        with tempfile.NamedTemporaryFile(suffix=".toml") as nothing:
            return kind(config=nothing.name, admin_token=token)
    finally:
        os.environ.update(hidden)
