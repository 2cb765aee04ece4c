"""Who a JWT stands for: provisioned at first sight, linked by an admin, and nobody by mere likeness of names."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from msgspec import UNSET

from bubble.protocol.errors import Conflict, Forbidden, InvalidRequest, NotFound, Unauthenticated
from bubble.store.records import NewPrincipal
from tests.auth.actors import House, a_house
from tests.auth.issuers import ISSUER, SigningKey, claims, settings

pytestmark = pytest.mark.anyio

KEY = SigningKey("k1")


@pytest.fixture
async def house() -> AsyncIterator[House]:
    async with a_house(jwt=settings(KEY)) as it:
        yield it


async def who_is(house: House, subject: str, **others: object) -> str:
    """The principal that a JWT of the subject stands for."""
    identity = await house.authenticator.authenticate(KEY.sign(claims(subject, **others)))
    return identity.principal.principal_id


@pytest.mark.requirement("PR-4-17")
async def test_a_subject_becomes_a_user_at_first_sight_and_the_same_one_ever_after(house: House) -> None:
    assert await who_is(house, "zoe.x", name="Zoe X") == "corp:zoe.2ex"
    zoe = await house.principal("corp:zoe.2ex")
    assert (zoe.kind, zoe.display_name, zoe.deployment_role, zoe.owner_principal_id) == ("user", "Zoe X", "user", UNSET)
    assert await who_is(house, "zoe.x", name="Zoe Y", iat=None) == "corp:zoe.2ex"
    assert (await house.principal("corp:zoe.2ex")).display_name == "Zoe X"


@pytest.mark.parametrize(
    ("others", "shown"),
    [
        ({"name": "Zoe"}, "Zoe"),
        ({"name": "", "preferred_username": "zo"}, "zo"),
        ({"name": 7, "email": "zoe@example.org"}, "zoe@example.org"),
        ({"name": " \u202e\x00\n", "email": "z\x1b[31mo"}, "z[31mo"),
        ({"name": "é" * 500}, "é" * 128),
        ({"name": "\ud800"}, "zoe"),
        ({}, "zoe"),
    ],
)
async def test_the_display_name_is_the_issuers_made_harmless(
    house: House, others: dict[str, object], shown: str
) -> None:
    await who_is(house, "zoe", **others)
    assert (await house.principal("corp:zoe")).display_name == shown


@pytest.mark.requirement("PR-4-17")
async def test_a_subject_that_comes_many_times_at_once_is_one_principal(house: House) -> None:
    found = await asyncio.gather(*(who_is(house, "zoe", jti=str(number)) for number in range(20)))
    assert set(found) == {"corp:zoe"}


@pytest.mark.requirement("PR-4-18")
async def test_a_subject_called_like_a_principal_is_not_that_principal(house: House) -> None:
    assert await who_is(house, "admin") == "corp:admin"
    assert await who_is(house, "ann") == "corp:ann"


@pytest.mark.requirement("PR-4-18")
@pytest.mark.parametrize(
    "squatter",
    [
        NewPrincipal(principal_id="corp:zoe", kind="user", display_name="Not linked"),
        NewPrincipal(principal_id="corp:zoe", kind="bot", display_name="Squatter", owner_principal_id="ben"),
        NewPrincipal(
            principal_id="corp:zoe",
            kind="bot",
            display_name="Pretender",
            owner_principal_id="ben",
            metadata={"identity": {"issuer": ISSUER, "subject": "zoe"}},
        ),
        NewPrincipal(
            principal_id="corp:zoe",
            kind="user",
            display_name="Another subject's",
            metadata={"identity": {"issuer": ISSUER, "subject": "zoë"}},
        ),
    ],
    ids=lambda new: new.display_name,
)
async def test_a_principal_that_has_a_subjects_id_already_is_not_reached_before_an_admin_links_it(
    house: House, squatter: NewPrincipal
) -> None:
    await house.store.create_principal(squatter)
    with pytest.raises(Unauthenticated):
        await who_is(house, "zoe")
    await house.authenticator.link_identity("zoe", "corp:zoe", by=await house.admin())
    assert await who_is(house, "zoe") == "corp:zoe"


async def test_provisioning_that_was_cut_off_before_the_link_is_completed_the_next_time(house: House) -> None:
    await house.store.create_principal(
        NewPrincipal(
            principal_id="corp:zoe",
            kind="user",
            display_name="Zoe",
            metadata={"identity": {"issuer": ISSUER, "subject": "zoe"}},
        )
    )
    assert await who_is(house, "zoe") == "corp:zoe"
    assert await house.store.find_identity(ISSUER, "zoe") is not None


@pytest.mark.requirement("PR-4-18")
async def test_an_admin_links_a_subject_to_a_principal(house: House) -> None:
    await house.authenticator.link_identity("zoe", "ann", by=await house.admin())
    assert await who_is(house, "zoe") == "ann"
    with pytest.raises(Conflict):
        await house.authenticator.link_identity("zoe", "ben", by=await house.admin())
    with pytest.raises(NotFound):
        await house.authenticator.link_identity("zed", "nobody", by=await house.admin())
    with pytest.raises(InvalidRequest):
        await house.authenticator.link_identity("z\x00d", "ann", by=await house.admin())


@pytest.mark.requirement("PR-4-18")
@pytest.mark.parametrize("principal_id", ["ann", "ann-bot", "mill"])
async def test_only_an_admin_links(house: House, principal_id: str) -> None:
    identity = await house.identity_of(principal_id)
    with pytest.raises(Forbidden):
        await house.authenticator.link_identity("zoe", "admin", by=identity)
    assert await who_is(house, "zoe") == "corp:zoe"


@pytest.mark.requirement("PR-4-18")
async def test_a_narrowed_admin_links_only_if_it_was_left_that(house: House) -> None:
    admin = await house.admin()
    to_a_thread = await house.authenticator.mint_token("admin", by=admin, threads=["t"])
    to_reading = await house.authenticator.mint_token("admin", by=admin, capabilities=["thread.read"])
    for token in (to_a_thread, to_reading):
        identity = await house.authenticator.authenticate(token.token)
        with pytest.raises(Forbidden):
            await house.authenticator.link_identity("zoe", "ann", by=identity)


async def test_the_ids_under_the_alias_are_reserved(house: House) -> None:
    assert house.authenticator.reserves("corp:zoe")
    assert not house.authenticator.reserves("corporal")
    async with a_house() as other:
        assert not other.authenticator.reserves("corp:zoe")
        with pytest.raises(InvalidRequest):
            await other.authenticator.link_identity("zoe", "ann", by=await other.admin())
