"""Browser sessions and login links over HTTP."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from bubble.server.app import create_app
from bubble.server.settings import Settings
from bubble.store.memory import MemoryStore
from bubble.store.records import PrincipalChanges
from tests.server.world import ADMIN_TOKEN, URL, Person, World, a_world, started

pytestmark = pytest.mark.anyio


async def login_code(world: World, principal_id: str) -> str:
    return (await world.app.services.authenticator.start_login(principal_id)).secret


def cookie_of(answer: httpx2.Response) -> str:
    return str(answer.headers["set-cookie"].partition(";")[0])


@pytest.mark.requirement("PR-6-43", "PR-4-20", "PR-4-26")
async def test_a_login_code_opens_one_session(world: World, alice: Person) -> None:
    code = await login_code(world, alice.principal_id)
    answer = await world.nobody.post("/v1/sessions", json={"code": code})
    assert answer.status_code == 201
    assert answer.json()["principal"]["principalId"] == "alice"
    attributes = answer.headers["set-cookie"].split("; ")[1:]
    assert set(attributes) >= {"HttpOnly", "SameSite=Strict", "Path=/"}
    assert "Secure" not in attributes
    assert answer.headers["cache-control"] == "no-store"
    me = (await world.client(Cookie=cookie_of(answer)).get("/v1/whoami")).json()
    assert me["principalId"] == "alice"
    assert me["csrfToken"] == answer.json()["csrfToken"]
    assert (await world.nobody.post("/v1/sessions", json={"code": code})).status_code == 401


@pytest.mark.requirement("PR-4-21")
async def test_under_tls_the_cookie_is_bound_to_the_host() -> None:
    async with a_world(public_url="https://bubble.example.com") as world:
        answer = await world.nobody.post("/v1/sessions", json={"token": ADMIN_TOKEN})
        cookie = answer.headers["set-cookie"]
        assert cookie.startswith("__Host-")
        assert "Secure" in cookie.split("; ")


@pytest.mark.requirement("PR-4-27")
async def test_a_login_code_is_good_for_15_minutes(world: World, alice: Person) -> None:
    for wait, status in ((15 * 60_000 - 1, 201), (15 * 60_000, 401)):
        code = await login_code(world, alice.principal_id)
        world.clock.pass_ms(wait)
        assert (await world.nobody.post("/v1/sessions", json={"code": code})).status_code == status


@pytest.mark.requirement("PR-4-28", "PR-4-29")
async def test_opening_the_link_alone_does_not_use_it_up(world: World, alice: Person) -> None:
    code = await login_code(world, alice.principal_id)
    for method in ("GET", "HEAD", "GET"):
        page = await world.nobody.request(method, f"/login?code={code}")
        assert page.status_code == 200
        assert page.headers["referrer-policy"] == "no-referrer"
        assert code not in page.text
    assert (await world.nobody.post("/v1/sessions", json={"code": code})).status_code == 201


async def test_a_token_opens_a_session_no_wider_than_itself(world: World, alice: Person) -> None:
    thread, other = await alice.thread(), await alice.thread()
    narrow = await world.login("alice", threads=[thread])
    answer = await world.nobody.post("/v1/sessions", json={"token": narrow.token})
    browser = world.client(Cookie=cookie_of(answer))
    assert (await browser.get(f"/v1/threads/{thread}")).status_code == 200
    assert (await browser.get(f"/v1/threads/{other}")).status_code == 404


@pytest.mark.requirement("PR-6-43")
async def test_a_session_ends_when_the_page_says_so(world: World) -> None:
    opened = await world.nobody.post("/v1/sessions", json={"token": ADMIN_TOKEN})
    browser = world.client(Cookie=cookie_of(opened), Origin=URL)
    assert (await browser.delete("/v1/sessions")).status_code == 403
    ended = await browser.delete("/v1/sessions", headers={"X-Bubble-CSRF": opened.json()["csrfToken"]})
    assert ended.status_code == 204
    assert "Max-Age=0" in ended.headers["set-cookie"]
    assert (await browser.get("/v1/whoami")).status_code == 401


async def test_a_bearer_has_no_session_to_end(alice: Person) -> None:
    await alice.delete("/v1/sessions", expect=400)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"code": "a", "token": "b"}, 400),
        ({"code": ""}, 400),
        ({"code": 1}, 400),
        ({"code": "nonsense"}, 401),
        ({"token": "nonsense"}, 401),
        ({"token": "bubble_user_" + "0" * 64}, 401),
        ({"code": "x" * 16_384}, 401),
    ],
)
async def test_what_opens_no_session_is_refused(world: World, body: object, status: int) -> None:
    answer = await world.nobody.post("/v1/sessions", json=body)
    assert answer.status_code == status
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(("origin", "status"), [(URL, 201), ("http://evil.example", 403), ("null", 403)])
async def test_another_sites_page_cannot_log_a_browser_in(world: World, origin: str, status: int) -> None:
    answer = await world.nobody.post("/v1/sessions", json={"token": ADMIN_TOKEN}, headers={"Origin": origin})
    assert answer.status_code == status


async def test_a_form_cannot_log_a_browser_in(world: World) -> None:
    answer = await world.nobody.post("/v1/sessions", data={"token": ADMIN_TOKEN})
    assert answer.status_code == 400


# --- the first start --------------------------------------------------------------------------------------------------------------


async def test_the_first_start_gives_a_link_and_a_token_and_later_ones_do_not() -> None:
    async with MemoryStore() as store:
        app = create_app(Settings(), store=store)
        async with started(app) as client:
            assert app.first_start is not None
            assert (
                await client.get("/v1/whoami", headers={"Authorization": f"Bearer {app.first_start.token}"})
            ).json()["deploymentRole"] == "admin"
            link = urlsplit(app.first_start.login_url)
            assert f"{link.scheme}://{link.netloc}{link.path}" == f"{URL}/login"
            code = parse_qs(link.query)["code"][0]
            assert (await client.post("/v1/sessions", json={"code": code})).status_code == 201
            assert app.first_start.token not in repr(app.first_start)
        again = create_app(Settings(), store=store)
        async with started(again) as client:
            assert again.first_start is None
            headers = {"Authorization": f"Bearer {app.first_start.token}"}
            assert (await client.get("/v1/whoami", headers=headers)).status_code == 200


async def test_a_chosen_admin_token_is_the_one_that_counts_and_nothing_is_printed(world: World) -> None:
    assert world.app.first_start is None
    assert (await world.admin.get("/v1/whoami")).json()["principalId"] == "admin"


@pytest.mark.requirement("SF-37")
async def test_a_login_link_is_made_for_as_long_as_the_administrator_has_a_way_in() -> None:
    async with MemoryStore() as store:
        app = create_app(Settings(), store=store)
        async with started(app) as client:
            code = parse_qs(urlsplit(await app.login_url() or "").query)["code"][0]
            opened = await client.post("/v1/sessions", json={"code": code})
            assert opened.json()["principal"]["principalId"] == "admin"
            await store.update_principal("admin", PrincipalChanges(disabled=True))
            assert await app.login_url() is None


# --- pages ------------------------------------------------------------------------------------------------------------------------

PAGES = ("/", "/login", "/docs")


@pytest.mark.requirement("PR-6-45", "PR-6-06")
@pytest.mark.parametrize("path", PAGES)
async def test_a_page_loads_only_what_is_bundled(world: World, path: str) -> None:
    page = await world.nobody.get(path)
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    policy = page.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert not re.search(r"(src|href)=\"(https?:)?//", page.text)
    assert "<script>" not in page.text
    assert "style=" not in page.text
    for asset in re.findall(r'(?:src|href)="(assets/[^"]+)"', page.text):
        found = await world.nobody.get(f"/{asset}")
        assert found.status_code == 200
        assert found.headers["x-content-type-options"] == "nosniff"
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg\b)", found.text)


@pytest.mark.parametrize("file", ["nothing.js", "index.html", "..%2Fapp.py", "app.py", ""])
async def test_only_assets_are_served_as_assets(world: World, file: str) -> None:
    script = re.findall(r'src="(assets/[^"]+)/page.js"', (await world.nobody.get("/")).text)[0]
    assert (await world.nobody.get(f"/{script}/page.js")).status_code == 200
    assert (await world.nobody.get(f"/{script}/{file}")).status_code == 404


@pytest.mark.requirement("SF-44")
async def test_what_a_page_needs_is_kept_by_browsers_for_as_long_as_it_is_the_same(world: World) -> None:
    page = await world.nobody.get("/")
    assert page.headers["cache-control"] == "no-cache"
    addresses = re.findall(r'(?:src|href)="(assets/[^"]+)"', page.text)
    (version,) = {address.split("/")[1] for address in addresses}
    for address in addresses:
        found = await world.nobody.get(f"/{address}")
        assert found.headers["cache-control"] == "public, max-age=31536000, immutable"
        # Whoever still has the page of another version does not get files of this one for it.
        assert (await world.nobody.get(f"/{address.replace(version, '0' * len(version))}")).status_code == 404


@pytest.mark.requirement("SF-44")
async def test_a_page_that_a_browser_has_is_not_sent_again(world: World) -> None:
    for path in PAGES:
        page = await world.nobody.get(path)
        tag = page.headers["etag"]
        for known in (tag, f'"other", W/{tag}', "*"):
            again = await world.nobody.get(path, headers={"If-None-Match": known})
            assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
        assert (await world.nobody.get(path, headers={"If-None-Match": '"other"'})).content == page.content
