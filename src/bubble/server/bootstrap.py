"""The first start: the principal `admin`, and a way in for the person who started the server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bubble.auth.identity import Identity
from bubble.protocol.errors import NotFound
from bubble.protocol.resources import Principal
from bubble.store.records import NewPrincipal

if TYPE_CHECKING:
    from bubble.server.services import Services

__all__ = ["ADMIN", "FirstStart", "bootstrap"]

ADMIN = "admin"


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstStart:
    """What to tell the person who started the server, once: a link that logs a browser in, and the admin's token."""

    login_url: str
    token: str


async def bootstrap(services: Services) -> FirstStart | None:
    """Registers the admin where there is none; secrets only if nobody could get in otherwise."""
    admin = await _admin(services)
    if services.settings.admin_token is not None or await _has_credentials(services):
        return None
    identity = Identity(principal=admin, source="token")
    minted = await services.authenticator.mint_token(identity, admin, name="first start")
    code = await services.authenticator.start_login(admin.principal_id)
    return FirstStart(login_url=f"{services.url}/login?code={code}", token=minted.token)


async def _admin(services: Services) -> Principal:
    try:
        return await services.store.get_principal(ADMIN)
    except NotFound:
        new = NewPrincipal(principal_id=ADMIN, kind="user", display_name="Admin", deployment_role="admin")
        return await services.store.create_principal(new)


async def _has_credentials(services: Services) -> bool:
    return any([await services.store.list_credentials(ADMIN, kind) for kind in ("token", "session")])
