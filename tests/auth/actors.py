"""The people and machines of these tests, on a store in memory and with a clock that the test sets."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from bubble.auth.authenticator import Authenticator
from bubble.auth.identity import Identity
from bubble.auth.jwt_settings import JwtSettings
from bubble.auth.lifetimes import Lifetimes
from bubble.protocol.resources import Principal
from bubble.store.memory import MemoryStore
from bubble.store.records import NewPrincipal

__all__ = ["ADMIN", "NOW", "Clock", "House", "a_house"]

NOW = 1_778_070_896_789

ADMIN = NewPrincipal(principal_id="admin", kind="user", display_name="Admin", deployment_role="admin")
PEOPLE = (
    ADMIN,
    NewPrincipal(principal_id="ann", kind="user", display_name="Ann"),
    NewPrincipal(principal_id="ben", kind="user", display_name="Ben"),
    NewPrincipal(principal_id="ann-bot", kind="bot", display_name="Ann's bot", owner_principal_id="ann"),
    NewPrincipal(principal_id="mill", kind="system", display_name="Mill"),
)


class Clock:
    """Time as the test wants it, in milliseconds."""

    def __init__(self, now: int = NOW) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def pass_ms(self, ms: int) -> None:
        """Lets time go by."""
        self.now += ms


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """A store with people in it and an authenticator that was started."""

    store: MemoryStore
    clock: Clock
    authenticator: Authenticator

    async def token_of(self, principal_id: str, *, expires_ms: int | None = None) -> str:
        """A token as an admin hands it out."""
        minted = await self.authenticator.mint_token(principal_id, by=await self.admin(), expires_ms=expires_ms)
        return minted.token

    async def identity_of(self, principal_id: str, *, expires_ms: int | None = None) -> Identity:
        """The principal, come in by such a token."""
        return await self.authenticator.authenticate(await self.token_of(principal_id, expires_ms=expires_ms))

    async def admin(self) -> Identity:
        """The admin, as the server itself sees it, without a credential."""
        return Identity(principal=await self.principal("admin"), source="token")

    async def principal(self, principal_id: str) -> Principal:
        """The principal's record."""
        return await self.store.get_principal(principal_id)


@asynccontextmanager
async def a_house(*, jwt: JwtSettings | None = None, lifetimes: Lifetimes | None = None) -> AsyncIterator[House]:
    """A house with the usual people, cleared up afterwards."""
    clock = Clock()
    async with MemoryStore(clock=clock) as store:
        for person in PEOPLE:
            await store.create_principal(person)
        async with Authenticator(store, clock=clock, jwt=jwt, lifetimes=lifetimes) as authenticator:
            yield House(store=store, clock=clock, authenticator=authenticator)
