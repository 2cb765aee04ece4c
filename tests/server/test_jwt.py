"""JWTs of a configured issuer, from the settings to a request."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from bubble.server.settings import Settings, SettingsError
from tests.server.world import NOW, Person, World, a_world

pytestmark = pytest.mark.anyio

ISSUER = "https://id.example.com/"
KEY = ec.generate_private_key(ec.SECP256R1())


@pytest.fixture
def issuer(tmp_path: Path) -> dict[str, object]:
    """The issuer as settings have it, its public key in a file."""
    public = json.loads(ECAlgorithm.to_jwk(KEY.public_key()))
    file = tmp_path / "keys.json"
    file.write_text(json.dumps({"keys": [{**public, "kid": "one", "alg": "ES256", "use": "sig"}]}), encoding="utf-8")
    return {"issuer": ISSUER, "audience": "bubble", "alias": "corp", "jwks_file": str(file)}


@pytest.fixture
async def world(issuer: dict[str, object]) -> AsyncIterator[World]:
    """A server that accepts the issuer's JWTs."""
    async with a_world(jwt=issuer) as it:
        yield it


def signed(world: World, subject: str, *, seconds: int = 60, audience: str = "bubble") -> Person:
    """Somebody with a JWT."""
    claims = {"iss": ISSUER, "aud": audience, "sub": subject, "exp": NOW // 1000 + seconds, "iat": NOW // 1000}
    return world.person(subject, jwt.encode(claims, KEY, algorithm="ES256", headers={"kid": "one"}))


async def whoami(person: Person) -> str:
    return str((await person.get("/v1/whoami")).json()["principalId"])


@pytest.mark.requirement("PR-4-13", "PR-4-17")
async def test_a_jwt_is_a_bearer_and_its_subject_gets_a_principal(world: World) -> None:
    sam = signed(world, "sam")
    assert await whoami(sam) == "corp:sam"
    await sam.post("/v1/threads", {})
    await signed(world, "sam", audience="other").get("/v1/whoami", expect=401)


@pytest.mark.requirement("PR-4-14")
async def test_a_jwt_ends_after_its_leeway(world: World) -> None:
    sam = signed(world, "sam", seconds=60)
    world.clock.now = (NOW // 1000 + 60 + 30) * 1000 - 1
    await sam.get("/v1/whoami")
    world.clock.pass_ms(1)
    await sam.get("/v1/whoami", expect=401)


@pytest.mark.requirement("PR-4-18")
async def test_an_admin_links_a_subject_to_a_principal(world: World) -> None:
    alice = await world.user("alice")
    await alice.patch("/v1/principals/alice", {"subject": "a-17"}, expect=403)
    await world.admin.patch("/v1/principals/alice", {"subject": "a-17"})
    assert await whoami(signed(world, "a-17")) == "alice"
    await world.register("bob")
    await world.admin.patch("/v1/principals/bob", {"subject": "a-17"}, expect=409)


async def test_a_user_cannot_take_the_id_of_somebody_who_has_not_come_yet(world: World) -> None:
    alice = await world.user("alice")
    bot = {"kind": "bot", "displayName": "x", "principalId": "corp:sam"}
    await alice.post("/v1/principals", bot, expect=403)
    assert await whoami(signed(world, "sam")) == "corp:sam"


@pytest.mark.parametrize(
    "change",
    [
        {"audience": []},
        {"alias": "system"},
        {"algorithms": ["HS256"]},
        {"algorithms": ["none"]},
        {"jwks_file": "nowhere"},
        {"x": 1},
    ],
)
def test_an_issuer_that_cannot_be_is_refused(issuer: dict[str, object], change: dict[str, object]) -> None:
    with pytest.raises(SettingsError, match="jwt"):
        Settings(jwt={**issuer, **change})


@pytest.mark.requirement("PR-4-19")
async def test_a_claim_makes_an_admin_only_where_the_settings_say_so(issuer: dict[str, object]) -> None:
    claims = {"iss": ISSUER, "aud": "bubble", "sub": "s", "exp": NOW // 1000 + 60, "groups": ["ops"]}
    token = jwt.encode(claims, KEY, algorithm="ES256", headers={"kid": "one"})
    configured = {**issuer, "admin_claim": "groups", "admin_values": "ops"}
    for settings, status in ((issuer, 403), (configured, 200)):
        async with a_world(jwt=settings) as world:
            await world.person("s", token).get("/v1/principals", expect=status)
