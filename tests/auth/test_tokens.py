"""Local tokens: how they look, what is kept of them, who mints them, for how long, and how they end."""

from __future__ import annotations

import hashlib
import re

import pytest
from msgspec import UNSET

from bubble.auth.last_uses import RESOLUTION_MS
from bubble.auth.policy import NARROWING_CAPABILITIES, Policy
from bubble.protocol.errors import Conflict, Forbidden, InvalidRequest, NotFound, Unauthenticated
from bubble.protocol.resources import MintedToken
from bubble.protocol.timestamps import format_ms
from bubble.store.records import NewPrincipal, PrincipalChanges
from tests.auth.actors import NOW, House

pytestmark = pytest.mark.anyio

HOUR = 3_600_000


async def counts(house: House, token: str) -> bool:
    """Whether the bearer counts, not answered from memory."""
    house.clock.pass_ms(1_000)
    try:
        await house.authenticator.authenticate(token)
    except Unauthenticated:
        return False
    return True


# --- what a token is ------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("PR-4-05", "PR-4-06")
@pytest.mark.parametrize(
    ("principal_id", "prefix"), [("ann", "bubble_user_"), ("ann-bot", "bubble_agent_"), ("mill", "bubble_system_")]
)
async def test_a_token_shows_the_kind_of_its_principal_before_256_random_bits(
    house: House, principal_id: str, prefix: str
) -> None:
    tokens = {await house.token_of(principal_id) for _ in range(20)}
    assert len(tokens) == 20
    assert all(re.fullmatch(prefix + "[0-9a-f]{64}", token) for token in tokens)


@pytest.mark.requirement("PR-4-07")
async def test_only_the_sha256_of_a_token_is_kept(house: House) -> None:
    token = await house.token_of("ann")
    (kept,) = await house.store.list_credentials("ann", "token")
    assert kept.secret_hash == hashlib.sha256(token.encode()).digest()
    assert token not in repr(kept)


@pytest.mark.requirement("PR-8-02")
async def test_a_minted_token_shows_its_secret_once(house: House) -> None:
    ann = await house.identity_of("ann")
    bare = await house.authenticator.mint_token("ann-bot", by=ann)
    assert (bare.principal_id, bare.name, bare.expires_at, bare.capabilities) == ("ann-bot", UNSET, UNSET, UNSET)
    full = await house.authenticator.mint_token(
        "ann-bot", by=ann, name="ci", expires_ms=NOW + HOUR, capabilities=["thread.read"], threads=["t1", "t2", "t1"]
    )
    assert full.expires_at == format_ms(NOW + HOUR)
    assert (full.capabilities, full.threads) == (["thread.read"], ["t1", "t2"])
    listed = await house.authenticator.list_tokens("ann-bot", by=ann)
    assert {each.token_id for each in listed} == {bare.token_id, full.token_id}
    assert not any(isinstance(each, MintedToken) for each in listed)


@pytest.mark.parametrize(
    "text",
    ["", " ", "bubble_user_", "bubble_user_" + "0" * 64, "x" * 16_385, "nul\x00", "ü", "\ud800"],
    ids=lambda text: repr(text[:14]),
)
async def test_what_is_no_token_gets_the_same_answer_as_one_that_ended(house: House, text: str) -> None:
    minted = await house.authenticator.mint_token("ann", by=await house.admin())
    await house.authenticator.revoke_token("ann", minted.token_id, by=await house.admin())
    with pytest.raises(Unauthenticated) as ended:
        await house.authenticator.authenticate(minted.token)
    with pytest.raises(Unauthenticated) as unknown:
        await house.authenticator.authenticate(text)
    assert unknown.value.message == ended.value.message
    assert unknown.value.details is ended.value.details is None


async def test_a_token_is_exact_to_the_character(house: House) -> None:
    token = await house.token_of("ann")
    for near in (token.upper(), token + " ", " " + token, token[:-1], token + "\n"):
        assert not await counts(house, near)
    assert await counts(house, token)


# --- how it ends ----------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("PR-4-08")
async def test_a_token_counts_until_the_millisecond_before_it_expires(house: House) -> None:
    token = await house.token_of("ann", expires_ms=NOW + HOUR)
    house.clock.now = NOW + HOUR - 1
    assert (await house.authenticator.authenticate(token)).expires_ms == NOW + HOUR
    house.clock.now = NOW + HOUR
    assert house.authenticator.known(token) is None
    with pytest.raises(Unauthenticated):
        await house.authenticator.authenticate(token)


@pytest.mark.requirement("PR-4-10")
async def test_a_revoked_token_does_not_count_from_that_moment(house: House) -> None:
    ann = await house.identity_of("ann")
    minted = await house.authenticator.mint_token("ann", by=ann)
    await house.authenticator.authenticate(minted.token)
    await house.authenticator.revoke_token("ann", minted.token_id, by=ann)
    assert house.authenticator.known(minted.token) is None
    with pytest.raises(Unauthenticated):
        await house.authenticator.authenticate(minted.token)


async def test_tokens_of_a_disabled_principal_do_not_count_until_it_is_enabled_again(house: House) -> None:
    token = await house.token_of("ann")
    await house.store.update_principal("ann", PrincipalChanges(disabled=True))
    assert not await counts(house, token)
    await house.store.update_principal("ann", PrincipalChanges(disabled=False))
    assert await counts(house, token)


@pytest.mark.requirement("PR-4-35")
async def test_what_was_made_from_a_revoked_token_ends_with_it_however_far_down(house: House) -> None:
    first = await house.authenticator.mint_token("ann", by=await house.admin())
    ann = await house.authenticator.authenticate(first.token)
    second = await house.authenticator.mint_token("ann", by=ann)
    third = await house.authenticator.mint_token("ann-bot", by=await house.authenticator.authenticate(second.token))
    session = await house.authenticator.start_session(by=await house.authenticator.authenticate(second.token))
    assert await counts(house, third.token)
    await house.authenticator.revoke_token("ann", first.token_id, by=await house.admin())
    assert not await counts(house, second.token)
    assert not await counts(house, third.token)
    with pytest.raises(Unauthenticated):
        await house.authenticator.authenticate_session(session.cookie)


async def test_a_token_minted_while_its_parent_is_being_revoked_does_not_count(house: House) -> None:
    parent = await house.authenticator.mint_token("ann", by=await house.admin())
    ann = await house.authenticator.authenticate(parent.token)
    await house.store.revoke_credential("ann", parent.token_id)
    child = await house.authenticator.mint_token("ann", by=ann)
    assert not await counts(house, child.token)


@pytest.mark.requirement("PR-4-35")
async def test_a_bots_token_ends_with_the_owner_whose_token_made_it(house: House) -> None:
    minted = await house.authenticator.mint_token("ann-bot", by=await house.identity_of("ann"))
    await house.store.update_principal("ann", PrincipalChanges(disabled=True))
    assert not await counts(house, minted.token)


# --- who mints ------------------------------------------------------------------------------------------------------------------

MAY_MINT = {
    "admin": {"admin", "ann", "ben", "ann-bot", "mill"},
    "ann": {"ann", "ann-bot"},
    "ben": {"ben"},
    "ann-bot": set(),
    "mill": set(),
}
PAIRS = [(by, target) for by in MAY_MINT for target in MAY_MINT]


@pytest.mark.requirement("PR-4-03", "PR-4-37")
@pytest.mark.parametrize(("by", "target"), PAIRS)
async def test_a_user_mints_for_itself_and_its_bots_an_admin_for_all_and_a_bot_for_nobody(
    house: House, by: str, target: str
) -> None:
    identity = await house.identity_of(by)
    if target in MAY_MINT[by]:
        minted = await house.authenticator.mint_token(target, by=identity)
        assert (await house.authenticator.authenticate(minted.token)).principal.principal_id == target
    else:
        with pytest.raises(Forbidden):
            await house.authenticator.mint_token(target, by=identity)
        assert len(await house.store.list_credentials(target, "token")) == (by == target)


@pytest.mark.requirement("PR-4-03")
@pytest.mark.parametrize(("by", "target"), PAIRS)
async def test_who_may_mint_may_list_and_revoke_and_nobody_else(house: House, by: str, target: str) -> None:
    minted = await house.authenticator.mint_token(target, by=await house.admin())
    identity = await house.identity_of(by)
    if target in MAY_MINT[by]:
        assert minted.token_id in {each.token_id for each in await house.authenticator.list_tokens(target, by=identity)}
        await house.authenticator.revoke_token(target, minted.token_id, by=identity)
        assert not await counts(house, minted.token)
    else:
        with pytest.raises(Forbidden):
            await house.authenticator.list_tokens(target, by=identity)
        with pytest.raises(Forbidden):
            await house.authenticator.revoke_token(target, minted.token_id, by=identity)
        assert await counts(house, minted.token)


@pytest.mark.requirement("PR-4-37")
async def test_not_even_a_bot_that_is_an_admin_mints_for_itself(house: House) -> None:
    await house.store.update_principal("ann-bot", PrincipalChanges(deployment_role="admin"))
    bot = await house.identity_of("ann-bot")
    with pytest.raises(Forbidden):
        await house.authenticator.mint_token("ann-bot", by=bot)
    assert (await house.authenticator.mint_token("ben", by=bot)).principal_id == "ben"


@pytest.mark.requirement("PR-4-34")
async def test_an_owner_gets_no_token_of_its_bot_that_an_admin_raised_above_it(house: House) -> None:
    ann = await house.identity_of("ann")
    await house.store.update_principal("ann-bot", PrincipalChanges(deployment_role="admin"))
    with pytest.raises(Forbidden):
        await house.authenticator.mint_token("ann-bot", by=ann)
    with pytest.raises(Forbidden):
        await house.authenticator.start_login("ann-bot", by=ann)


async def test_an_unknown_a_disabled_and_the_servers_own_principal_get_none(house: House) -> None:
    admin = await house.admin()
    await house.store.create_principal(NewPrincipal(principal_id="system:bubble", kind="system", display_name="Bubble"))
    await house.store.update_principal("ben", PrincipalChanges(disabled=True))
    with pytest.raises(NotFound):
        await house.authenticator.mint_token("nobody", by=admin)
    with pytest.raises(Conflict):
        await house.authenticator.mint_token("ben", by=admin)
    with pytest.raises(Forbidden):
        await house.authenticator.mint_token("system:bubble", by=admin)


async def test_a_token_is_revoked_under_its_own_principal_only(house: House) -> None:
    admin = await house.admin()
    minted = await house.authenticator.mint_token("ann", by=admin)
    session = await house.authenticator.start_session(by=await house.identity_of("ann"))
    assert session.identity.credential_id is not None
    for principal_id, token_id in (
        ("ben", minted.token_id),
        ("ann", "0" * 32),
        ("ann", session.identity.credential_id),
    ):
        with pytest.raises(NotFound):
            await house.authenticator.revoke_token(principal_id, token_id, by=admin)
    assert await counts(house, minted.token)
    assert (await house.authenticator.authenticate_session(session.cookie)).source == "session"


# --- for how long, and how wide -------------------------------------------------------------------------------------------------


@pytest.mark.requirement("PR-4-35")
@pytest.mark.parametrize(
    ("wanted", "gets"), [(None, NOW + HOUR), (NOW + 2 * HOUR, NOW + HOUR), (NOW + HOUR - 1, NOW + HOUR - 1)]
)
async def test_a_minted_token_ends_no_later_than_the_bearer_that_made_it(
    house: House, wanted: int | None, gets: int
) -> None:
    ann = await house.identity_of("ann", expires_ms=NOW + HOUR)
    minted = await house.authenticator.mint_token("ann-bot", by=ann, expires_ms=wanted)
    assert minted.expires_at == format_ms(gets)
    house.clock.now = gets
    assert not await counts(house, minted.token)


@pytest.mark.requirement("PR-4-11", "PR-4-12")
async def test_a_narrowed_token_is_narrowed_when_it_comes_back(house: House) -> None:
    minted = await house.authenticator.mint_token(
        "admin", by=await house.admin(), capabilities=["thread.read", "threads.create"], threads=["t1"]
    )
    identity = await house.authenticator.authenticate(minted.token)
    guard = Policy().guard(identity)
    assert guard.has("thread.read", thread_id="t1", role=None)
    assert not guard.has("events.message_part", thread_id="t1", role=None)
    assert not guard.has("thread.read", thread_id="t2", role="owner")
    assert Policy().deployment_capabilities(identity) == frozenset()


@pytest.mark.requirement("PR-4-36")
@pytest.mark.parametrize(("capabilities", "threads"), [(sorted(NARROWING_CAPABILITIES), None), (None, ["t1"])])
@pytest.mark.parametrize("principal_id", ["ann", "admin"])
async def test_a_narrowed_token_mints_nothing_and_manages_nothing(
    house: House, capabilities: list[str] | None, threads: list[str] | None, principal_id: str
) -> None:
    made = await house.authenticator.mint_token(
        principal_id, by=await house.admin(), capabilities=capabilities, threads=threads
    )
    narrow = await house.authenticator.authenticate(made.token)
    for target in (principal_id, "ann-bot"):
        with pytest.raises(Forbidden):
            await house.authenticator.mint_token(target, by=narrow)
        with pytest.raises(Forbidden):
            await house.authenticator.start_login(target, by=narrow)
        with pytest.raises(Forbidden):
            await house.authenticator.list_tokens(target, by=narrow)
    with pytest.raises(Forbidden):
        await house.authenticator.revoke_token(principal_id, made.token_id, by=narrow)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"capabilities": []}, "capabilities"),
        ({"capabilities": ["thread.read", "thread.burn"]}, "capabilities[1]"),
        ({"threads": []}, "threads"),
        ({"threads": ["t1", "-"]}, "threads[1]"),
        ({"threads": [f"t{number}" for number in range(1_001)]}, "threads"),
        ({"expires_ms": NOW}, "expiresAt"),
        ({"expires_ms": -1}, "expiresAt"),
        ({"name": ""}, "name"),
        ({"name": "n" * 129}, "name"),
    ],
)
async def test_a_wrong_field_of_a_mint_is_named(house: House, options: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidRequest, match=re.escape(f"`{field}`")):
        await house.authenticator.mint_token("ann", by=await house.admin(), **options)  # type: ignore[arg-type]
    assert await house.store.list_credentials("ann", "token") == []


# --- last use -------------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("PR-4-09")
async def test_the_last_use_of_a_token_is_shown(house: House) -> None:
    admin = await house.admin()
    token = await house.token_of("ann")
    assert (await house.authenticator.list_tokens("ann", by=admin))[0].last_used_at is UNSET
    house.clock.pass_ms(5_000)
    await house.authenticator.authenticate(token)
    assert (await house.authenticator.list_tokens("ann", by=admin))[0].last_used_at == format_ms(NOW + 5_000)


@pytest.mark.requirement("PR-4-09")
async def test_a_busy_token_costs_one_write_a_minute(house: House) -> None:
    token = await house.token_of("ann")
    for _ in range(30):
        await house.authenticator.authenticate(token)
        house.clock.pass_ms(1_000)
    (shown,) = await house.authenticator.list_tokens("ann", by=await house.admin())
    assert shown.last_used_at == format_ms(NOW + 29_000)
    await house.authenticator.authenticate(token)
    (shown,) = await house.authenticator.list_tokens("ann", by=await house.admin())
    assert shown.last_used_at == format_ms(NOW + 29_000)
    house.clock.pass_ms(RESOLUTION_MS)
    await house.authenticator.authenticate(token)
    (shown,) = await house.authenticator.list_tokens("ann", by=await house.admin())
    assert shown.last_used_at == format_ms(NOW + 30_000 + RESOLUTION_MS)


@pytest.mark.requirement("PR-4-09")
async def test_last_uses_are_written_at_the_end_at_the_latest(house: House) -> None:
    await house.authenticator.authenticate(await house.token_of("ann"))
    await house.authenticator.close()
    (kept,) = await house.store.list_credentials("ann", "token")
    assert kept.last_used_ms == NOW
