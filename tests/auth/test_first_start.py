"""How the operator of a new server gets in, and stays the only one who does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from bubble.auth.authenticator import Authenticator
from bubble.auth.secret_texts import MIN_ADMIN_TOKEN
from bubble.protocol.errors import Conflict, Unauthenticated
from bubble.store.memory import MemoryStore
from bubble.store.records import PrincipalChanges
from tests.auth.actors import ADMIN, PEOPLE, Clock

pytestmark = pytest.mark.anyio

CHOSEN = "chosen-by-the-operator-0123456789"
OTHER = "another-one-of-the-operator-01234"


@pytest.fixture
async def empty() -> AsyncIterator[Authenticator]:
    clock = Clock()
    async with MemoryStore(clock=clock) as store, Authenticator(store, clock=clock) as authenticator:
        yield authenticator


async def who_is(authenticator: Authenticator, token: str) -> tuple[str, str, str]:
    principal = (await authenticator.authenticate(token)).principal
    return principal.principal_id, principal.kind, principal.deployment_role


async def test_the_first_start_gives_a_token_and_a_login_code_and_no_later_one_does(empty: Authenticator) -> None:
    access = await empty.ensure_admin()
    assert access is not None
    assert await who_is(empty, access.token) == ("admin", "user", "admin")
    opened = await empty.consume_login(access.login_code)
    assert opened.identity.principal.principal_id == "admin"
    assert access.token not in repr(access)
    assert access.login_code not in repr(access)
    assert await empty.ensure_admin() is None


async def test_an_admin_whom_a_start_that_was_cut_off_left_without_a_token_gets_one(empty: Authenticator) -> None:
    await empty._store.create_principal(ADMIN)
    access = await empty.ensure_admin()
    assert access is not None
    assert await who_is(empty, access.token) == ("admin", "user", "admin")


async def test_two_servers_that_start_at_once_make_one_admin(empty: Authenticator) -> None:
    twin = Authenticator(empty._store)
    await asyncio.gather(empty.ensure_admin(admin_token=CHOSEN), twin.ensure_admin(admin_token=CHOSEN))
    assert await who_is(empty, CHOSEN) == ("admin", "user", "admin")


async def test_the_operators_own_token_counts_and_nothing_is_printed(empty: Authenticator) -> None:
    assert await empty.ensure_admin(admin_token=CHOSEN) is None
    assert await empty.ensure_admin(admin_token=CHOSEN) is None
    assert await who_is(empty, CHOSEN) == ("admin", "user", "admin")
    assert len(await empty._store.list_credentials("admin", "token")) == 1


async def test_another_token_of_the_operator_ends_the_one_before_and_what_was_made_from_it(
    empty: Authenticator,
) -> None:
    await empty.ensure_admin(admin_token=CHOSEN)
    made = await empty.mint_token("admin", by=await empty.authenticate(CHOSEN))
    await empty.ensure_admin(admin_token=OTHER)
    assert await who_is(empty, OTHER) == ("admin", "user", "admin")
    await asyncio.sleep(0)
    for ended in (CHOSEN, made.token):
        with pytest.raises(Unauthenticated):
            await empty.authenticate(ended)


async def test_a_token_of_the_operator_that_was_revoked_is_not_revived(empty: Authenticator) -> None:
    await empty.ensure_admin(admin_token=CHOSEN)
    admin = await empty.authenticate(CHOSEN)
    assert admin.credential_id is not None
    await empty.revoke_token("admin", admin.credential_id, by=admin)
    with pytest.raises(Conflict):
        await empty.ensure_admin(admin_token=CHOSEN)
    await empty.ensure_admin(admin_token=OTHER)
    assert await who_is(empty, OTHER) == ("admin", "user", "admin")


async def test_an_operators_token_is_of_no_use_to_a_disabled_admin(empty: Authenticator) -> None:
    await empty.ensure_admin(admin_token=CHOSEN)
    await empty._store.update_principal("admin", PrincipalChanges(disabled=True))
    with pytest.raises(Conflict):
        await empty.ensure_admin(admin_token=CHOSEN)


async def test_somebody_elses_token_does_not_become_the_operators(empty: Authenticator) -> None:
    access = await empty.ensure_admin()
    assert access is not None
    admin = await empty.authenticate(access.token)
    store = empty._store
    ann = next(each for each in PEOPLE if each.principal_id == "ann")
    await store.create_principal(ann)
    anns = await empty.mint_token("ann", by=admin)
    with pytest.raises(Conflict):
        await empty.ensure_admin(admin_token=anns.token)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x" * (MIN_ADMIN_TOKEN - 1),
        "x" * 16_385,
        "with a space in it 0123456789 abcdef",
        "ümlaut" * 10,
        "x" * 40 + "\n",
    ],
    ids=lambda text: f"{text[:8]!r}, {len(text)}",
)
async def test_an_operators_token_that_is_weak_or_cannot_be_sent_is_refused_before_anything_is_done(
    empty: Authenticator, text: str
) -> None:
    with pytest.raises(ValueError, match="admin token must"):
        await empty.ensure_admin(admin_token=text)
    assert (await empty._store.list_principals()).principals == []
    await empty.ensure_admin(admin_token="x" * MIN_ADMIN_TOKEN)
