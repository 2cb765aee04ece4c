"""The principal `admin` and how its operator gets in (design of the server: first start; protocol, section 8)."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from typing import Final

from bubble.auth.drivers import is_disabled
from bubble.auth.one_use import OneUseSecrets
from bubble.auth.secret_texts import check_admin_token, hash_of, new_token
from bubble.protocol.errors import Conflict, NotFound
from bubble.protocol.identifiers import new_id
from bubble.protocol.resources import Principal
from bubble.protocol.timestamps import Clock
from bubble.store.base import BubbleStore
from bubble.store.records import Credential, NewPrincipal

__all__ = ["ADMIN", "AdminAccess", "ensure_admin"]

ADMIN: Final = "admin"
_CHOSEN: Final = "BUBBLE_ADMIN_TOKEN"
_FIRST: Final = "first start"


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminAccess:
    """What the first start prints, once: a token, and the code of a login link."""

    token: str = field(repr=False)
    login_code: str = field(repr=False)


async def ensure_admin(
    store: BubbleStore, *, admin_token: str | None, login_ms: int, clock: Clock
) -> AdminAccess | None:
    """Makes sure that there is an admin who can get in.

    With `admin_token`, that is the admin's token from now on, and one that was configured before is revoked. Without it an admin that
    never had a token gets one, which is returned. Raises `ValueError` for a token that is too short, `Conflict` for one that was revoked.
    """
    if admin_token is not None:
        check_admin_token(admin_token)
    await _ensure_principal(store)
    if admin_token is not None:
        await _ensure_chosen(store, admin_token, clock)
        return None
    if await store.list_credentials(ADMIN, "token"):
        return None
    token = new_token("user")
    await _add(store, token, name=_FIRST, clock=clock)
    code = await OneUseSecrets(store, "login", lifetime_ms=login_ms, clock=clock).issue(ADMIN, by=None)
    return AdminAccess(token=token, login_code=code.secret)


async def _ensure_principal(store: BubbleStore) -> None:
    try:
        await store.get_principal(ADMIN)
    except NotFound:
        await _create(store)


async def _create(store: BubbleStore) -> None:
    new = NewPrincipal(principal_id=ADMIN, kind="user", display_name="Administrator", deployment_role="admin")
    try:
        await store.create_principal(new)
    except Conflict:  # another server that starts on the same data was quicker
        return


async def _ensure_chosen(store: BubbleStore, admin_token: str, clock: Clock) -> None:
    chosen = hash_of(admin_token)
    for each in await store.list_credentials(ADMIN, "token"):
        if each.name == _CHOSEN and each.revoked_ms is None and not hmac.compare_digest(each.secret_hash, chosen):
            await store.revoke_credential(ADMIN, each.credential_id)
    known = await store.find_credential("token", chosen)
    if known is None:
        await _add(store, admin_token, name=_CHOSEN, clock=clock)
    elif not _is_usable(*known, clock):
        raise Conflict(
            "The admin token that was set (admin_token) was revoked, or belongs to somebody else: choose another one."
        )


def _is_usable(credential: Credential, principal: Principal, clock: Clock) -> bool:
    return (
        principal.principal_id == ADMIN and not is_disabled(principal) and credential.state(now_ms=clock()) == "valid"
    )


async def _add(store: BubbleStore, token: str, *, name: str, clock: Clock) -> None:
    await store.add_credential(
        Credential(
            credential_id=new_id(),
            kind="token",
            secret_hash=hash_of(token),
            principal_id=ADMIN,
            created_ms=clock(),
            name=name,
        )
    )
