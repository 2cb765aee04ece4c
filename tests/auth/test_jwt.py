"""JWTs: what is accepted, until when, and all that is not."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import AsyncIterator

import jwt
import pytest

from bubble.auth.jwt_settings import ALGORITHMS, JwtSettings
from bubble.auth.key_sets import read_key_set
from bubble.protocol.errors import Unauthenticated
from bubble.store.records import PrincipalChanges
from tests.auth.actors import NOW, House, a_house
from tests.auth.issuers import AUDIENCE, ISSUER, NOW_SECONDS, SigningKey, claims, settings, unsigned

pytestmark = pytest.mark.anyio

KEY = SigningKey("k1")
LEEWAY = 30


@pytest.fixture
async def house() -> AsyncIterator[House]:
    async with a_house(jwt=settings(KEY)) as it:
        yield it


async def refused(house: House, token: str) -> bool:
    """Whether the token does not count."""
    try:
        await house.authenticator.authenticate(token)
    except Unauthenticated:
        return True
    return False


@pytest.mark.requirement("PR-4-13")
async def test_a_jwt_of_the_issuer_for_this_audience_is_its_subject(house: House) -> None:
    identity = await house.authenticator.authenticate(KEY.sign(claims("ann")))
    assert identity.principal.principal_id == "corp:ann"
    assert identity.source == "jwt"
    assert identity.credential_id is None
    assert not identity.is_narrowed


@pytest.mark.requirement("PR-4-13")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
async def test_every_algorithm_of_the_list_verifies(algorithm: str) -> None:
    key = SigningKey("k", algorithm)
    async with a_house(jwt=settings(key, algorithms=(algorithm,))) as house:
        assert not await refused(house, key.sign(claims()))


async def test_one_of_several_audiences_is_enough(house: House) -> None:
    assert not await refused(house, KEY.sign(claims(aud=["elsewhere", AUDIENCE])))


@pytest.mark.requirement("PR-4-13")
@pytest.mark.parametrize(
    "others",
    [
        {"iss": "https://evil.example.org"},
        {"iss": ISSUER + "/"},
        {"iss": [ISSUER]},
        {"iss": None},
        {"aud": "elsewhere"},
        {"aud": ["elsewhere"]},
        {"aud": []},
        {"aud": {AUDIENCE: True}},
        {"aud": None},
        {"sub": None},
        {"sub": ""},
        {"sub": 7},
        {"sub": ["ann"]},
        {"sub": "a" * 256},
        {"sub": "a\x00b"},
        {"sub": "\ud800"},
        {"exp": None},
        {"exp": "soon"},
        {"exp": True},
        {"exp": float("nan")},
        {"exp": float("inf")},
        {"exp": 10**400},
        {"exp": 10**15},
        {"exp": -1},
        {"nbf": NOW_SECONDS + LEEWAY + 2},
        {"nbf": "now"},
        {"iat": NOW_SECONDS + LEEWAY + 2},
        {"iat": "now"},
        {"iat": 10**400},
    ],
    ids=lambda others: json.dumps(others)[:40],
)
async def test_claims_that_are_missing_wrong_or_absurd_do_not_count(house: House, others: dict[str, object]) -> None:
    assert await refused(house, KEY.sign(claims(**others)))


@pytest.mark.requirement("PR-4-14")
async def test_a_jwt_counts_until_exp_plus_the_leeway_and_not_a_millisecond_longer(house: House) -> None:
    token = KEY.sign(claims(exp=NOW_SECONDS + 300))
    end = (NOW_SECONDS + 300 + LEEWAY) * 1000
    assert (await house.authenticator.authenticate(token)).expires_ms == end
    house.clock.now = end - 1
    assert not await refused(house, token)
    assert house.authenticator.known(token) is not None
    house.clock.now = end
    assert house.authenticator.known(token) is None
    assert await refused(house, token)


async def test_a_jwt_counts_from_nbf_minus_the_leeway(house: House) -> None:
    begin = NOW_SECONDS + 100
    token = KEY.sign(claims(nbf=begin))
    house.clock.now = (begin - LEEWAY) * 1000 - 1
    assert await refused(house, token)
    house.clock.now = (begin - LEEWAY) * 1000
    assert not await refused(house, token)


@pytest.mark.requirement("PR-4-15")
@pytest.mark.parametrize("name", ["none", "None", "NONE", "nOnE", ""])
async def test_a_jwt_without_a_signature_is_refused(house: House, name: str) -> None:
    assert await refused(house, unsigned({"alg": name, "typ": "JWT", "kid": "k1"}, claims()))


@pytest.mark.requirement("PR-4-15")
async def test_none_is_refused_over_a_good_signature_too(house: House) -> None:
    head, payload, signature = KEY.sign(claims()).split(".")
    forged = unsigned({"alg": "none", "kid": "k1"}, {}).split(".")[0]
    assert await refused(house, f"{forged}.{payload}.{signature}")
    assert await refused(house, f"{head}.{payload}.")


@pytest.mark.requirement("PR-4-16")
@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
async def test_an_hmac_over_the_public_key_is_refused(house: House, algorithm: str) -> None:
    digest = {"HS256": hashlib.sha256, "HS384": hashlib.sha384, "HS512": hashlib.sha512}[algorithm]
    for secret in (KEY.public_pem(), KEY.public_pem().strip(), json.dumps(KEY.jwk()).encode(), b""):
        signed = unsigned({"alg": algorithm, "kid": "k1"}, claims()).rstrip(".")
        signature = hmac.digest(secret, signed.encode(), digest)
        assert await refused(house, unsigned({"alg": algorithm, "kid": "k1"}, claims(), signature))


@pytest.mark.requirement("PR-4-15")
async def test_an_algorithm_that_is_not_configured_is_refused_though_the_key_could_verify_it() -> None:
    async with a_house(jwt=settings(KEY, algorithms=("RS256",))) as house:
        assert not await refused(house, KEY.sign(claims()))
        assert await refused(house, KEY.sign(claims(), algorithm="RS512"))
        assert await refused(house, KEY.sign(claims(), algorithm="PS256"))


async def test_a_key_that_declares_one_algorithm_verifies_no_other() -> None:
    text = json.dumps({"keys": [KEY.jwk(alg="RS256")]})
    async with a_house(jwt=settings(jwks=text, algorithms=("RS256", "PS256"))) as house:
        assert not await refused(house, KEY.sign(claims()))
        assert await refused(house, KEY.sign(claims(), algorithm="PS256"))


async def test_another_keys_signature_under_a_known_kid_is_refused(house: House) -> None:
    assert await refused(house, SigningKey("k1", number=1).sign(claims()))


async def test_a_kid_that_is_unknown_or_no_text_is_refused(house: House) -> None:
    assert await refused(house, KEY.sign(claims(), headers={"kid": "k2"}))
    assert await refused(house, unsigned({"alg": "RS256", "kid": 7}, claims(), b"x"))
    assert await refused(house, unsigned({"alg": ["RS256"], "kid": "k1"}, claims(), b"x"))


async def test_a_key_that_the_token_brings_along_is_not_used(house: House) -> None:
    thief = SigningKey("k1", number=1)
    for header in ({"jwk": thief.jwk()}, {"jku": "http://127.0.0.1:1/keys"}, {"x5u": "http://127.0.0.1:1/keys"}):
        assert await refused(house, thief.sign(claims(), headers=header))


async def test_a_critical_header_is_refused(house: House) -> None:
    assert await refused(house, KEY.sign(claims(), headers={"crit": ["exp"], "exp": 1}))
    assert await refused(house, KEY.sign(claims(), headers={"crit": []}))


async def test_without_a_kid_the_only_key_that_fits_verifies(house: House) -> None:
    nameless = SigningKey(None)
    assert not await refused(house, nameless.sign(claims()))
    async with a_house(jwt=settings(KEY, SigningKey("k2", number=1))) as two:
        assert await refused(two, nameless.sign(claims()))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "..",
        "a.b.c",
        "e30.e30.",
        "e30.e30.e30.e30.e30",
        "bubble_user_" + "0" * 64,
        "[" * 5000 + "." + "[" * 5000 + ".x",
        "x" * 20_000,
        "é.ü.ß",
        "\ud800",
    ],
    ids=lambda text: f"{len(text)} characters",
)
async def test_what_is_no_token_at_all_is_refused_like_any_other(house: House, text: str) -> None:
    assert await refused(house, text)


async def test_deep_nesting_in_a_signed_header_or_payload_is_refused(house: House) -> None:
    deep: object = []
    for _ in range(900):
        deep = [deep]
    assert await refused(house, unsigned({"alg": "RS256", "kid": deep}, claims(), b"x"))
    assert not await refused(house, KEY.sign(claims(extra=deep)))


async def test_a_changed_payload_is_refused(house: House) -> None:
    head, _, signature = KEY.sign(claims("ann")).split(".")
    payload = unsigned({}, claims("admin")).split(".")[1]
    assert await refused(house, f"{head}.{payload}.{signature}")


@pytest.mark.requirement("PR-4-13")
async def test_without_a_configured_issuer_no_jwt_counts() -> None:
    async with a_house() as house:
        assert await refused(house, KEY.sign(claims()))


async def test_a_jwt_of_a_disabled_principal_does_not_count(house: House) -> None:
    token = KEY.sign(claims("ann"))
    await house.authenticator.authenticate(token)
    await house.store.update_principal("corp:ann", PrincipalChanges(disabled=True))
    house.clock.pass_ms(1_000)
    assert await refused(house, token)


# --- the key set ----------------------------------------------------------------------------------------------------------------


def published(*jwks: object) -> bytes:
    return json.dumps({"keys": list(jwks)}).encode()


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"{}",
        b'{"keys": {}}',
        b'{"keys": [1]}',
        b'{"keys": []}',
        published({"kty": "oct", "k": "c2VjcmV0", "kid": "k"}),
        published({"kty": "RSA", "n": "AQAB", "e": "AQAB", "kid": "k"}),
        published({"kty": "RSA", "kid": "k"}),
        published({"kty": ["RSA"], "kid": "k"}),
        published(KEY.jwk(use="enc")),
        published(KEY.jwk(key_ops=["encrypt"])),
        published(KEY.jwk(kid=7)),
        published(KEY.private_jwk()),
        published(SigningKey("weak", bits=1024).jwk()),
        published({**SigningKey("e", "ES256").jwk(), "crv": "P-384"}),
        published({**SigningKey("e", "ES256").jwk(), "crv": "secp256k1"}),
    ],
    ids=lambda text: text[:50].decode(),
)
def test_a_key_set_without_a_key_to_verify_with_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match="key set"):
        read_key_set(text, ALGORITHMS)


def test_a_key_that_cannot_be_used_does_not_spoil_the_others() -> None:
    keys = read_key_set(published({"kty": "new"}, SigningKey("weak", bits=1024).jwk(), KEY.jwk()), ALGORITHMS)
    assert len(keys) == 1
    assert isinstance(keys.find("k1", "RS256"), jwt.PyJWK)


def test_a_curve_verifies_its_own_algorithm_only() -> None:
    keys = read_key_set(published(SigningKey("e", "ES384").jwk()), ALGORITHMS)
    assert [name for name in ALGORITHMS if keys.find("e", name)] == ["ES384"]


# --- settings -------------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("PR-4-15")
@pytest.mark.parametrize("name", ["none", "HS256", "HS384", "HS512", "RS1", ""])
def test_no_configuration_can_add_an_algorithm(name: str) -> None:
    with pytest.raises(ValueError, match="algorithms"):
        settings(KEY, algorithms=("RS256", name))


@pytest.mark.parametrize(
    ("others", "field"),
    [
        ({"issuer": ""}, "issuer"),
        ({"audience": ()}, "audience"),
        ({"audience": ("",)}, "audience"),
        ({"alias": ""}, "alias"),
        ({"alias": "a:b"}, "alias"),
        ({"alias": "a.b"}, "alias"),
        ({"alias": "System"}, "alias"),
        ({"alias": "a" * 33}, "alias"),
        ({"algorithms": ()}, "algorithms"),
        ({"leeway_seconds": -1}, "leeway_seconds"),
        ({"leeway_seconds": 301}, "leeway_seconds"),
        ({"admin_claim": "roles"}, "admin_claim"),
        ({"admin_values": ("root",)}, "admin_claim"),
        ({"jwks_url": "https://login.example.org/keys"}, "jwks_url"),
        ({"jwks": None, "jwks_url": "http://login.example.org/keys"}, "jwks_url"),
        ({"jwks": None, "jwks_url": "file:///etc/keys"}, "jwks_url"),
        ({"jwks": None, "jwks_url": "https://user:word@login.example.org/keys"}, "jwks_url"),
        ({"jwks": None, "issuer": "http://login.example.org"}, "issuer"),
        ({"jwks": None, "issuer": "corp"}, "issuer"),
    ],
)
def test_settings_that_cannot_be_name_the_field(others: dict[str, object], field: str) -> None:
    with pytest.raises(ValueError, match=f"`{field}`"):
        settings(KEY, **others)


def test_keys_may_come_over_plain_http_from_this_machine_only() -> None:
    for host in ("127.0.0.1:8000", "localhost", "[::1]:8000"):
        JwtSettings(issuer=ISSUER, audience=(AUDIENCE,), alias="corp", jwks_url=f"http://{host}/keys")


# --- roles ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("PR-4-19")
async def test_no_claim_makes_an_admin_unless_that_is_configured(house: House) -> None:
    boast = {"roles": ["admin"], "admin": True, "deploymentRole": "admin", "deployment_role": "admin"}
    identity = await house.authenticator.authenticate(KEY.sign(claims(**boast)))
    assert identity.principal.deployment_role == "user"


@pytest.mark.requirement("PR-4-19")
@pytest.mark.parametrize(
    ("value", "role"),
    [
        ({"roles": ["staff", "root"]}, "admin"),
        ({"roles": "root"}, "admin"),
        ({"roles": ["staff"]}, "user"),
        ({"roles": "roots"}, "user"),
        ({"roles": {"root": True}}, "user"),
        ({"roles": [["root"]]}, "user"),
        ("root", "user"),
        (["root"], "user"),
    ],
)
async def test_the_configured_claim_makes_an_admin_for_as_long_as_the_jwt_is_good(value: object, role: str) -> None:
    async with a_house(jwt=settings(KEY, admin_claim="realm.roles", admin_values=("root",))) as house:
        identity = await house.authenticator.authenticate(KEY.sign(claims("ann", realm=value)))
        assert identity.principal.deployment_role == role
        assert identity.role_claimed == (role == "admin")
        assert (await house.principal("corp:ann")).deployment_role == "user"
        assert await house.authenticator.find_invalid([identity]) == set()


async def test_the_moment_of_these_tests_is_the_moment_of_the_claims() -> None:
    assert NOW // 1000 == NOW_SECONDS
