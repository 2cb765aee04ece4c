"""Who is calling over HTTP: bearers first, cookies only from the server's own page."""

from __future__ import annotations

import pytest

from tests.server.world import ADMIN_TOKEN, URL, Person, World, a_world

pytestmark = pytest.mark.anyio


async def a_session(world: World, token: str) -> tuple[str, str]:
    """Cookie header and CSRF token of a new session."""
    answer = await world.nobody.post("/v1/sessions", json={"token": token})
    assert answer.status_code == 201, answer.text
    world.nobody.cookies.clear()
    return answer.headers["set-cookie"].partition(";")[0], answer.json()["csrfToken"]


@pytest.mark.requirement("PR-3-05", "PR-6-10")
async def test_a_bearer_is_resolved(alice: Person) -> None:
    me = (await alice.get("/v1/whoami")).json()
    assert (me["principalId"], me["kind"], me["displayName"]) == ("alice", "user", "Alice")


@pytest.mark.requirement("PR-3-05")
@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Basic YTpi",
        "Bearer nonsense",
        f"bubble {ADMIN_TOKEN}",
        ADMIN_TOKEN,
        "Bearer " + "x" * 20_000,
    ],
)
async def test_whoever_has_no_known_bearer_is_unauthenticated(world: World, header: str | None) -> None:
    answer = await world.nobody.get("/v1/whoami", headers={} if header is None else {"Authorization": header})
    assert answer.status_code == 401
    assert answer.json()["code"] == "unauthenticated"
    assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_the_scheme_is_written_in_any_case(world: World) -> None:
    answer = await world.nobody.get("/v1/whoami", headers={"Authorization": f"bEaReR  {ADMIN_TOKEN}"})
    assert answer.status_code == 200


async def test_two_bearers_are_none(world: World) -> None:
    pair = [("Authorization", f"Bearer {ADMIN_TOKEN}"), ("Authorization", f"Bearer {ADMIN_TOKEN}")]
    assert (await world.nobody.get("/v1/whoami", headers=pair)).status_code == 401


@pytest.mark.requirement("PR-4-33")
@pytest.mark.parametrize("name", ["token", "access_token", "ticket"])
async def test_a_bearer_in_the_url_is_refused(world: World, name: str) -> None:
    assert (await world.nobody.get(f"/v1/whoami?{name}={ADMIN_TOKEN}")).status_code == 401
    assert (await world.admin.get(f"/v1/whoami?{name}={ADMIN_TOKEN}", expect=400)).status_code == 400


@pytest.mark.requirement("PR-4-25")
async def test_a_bearer_that_is_refused_does_not_fall_back_to_the_cookie(world: World) -> None:
    cookie, _ = await a_session(world, ADMIN_TOKEN)
    assert (await world.nobody.get("/v1/whoami", headers={"Cookie": cookie})).status_code == 200
    for header in ("Bearer nonsense", "Basic YTpi", ""):
        answer = await world.nobody.get("/v1/whoami", headers={"Cookie": cookie, "Authorization": header})
        assert answer.status_code == 401


async def test_a_bearer_beside_a_cookie_is_the_one_that_counts(world: World, alice: Person) -> None:
    cookie, _ = await a_session(world, ADMIN_TOKEN)
    assert (await alice.get("/v1/whoami", headers={"Cookie": cookie})).json()["principalId"] == "alice"


@pytest.mark.requirement("PR-4-22", "PR-4-24")
@pytest.mark.parametrize(
    ("origin", "with_csrf", "status"),
    [
        (URL, True, 201),
        ("http://localhost:3000", True, 201),
        (URL, False, 403),
        (None, True, 403),
        ("null", True, 403),
        ("http://evil.example", True, 403),
        ("http://127.0.0.1:3001", True, 403),
        ("https://127.0.0.1:3000", True, 403),
        (URL + ".evil.example", True, 403),
    ],
)
async def test_an_unsafe_request_by_cookie_comes_from_the_servers_own_page(
    world: World, *, origin: str | None, with_csrf: bool, status: int
) -> None:
    cookie, csrf = await a_session(world, ADMIN_TOKEN)
    headers = {"Cookie": cookie}
    if origin is not None:
        headers["Origin"] = origin
    if with_csrf:
        headers["X-Bubble-CSRF"] = csrf
    answer = await world.nobody.post("/v1/threads", json={}, headers=headers)
    assert answer.status_code == status, answer.text


@pytest.mark.requirement("PR-4-24")
async def test_the_csrf_token_of_another_session_is_none(world: World) -> None:
    cookie, _ = await a_session(world, ADMIN_TOKEN)
    _, other = await a_session(world, ADMIN_TOKEN)
    headers = {"Cookie": cookie, "Origin": URL, "X-Bubble-CSRF": other}
    assert (await world.nobody.post("/v1/threads", json={}, headers=headers)).status_code == 403


async def test_a_safe_request_by_cookie_needs_neither(world: World) -> None:
    cookie, _ = await a_session(world, ADMIN_TOKEN)
    assert (await world.nobody.get("/v1/threads", headers={"Cookie": cookie})).status_code == 200


@pytest.mark.requirement("PR-4-22")
async def test_the_origin_is_the_public_one() -> None:
    async with a_world(public_url="https://bubble.example.com") as world:
        cookie, csrf = await a_session(world, ADMIN_TOKEN)
        headers = {"Cookie": cookie, "X-Bubble-CSRF": csrf, "Origin": "https://bubble.example.com"}
        assert (await world.nobody.post("/v1/threads", json={}, headers=headers)).status_code == 201
        headers["Origin"] = URL
        assert (await world.nobody.post("/v1/threads", json={}, headers=headers)).status_code == 403


async def test_refused_bearers_are_counted(world: World) -> None:
    await world.nobody.get("/v1/whoami")
    await world.nobody.get("/v1/whoami", headers={"Authorization": "Bearer nonsense"})
    assert 'bubble_auth_failures_total{door="http"} 2.0' in (await world.nobody.get("/metrics")).text
