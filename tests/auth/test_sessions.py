"""Sessions, login codes and tickets: good once where they should be, never wider or longer than what made them."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable

import pytest

from bubble.auth.identity import Identity
from bubble.auth.lifetimes import Lifetimes
from bubble.protocol.errors import Forbidden, InvalidRequest, NotFound, Unauthenticated
from bubble.store.records import CredentialKind, PrincipalChanges
from tests.auth.actors import NOW, House, a_house
from tests.auth.issuers import NOW_SECONDS, SigningKey, claims, settings

pytestmark = pytest.mark.anyio

HOUR = 3_600_000
JWT_KEY = SigningKey("k1")


async def winners(attempts: list[Awaitable[object]]) -> int:
    """How many of the attempts, made at once, succeed; the others must be unauthenticated."""
    outcomes = await asyncio.gather(*attempts, return_exceptions=True)
    assert all(isinstance(one, Unauthenticated) for one in outcomes if isinstance(one, BaseException))
    return sum(not isinstance(one, BaseException) for one in outcomes)


async def refused(attempt: Awaitable[object]) -> bool:
    """Whether the attempt ends as unauthenticated."""
    try:
        await attempt
    except Unauthenticated:
        return True
    return False


# --- tickets --------------------------------------------------------------------------------------------------------------------


async def test_a_ticket_stands_for_the_bearer_that_made_it(house: House) -> None:
    ann = await house.identity_of("ann", expires_ms=NOW + HOUR)
    issued = await house.authenticator.mint_ticket(by=ann)
    identity = await house.authenticator.authenticate_ticket(issued.secret)
    assert identity.source == "ticket"
    assert identity.principal.principal_id == "ann"
    assert identity.credential_id == ann.credential_id
    assert identity.expires_ms == NOW + HOUR


@pytest.mark.requirement("PR-4-32")
async def test_of_fifty_who_come_with_one_ticket_one_gets_in(house: House) -> None:
    issued = await house.authenticator.mint_ticket(by=await house.identity_of("ann"))
    attempts: list[Awaitable[object]] = [house.authenticator.authenticate_ticket(issued.secret) for _ in range(50)]
    assert await winners(attempts) == 1


@pytest.mark.requirement("PR-4-32")
@pytest.mark.parametrize("kind", ["ticket", "login", "session"])
async def test_only_the_hash_of_a_secret_is_kept_and_no_repr_shows_it(house: House, kind: CredentialKind) -> None:
    ann = await house.identity_of("ann")
    issued = await house.authenticator.mint_ticket(by=ann)
    code = await house.authenticator.start_login("ann")
    session = await house.authenticator.start_session(by=ann)
    secret = {"ticket": issued.secret, "login": code.secret, "session": session.cookie}[kind]
    (kept,) = await house.store.list_credentials("ann", kind)
    assert kept.secret_hash == hashlib.sha256(secret.encode()).digest()
    assert secret not in repr((kept, issued, code, session))


@pytest.mark.requirement("PR-4-31")
@pytest.mark.parametrize(("passed", "is_refused"), [(29_999, False), (30_000, True)])
async def test_a_ticket_is_good_for_thirty_seconds(house: House, *, passed: int, is_refused: bool) -> None:
    issued = await house.authenticator.mint_ticket(by=await house.identity_of("ann"))
    assert issued.expires_ms == NOW + 30_000
    house.clock.pass_ms(passed)
    assert await refused(house.authenticator.authenticate_ticket(issued.secret)) is is_refused


@pytest.mark.requirement("PR-4-31")
async def test_a_ticket_that_came_too_late_is_spent_all_the_same(house: House) -> None:
    issued = await house.authenticator.mint_ticket(by=await house.identity_of("ann"))
    house.clock.pass_ms(30_000)
    assert await refused(house.authenticator.authenticate_ticket(issued.secret))
    house.clock.pass_ms(-30_000)
    assert await refused(house.authenticator.authenticate_ticket(issued.secret))


@pytest.mark.requirement("PR-4-35")
async def test_a_ticket_ends_before_its_time_with_its_bearer(house: House) -> None:
    ann = await house.identity_of("ann", expires_ms=NOW + 10_000)
    issued = await house.authenticator.mint_ticket(by=ann)
    assert issued.expires_ms == NOW + 10_000
    house.clock.pass_ms(10_000)
    assert await refused(house.authenticator.authenticate_ticket(issued.secret))


@pytest.mark.requirement("PR-4-35")
async def test_a_revoked_bearers_ticket_does_not_count(house: House) -> None:
    minted = await house.authenticator.mint_token("ann", by=await house.admin())
    issued = await house.authenticator.mint_ticket(by=await house.authenticator.authenticate(minted.token))
    await house.authenticator.revoke_token("ann", minted.token_id, by=await house.admin())
    assert await refused(house.authenticator.authenticate_ticket(issued.secret))


async def test_a_disabled_principals_ticket_does_not_count(house: House) -> None:
    issued = await house.authenticator.mint_ticket(by=await house.identity_of("ann"))
    await house.store.update_principal("ann", PrincipalChanges(disabled=True))
    assert await refused(house.authenticator.authenticate_ticket(issued.secret))


@pytest.mark.requirement("PR-4-34")
async def test_tickets_and_sessions_of_a_narrowed_token_are_narrowed_like_it(house: House) -> None:
    minted = await house.authenticator.mint_token(
        "ann", by=await house.admin(), capabilities=["thread.read"], threads=["t2", "t1"]
    )
    narrow = await house.authenticator.authenticate(minted.token)
    session = await house.authenticator.start_session(by=narrow)
    by_cookie = await house.authenticator.authenticate_session(session.cookie)
    ticket = await house.authenticator.mint_ticket(by=by_cookie)
    by_ticket = await house.authenticator.authenticate_ticket(ticket.secret)
    for identity in (session.identity, by_cookie, by_ticket):
        assert identity.capabilities == frozenset({"thread.read"})
        assert identity.threads == frozenset({"t1", "t2"})


@pytest.mark.requirement("PR-4-35")
async def test_what_is_made_from_a_jwt_ends_when_the_jwt_does() -> None:
    async with a_house(jwt=settings(JWT_KEY)) as house:
        ann = await house.authenticator.authenticate(JWT_KEY.sign(claims("ann", exp=NOW_SECONDS + 60)))
        end = (NOW_SECONDS + 60 + 30) * 1000
        ticket = await house.authenticator.mint_ticket(by=ann)
        session = await house.authenticator.start_session(by=ann)
        code = await house.authenticator.start_login("corp:ann", by=ann)
        token = await house.authenticator.mint_token("corp:ann", by=ann)
        by_ticket = await house.authenticator.authenticate_ticket(ticket.secret)
        by_code = await house.authenticator.consume_login(code.secret)
        by_token = await house.authenticator.authenticate(token.token)
        made: list[Identity] = [by_ticket, session.identity, by_code.identity, by_token]
        assert [each.expires_ms for each in made] == [end] * 4
        house.clock.now = end
        assert await house.authenticator.find_invalid(made) == set(made)
        assert await refused(house.authenticator.authenticate(token.token))
        assert await refused(house.authenticator.authenticate_session(session.cookie))


@pytest.mark.requirement("PR-4-34", "PR-4-35")
async def test_nobody_can_write_another_end_behind_a_secret() -> None:
    async with a_house(jwt=settings(JWT_KEY)) as house:
        ann = await house.authenticator.authenticate(JWT_KEY.sign(claims("ann", exp=NOW_SECONDS + 60)))
        ticket = (await house.authenticator.mint_ticket(by=ann)).secret
        bare, _, end = ticket.rpartition(".")
        for forged in (bare, f"{bare}.{int(end) + HOUR}", f"{ticket}.{int(end) + HOUR}", f"{bare}.", f"{ticket}0"):
            assert await refused(house.authenticator.authenticate_ticket(forged))
        assert not await refused(house.authenticator.authenticate_ticket(ticket))


@pytest.mark.requirement("PR-4-34")
async def test_an_admin_by_claim_makes_tickets_sessions_and_tokens_that_are_none() -> None:
    async with a_house(jwt=settings(JWT_KEY, admin_claim="role", admin_values=("root",))) as house:
        root = await house.authenticator.authenticate(JWT_KEY.sign(claims("ann", role="root")))
        assert root.principal.deployment_role == "admin"
        ticket = await house.authenticator.mint_ticket(by=root)
        token = await house.authenticator.mint_token("corp:ann", by=root)
        session = await house.authenticator.start_session(by=root)
        for identity in (
            await house.authenticator.authenticate_ticket(ticket.secret),
            await house.authenticator.authenticate(token.token),
            session.identity,
            await house.authenticator.authenticate_session(session.cookie),
        ):
            assert identity.principal.deployment_role == "user"


# --- login codes ----------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("PR-4-26")
async def test_of_fifty_who_come_with_one_login_code_one_gets_a_session(house: House) -> None:
    code = await house.authenticator.start_login("ann")
    attempts: list[Awaitable[object]] = [house.authenticator.consume_login(code.secret) for _ in range(50)]
    assert await winners(attempts) == 1
    assert len(await house.store.list_credentials("ann", "session")) == 1


@pytest.mark.requirement("PR-4-27")
@pytest.mark.parametrize(("passed", "is_refused"), [(15 * 60_000 - 1, False), (15 * 60_000, True)])
async def test_a_login_code_is_good_for_fifteen_minutes(house: House, *, passed: int, is_refused: bool) -> None:
    code = await house.authenticator.start_login("ann")
    house.clock.pass_ms(passed)
    assert await refused(house.authenticator.consume_login(code.secret)) is is_refused


async def test_a_session_by_login_code_outlives_the_code(house: House) -> None:
    opened = await house.authenticator.consume_login((await house.authenticator.start_login("ann")).secret)
    assert opened.expires_ms == NOW + Lifetimes().session_ms
    await house.store.purge(idempotency_ms=0)
    house.clock.now = opened.expires_ms - 1
    identity = await house.authenticator.authenticate_session(opened.cookie)
    assert (identity.source, identity.principal.principal_id) == ("session", "ann")
    house.clock.now = opened.expires_ms
    assert await refused(house.authenticator.authenticate_session(opened.cookie))


@pytest.mark.requirement("PR-4-35")
async def test_a_login_code_and_its_session_end_with_the_bearer_that_made_the_code(house: House) -> None:
    minted = await house.authenticator.mint_token("ann", by=await house.admin(), expires_ms=NOW + HOUR)
    ann = await house.authenticator.authenticate(minted.token)
    opened = await house.authenticator.consume_login((await house.authenticator.start_login("ann", by=ann)).secret)
    unused = await house.authenticator.start_login("ann", by=ann)
    assert opened.expires_ms == NOW + HOUR
    await house.authenticator.revoke_token("ann", minted.token_id, by=await house.admin())
    assert await refused(house.authenticator.authenticate_session(opened.cookie))
    assert await refused(house.authenticator.consume_login(unused.secret))


async def test_a_login_code_does_not_count_once_its_principal_or_who_made_it_is_disabled(house: House) -> None:
    by_server = await house.authenticator.start_login("ann")
    by_admin = await house.authenticator.start_login("ben", by=await house.identity_of("admin"))
    for principal_id in ("ann", "admin"):
        await house.store.update_principal(principal_id, PrincipalChanges(disabled=True))
    assert await refused(house.authenticator.consume_login(by_server.secret))
    assert await refused(house.authenticator.consume_login(by_admin.secret))


async def test_who_may_not_mint_for_somebody_makes_no_login_code_either(house: House) -> None:
    for by, target in (("ben", "ann"), ("ann-bot", "ann-bot"), ("ann", "admin")):
        with pytest.raises(Forbidden):
            await house.authenticator.start_login(target, by=await house.identity_of(by))
    with pytest.raises(NotFound):
        await house.authenticator.start_login("nobody")


# --- sessions -------------------------------------------------------------------------------------------------------------------


async def test_an_ended_session_does_not_count_nor_what_was_made_from_it(house: House) -> None:
    session = await house.authenticator.start_session(by=await house.identity_of("ann"))
    by_cookie = await house.authenticator.authenticate_session(session.cookie)
    ticket = await house.authenticator.mint_ticket(by=by_cookie)
    token = await house.authenticator.mint_token("ann-bot", by=by_cookie)
    socket = await house.authenticator.authenticate_ticket((await house.authenticator.mint_ticket(by=by_cookie)).secret)
    await house.authenticator.end_session(by_cookie)
    assert await refused(house.authenticator.authenticate_session(session.cookie))
    assert await refused(house.authenticator.authenticate_ticket(ticket.secret))
    assert await refused(house.authenticator.authenticate(token.token))
    assert await house.authenticator.find_invalid([socket]) == {socket}


async def test_only_a_session_can_be_ended_as_one(house: House) -> None:
    with pytest.raises(InvalidRequest):
        await house.authenticator.end_session(await house.identity_of("ann"))


async def test_a_secret_of_one_kind_is_none_of_another(house: House) -> None:
    ann = await house.identity_of("ann")
    authenticator = house.authenticator
    makers: dict[str, str] = {
        "token": await house.token_of("ann"),
        "session": (await authenticator.start_session(by=ann)).cookie,
        "ticket": (await authenticator.mint_ticket(by=ann)).secret,
        "login": (await authenticator.start_login("ann")).secret,
    }
    doors: dict[str, Callable[[str], Awaitable[object]]] = {
        "token": authenticator.authenticate,
        "session": authenticator.authenticate_session,
        "ticket": authenticator.authenticate_ticket,
        "login": authenticator.consume_login,
    }
    # The two that may be answered from memory are known by now.
    await authenticator.authenticate(makers["token"])
    await authenticator.authenticate_session(makers["session"])
    for kind, secret in makers.items():
        assert authenticator.known(secret) is None or kind == "token"
        for door, enter in doors.items():
            if door != kind:
                assert await refused(enter(secret)), (kind, door)
    for kind, secret in makers.items():
        assert not await refused(doors[kind](secret)), kind


async def test_lifetimes_can_be_set() -> None:
    async with a_house(lifetimes=Lifetimes(session_ms=3, login_ms=2, ticket_ms=1)) as house:
        ann = await house.identity_of("ann")
        assert (await house.authenticator.start_session(by=ann)).expires_ms == NOW + 3
        assert (await house.authenticator.start_login("ann")).expires_ms == NOW + 2
        assert (await house.authenticator.mint_ticket(by=ann)).expires_ms == NOW + 1
    with pytest.raises(ValueError, match="lifetime"):
        Lifetimes(ticket_ms=0)
