"""Keys over HTTP from a real server: kept, fetched again, and never asked for more often than the bound allows."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from bubble.auth.fetched_keys import FRESH_MS, MAX_ANSWER_BYTES, PAUSE_MS, PAUSE_WITHOUT_KEYS_MS, STALE_MS, FetchedKeys
from bubble.auth.jwt_settings import ALGORITHMS, JwtSettings
from bubble.protocol.errors import Unauthenticated, Unavailable
from tests.auth.actors import Clock, House, a_house
from tests.auth.issuers import AUDIENCE, ISSUER, KeyServer, Mood, SigningKey, a_key_server, claims, unsigned

pytestmark = pytest.mark.anyio

OLD = SigningKey("old")
NEW = SigningKey("new", number=1)


@pytest.fixture
async def server() -> AsyncIterator[KeyServer]:
    async with a_key_server(OLD) as it:
        yield it


@asynccontextmanager
async def house_of(server: KeyServer) -> AsyncIterator[House]:
    """A house that fetches the keys of `ISSUER` from the server."""
    jwt = JwtSettings(issuer=ISSUER, audience=(AUDIENCE,), alias="corp", jwks_url=f"{server.url}/keys")
    async with a_house(jwt=jwt) as house:
        yield house


async def comes_in(house: House, key: SigningKey, subject: str = "ann") -> bool:
    """Whether a fresh JWT signed with that key counts."""
    now = house.clock.now // 1000
    try:
        await house.authenticator.authenticate(key.sign(claims(subject, iat=now, exp=now + 300)))
    except Unauthenticated:
        return False
    return True


@asynccontextmanager
async def keys_at(url: str | None, *, issuer: str = ISSUER) -> AsyncIterator[tuple[FetchedKeys, Clock]]:
    clock = Clock()
    keys = FetchedKeys(issuer, url, ALGORITHMS, clock=clock)
    try:
        yield keys, clock
    finally:
        await keys.close()


@pytest.mark.requirement("PR-4-13")
async def test_keys_are_fetched_once_and_kept(server: KeyServer) -> None:
    async with house_of(server) as house:
        assert server.asked == []
        for number in range(5):
            assert await comes_in(house, OLD, f"user-{number}")
        assert server.asked == ["/keys"]


async def test_many_who_need_the_keys_at_once_cause_one_fetch(server: KeyServer) -> None:
    async with house_of(server) as house:
        outcomes = await asyncio.gather(*(comes_in(house, OLD, f"user-{number}") for number in range(30)))
    assert all(outcomes)
    assert server.asked == ["/keys"]


@pytest.mark.requirement("PR-4-13")
async def test_a_rotated_key_is_found_without_a_restart_and_the_old_one_goes(server: KeyServer) -> None:
    async with house_of(server) as house:
        assert await comes_in(house, OLD)
        server.keys = [NEW]
        house.clock.pass_ms(PAUSE_MS)
        assert await comes_in(house, NEW)
        assert not await comes_in(house, OLD, "ben")


async def test_unknown_keys_are_asked_for_once_in_a_while_however_many_tokens_name_one(server: KeyServer) -> None:
    async with house_of(server) as house:
        assert await comes_in(house, OLD)
        for number in range(20):
            assert not await comes_in(house, SigningKey(f"made-up-{number}", number=1))
        assert len(server.asked) == 1
        house.clock.pass_ms(PAUSE_MS)
        for number in range(20):
            assert not await comes_in(house, SigningKey(f"made-up-{number}", number=1))
        assert len(server.asked) == 2
        assert await comes_in(house, OLD, "ben")


@pytest.mark.requirement("PR-4-15")
async def test_an_algorithm_that_is_not_configured_is_no_reason_to_ask_the_issuer(server: KeyServer) -> None:
    async with house_of(server) as house:
        for algorithm in ("none", "HS256", "RS512"):
            with pytest.raises(Unauthenticated):
                await house.authenticator.authenticate(unsigned({"alg": algorithm, "kid": "old"}, claims(), b"x"))
    assert server.asked == []


async def test_a_withdrawn_key_stops_counting_once_the_set_is_no_longer_fresh(server: KeyServer) -> None:
    async with house_of(server) as house:
        assert await comes_in(house, OLD)
        server.keys = [NEW]
        house.clock.pass_ms(FRESH_MS - 1)
        assert await comes_in(house, OLD)
        house.clock.pass_ms(1)
        assert not await comes_in(house, OLD, "ben")


@pytest.mark.parametrize("mood", ["fails", "redirects", "talks nonsense", "never ends"])
async def test_while_the_issuer_does_not_answer_well_the_keys_that_are_held_go_on_serving(
    server: KeyServer, mood: Mood
) -> None:
    async with keys_at(f"{server.url}/keys") as (keys, clock):
        assert await keys.find("old", "RS256")
        server.mood = mood
        clock.pass_ms(STALE_MS - 1)
        assert await keys.find("old", "RS256")
        assert await keys.find("new", "RS256") is None
        clock.pass_ms(1)
        with pytest.raises(Unavailable):
            await keys.find("old", "RS256")
        server.mood = "answers"
        clock.pass_ms(PAUSE_MS)
        assert await keys.find("old", "RS256")


async def test_a_failing_issuer_is_not_asked_again_at_once(server: KeyServer) -> None:
    server.mood = "fails"
    async with keys_at(f"{server.url}/keys") as (keys, clock):
        for _ in range(5):
            with pytest.raises(Unavailable):
                await keys.find("old", "RS256")
        assert len(server.asked) == 1
        server.mood = "answers"
        clock.pass_ms(PAUSE_WITHOUT_KEYS_MS)
        assert await keys.find("old", "RS256")


async def test_without_any_keys_it_cannot_be_told_who_is_calling() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        jwt = JwtSettings(
            issuer=ISSUER,
            audience=(AUDIENCE,),
            alias="corp",
            jwks_url=f"http://127.0.0.1:{unused.getsockname()[1]}/keys",
        )
        async with a_house(jwt=jwt) as house:
            with pytest.raises(Unavailable):
                await house.authenticator.authenticate(OLD.sign(claims()))
            token = await house.token_of("ann")
            assert (await house.authenticator.authenticate(token)).principal.principal_id == "ann"
            with pytest.raises(Unauthenticated):
                await house.authenticator.authenticate("nonsense")


async def test_a_fetch_on_its_way_does_not_hold_up_a_token_whose_key_is_known(server: KeyServer) -> None:
    async with keys_at(f"{server.url}/keys") as (keys, clock):
        assert await keys.find("old", "RS256")
        server.released.clear()
        server.reached.clear()
        clock.pass_ms(FRESH_MS)
        fetching = asyncio.create_task(keys.find("new", "RS256"))
        async with asyncio.timeout(5):
            await server.reached.wait()
            assert await keys.find("old", "RS256")
        assert not fetching.done()
        server.keys = [NEW]
        server.released.set()
        assert await fetching


async def test_a_cancelled_fetch_leaves_the_next_one_free(server: KeyServer) -> None:
    async with keys_at(f"{server.url}/keys") as (keys, clock):
        server.released.clear()
        fetching = asyncio.create_task(keys.find("old", "RS256"))
        async with asyncio.timeout(5):
            await server.reached.wait()
        fetching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await fetching
        server.released.set()
        clock.pass_ms(PAUSE_WITHOUT_KEYS_MS)
        assert await keys.find("old", "RS256")


async def test_a_clock_that_is_set_back_does_not_keep_old_keys_alive(server: KeyServer) -> None:
    async with keys_at(f"{server.url}/keys") as (keys, clock):
        assert await keys.find("old", "RS256")
        server.keys = [NEW]
        clock.pass_ms(-10 * STALE_MS)
        assert await keys.find("old", "RS256") is None


@pytest.mark.requirement("PR-4-13")
async def test_without_a_key_address_the_issuer_is_asked_for_it(server: KeyServer) -> None:
    async with keys_at(None, issuer=server.url) as (keys, _):
        assert await keys.find("old", "RS256")
    assert server.asked == ["/.well-known/openid-configuration", "/keys"]


async def test_another_issuers_configuration_is_not_believed(server: KeyServer) -> None:
    server.issuer_says = "https://evil.example.org"
    async with keys_at(None, issuer=server.url) as (keys, _):
        with pytest.raises(Unavailable):
            await keys.find("old", "RS256")
    assert server.asked == ["/.well-known/openid-configuration"]


async def test_the_bound_on_an_answer_is_lower_than_what_a_hostile_issuer_sends_here() -> None:
    assert MAX_ANSWER_BYTES < 2 * 1024 * 1024
