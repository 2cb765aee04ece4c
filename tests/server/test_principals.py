"""Principals and their tokens over HTTP."""

from __future__ import annotations

import pytest

from tests.server.world import NOW, Person, World

pytestmark = pytest.mark.anyio


# --- principals -------------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("PR-6-40", "PR-4-01", "PR-5-07")
async def test_an_admin_registers_reads_lists_and_changes_anybody(world: World) -> None:
    admin = world.admin
    body = {"principalId": "alice", "kind": "user", "displayName": "Alice", "metadata": {"team": "blue"}}
    created = (await admin.post("/v1/principals", body)).json()
    assert created == {**body, "createdAt": "2026-05-06T12:34:56.789Z"}
    assert (await admin.get("/v1/principals/alice")).json() == created
    changed = (await admin.patch("/v1/principals/alice", {"displayName": "Al", "metadata": None})).json()
    assert (changed["displayName"], changed.get("metadata")) == ("Al", None)
    names = [each["principalId"] for each in (await admin.get("/v1/principals")).json()["principals"]]
    assert names == ["admin", "alice"]


@pytest.mark.requirement("PR-4-01", "PR-4-02")
async def test_each_kind_of_principal_can_be_registered(world: World, alice: Person) -> None:
    system = (await world.admin.post("/v1/principals", {"kind": "system", "displayName": "Mill"})).json()
    assert len(system["principalId"]) == 32
    bot = {"kind": "bot", "displayName": "B", "ownerPrincipalId": "alice"}
    assert (await world.admin.post("/v1/principals", bot)).json()["ownerPrincipalId"] == "alice"
    own = (await alice.post("/v1/principals", {"kind": "bot", "displayName": "C"})).json()
    assert own["ownerPrincipalId"] == "alice"


@pytest.mark.requirement("PR-4-02", "PR-2-01", "PR-2-02")
@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"kind": "robot", "displayName": "x"}, 400),
        ({"kind": "user"}, 400),
        ({"kind": "user", "displayName": ""}, 400),
        ({"kind": "user", "displayName": "x", "principalId": "a b"}, 400),
        ({"kind": "user", "displayName": "x", "principalId": "system:x"}, 400),
        ({"kind": "user", "displayName": "x", "ownerPrincipalId": "alice"}, 400),
        ({"kind": "bot", "displayName": "x", "ownerPrincipalId": "helper"}, 400),
        ({"kind": "bot", "displayName": "x", "ownerPrincipalId": "nobody"}, 404),
        ({"kind": "user", "displayName": "x", "principalId": "alice"}, 409),
        ({"kind": "user", "displayName": "x", "metadata": {"x": "y" * 20_000}}, 413),
    ],
)
async def test_a_principal_that_cannot_be_is_refused(world: World, alice: Person, body: object, status: int) -> None:
    await world.bot("helper", owner=alice)
    await world.admin.post("/v1/principals", body, expect=status)


@pytest.mark.requirement("PR-5-06")
async def test_a_user_has_bots_and_nothing_else(world: World, alice: Person, bob: Person) -> None:
    await alice.post("/v1/principals", {"principalId": "helper", "kind": "bot", "displayName": "Helper"})
    for body in (
        {"kind": "user", "displayName": "x"},
        {"kind": "system", "displayName": "x"},
        {"kind": "bot", "displayName": "x", "ownerPrincipalId": "bob"},
        {"kind": "bot", "displayName": "x", "deploymentRole": "admin"},
    ):
        await alice.post("/v1/principals", body, expect=403)
    await alice.patch("/v1/principals/helper", {"displayName": "Help", "metadata": {"a": 1}})
    await alice.patch("/v1/principals/helper", {"disabled": True})
    await alice.patch("/v1/principals/helper", {"disabled": False})
    for person, path, change in (
        (alice, "helper", {"deploymentRole": "admin"}),
        (alice, "helper", {"subject": "x"}),
        (alice, "alice", {"displayName": "x"}),
        (alice, "alice", {"deploymentRole": "admin"}),
        (alice, "bob", {"disabled": True}),
        (bob, "helper", {"disabled": True}),
        (bob, "admin", {"displayName": "x"}),
    ):
        await person.patch(f"/v1/principals/{path}", change, expect=403)
    token = (await alice.post("/v1/principals/helper/tokens", {})).json()["token"]
    await bob.post("/v1/principals/helper/tokens", {}, expect=403)
    assert (await world.person("helper", token).get("/v1/whoami")).json()["principalId"] == "helper"


@pytest.mark.requirement("PR-5-06")
async def test_a_bot_administers_nothing(world: World, alice: Person) -> None:
    bot = await world.bot("helper", owner=alice)
    await bot.post("/v1/threads", {}, expect=403)
    await bot.post("/v1/principals", {"kind": "bot", "displayName": "x"}, expect=403)
    await bot.patch("/v1/principals/helper", {"displayName": "x"}, expect=403)
    await bot.patch("/v1/principals/nobody", {"displayName": "x"}, expect=403)
    await bot.get("/v1/principals", expect=403)
    await bot.get("/v1/principals?ownerPrincipalId=helper", expect=403)
    await bot.get("/v1/principals/alice", expect=403)
    assert (await bot.get("/v1/principals/helper")).json()["ownerPrincipalId"] == "alice"


@pytest.mark.requirement("PR-8-22")
async def test_a_user_looks_somebody_up_by_the_exact_id(world: World, alice: Person, bob: Person) -> None:
    await world.admin.patch("/v1/principals/bob", {"metadata": {"phone": 1}})
    assert (await alice.get("/v1/principals/bob")).json() == {
        "principalId": "bob",
        "kind": "user",
        "displayName": "Bob",
    }
    assert (await bob.get("/v1/principals/bob")).json()["metadata"] == {"phone": 1}
    await alice.get("/v1/principals/nobody", expect=404)
    await alice.get("/v1/principals", expect=403)
    await alice.get("/v1/principals?ownerPrincipalId=bob", expect=403)


async def test_an_owner_lists_its_own_bots(world: World, alice: Person) -> None:
    for name in ("b1", "b2"):
        await alice.post("/v1/principals", {"principalId": name, "kind": "bot", "displayName": name})
    for person in (alice, world.admin):
        bots = (await person.get("/v1/principals?ownerPrincipalId=alice")).json()["principals"]
        assert [bot["principalId"] for bot in bots] == ["b1", "b2"]
    assert (await alice.get("/v1/principals/b1")).json()["ownerPrincipalId"] == "alice"


async def test_principals_are_listed_page_by_page(world: World) -> None:
    for name in ("a1", "a2", "a3"):
        await world.register(name)
    first = (await world.admin.get("/v1/principals?limit=2")).json()
    second = (await world.admin.get(f"/v1/principals?limit=2&after={first['nextAfter']}")).json()
    found = [each["principalId"] for each in first["principals"] + second["principals"]]
    assert found == ["a1", "a2", "a3", "admin"]


@pytest.mark.requirement("PR-8-21")
async def test_a_disabled_principal_is_refused_until_it_is_enabled_again(world: World, alice: Person) -> None:
    assert "disabledAt" in (await world.admin.patch("/v1/principals/alice", {"disabled": True})).json()
    await alice.get("/v1/whoami", expect=401)
    await world.admin.post("/v1/principals/alice/tokens", {}, expect=409)
    assert "disabledAt" not in (await world.admin.patch("/v1/principals/alice", {"disabled": False})).json()
    await alice.get("/v1/whoami")


async def test_an_admin_neither_disables_nor_demotes_itself(world: World) -> None:
    for change in ({"disabled": True}, {"deploymentRole": "user"}):
        await world.admin.patch("/v1/principals/admin", change, expect=409)


@pytest.mark.requirement("PR-5-07")
async def test_an_admin_may_do_everything_everywhere(world: World, alice: Person) -> None:
    thread = await alice.thread()
    admin = world.admin
    await admin.get(f"/v1/threads/{thread}")
    await admin.get(f"/v1/threads/{thread}/events")
    await admin.append(thread, admin.starts("r"))
    await admin.patch(f"/v1/threads/{thread}", {"title": "x"})
    await admin.put(f"/v1/threads/{thread}/grants/alice", {"role": "owner"})
    await admin.delete(f"/v1/threads/{thread}")


async def test_a_new_admin_may_do_so_at_once_and_an_old_one_no_longer(world: World, alice: Person) -> None:
    await alice.get("/v1/principals", expect=403)
    await world.admin.patch("/v1/principals/alice", {"deploymentRole": "admin"})
    await alice.get("/v1/principals")
    await world.admin.patch("/v1/principals/alice", {"deploymentRole": "user"})
    await alice.get("/v1/principals", expect=403)


@pytest.mark.requirement("PR-6-42", "PR-4-49")
async def test_only_an_admin_closes_connections(world: World, alice: Person) -> None:
    await alice.delete("/v1/principals/alice/connections", expect=403)
    await alice.delete("/v1/principals/nobody/connections", expect=403)
    await world.admin.delete("/v1/principals/nobody/connections", expect=404)
    await world.admin.delete("/v1/principals/alice/connections")


async def test_linking_needs_an_issuer(world: World, alice: Person) -> None:
    refusal = await world.admin.patch(f"/v1/principals/{alice.principal_id}", {"subject": "s"}, expect=400)
    assert "issuer" in refusal.json()["message"]


# --- tokens -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("PR-6-41", "PR-8-02", "PR-8-03")
async def test_a_secret_is_shown_once(world: World, alice: Person) -> None:
    minted = (await alice.post("/v1/principals/alice/tokens", {})).json()
    assert minted["token"].startswith("bubble_user_")
    assert await whoami(world, minted["token"]) == "alice"
    listed = (await alice.get("/v1/principals/alice/tokens")).json()["tokens"]
    assert minted["tokenId"] in [token["tokenId"] for token in listed]
    assert all("token" not in token for token in listed)


@pytest.mark.requirement("PR-8-03")
async def test_a_token_needs_no_body(alice: Person) -> None:
    await alice.call("POST", "/v1/principals/alice/tokens", content=b"", expect=201)


async def whoami(world: World, token: str) -> str:
    return str((await world.person("?", token).get("/v1/whoami")).json()["principalId"])


@pytest.mark.requirement("PR-6-41", "PR-4-10")
async def test_a_revoked_token_is_unknown_at_once(world: World, alice: Person) -> None:
    minted = (await alice.post("/v1/principals/alice/tokens", {"name": "laptop"})).json()
    holder = world.person("alice", minted["token"])
    await holder.get("/v1/whoami")
    await alice.delete(f"/v1/principals/alice/tokens/{minted['tokenId']}")
    await holder.get("/v1/whoami", expect=401)
    await alice.delete("/v1/principals/alice/tokens/nonsense", expect=404)


@pytest.mark.requirement("PR-4-08", "PR-8-02")
async def test_a_token_ends_when_it_says(world: World, alice: Person) -> None:
    minted = (await alice.post("/v1/principals/alice/tokens", {"expiresAt": "2026-05-06T12:35:56.789Z"})).json()
    assert minted["expiresAt"] == "2026-05-06T12:35:56.789Z"
    holder = world.person("alice", minted["token"])
    assert (await holder.get("/v1/whoami")).json()["expiresAt"] == minted["expiresAt"]
    world.clock.now = NOW + 60_000
    await holder.get("/v1/whoami", expect=401)


@pytest.mark.requirement("PR-4-34", "PR-4-35", "PR-4-36")
async def test_a_token_is_no_wider_and_lives_no_longer_than_what_made_it(world: World, alice: Person) -> None:
    short = await world.login(alice.principal_id, expiresAt="2026-05-06T12:35:56.789Z")
    child = (await short.post("/v1/principals/alice/tokens", {"expiresAt": "2027-01-01T00:00:00.000Z"})).json()
    assert child["expiresAt"] == "2026-05-06T12:35:56.789Z"
    narrow = await world.login("alice", capabilities=["thread.read"])
    await narrow.post("/v1/principals/alice/tokens", {}, expect=403)
    assert (await narrow.get("/v1/whoami")).json()["capabilities"] == ["thread.read"]


@pytest.mark.requirement("PR-4-37", "PR-4-03")
async def test_a_bots_tokens_are_its_owners_business(world: World, alice: Person, bob: Person) -> None:
    bot = await world.bot("helper", owner=alice)
    path = "/v1/principals/helper/tokens"
    await bot.post(path, {}, expect=403)
    await bob.post(path, {}, expect=403)
    await bob.get(path, expect=403)
    minted = (await alice.post(path, {})).json()
    assert len((await alice.get(path)).json()["tokens"]) == 2
    await bob.delete(f"{path}/{minted['tokenId']}", expect=403)
    await alice.delete(f"{path}/{minted['tokenId']}")


@pytest.mark.parametrize(
    "body",
    [
        {"expiresAt": "tomorrow"},
        {"expiresAt": "2026-05-06T12:34:56.789Z"},
        {"expiresAt": 5},
        {"capabilities": []},
        {"capabilities": ["fly"]},
        {"threads": ["a b"]},
        {"threads": []},
        {"name": ""},
        {"name": "x" * 129},
        {"x": 1},
    ],
)
async def test_a_token_that_cannot_be_is_refused(alice: Person, body: object) -> None:
    assert (await alice.post("/v1/principals/alice/tokens", body, expect=400)).json()["code"] == "invalid_request"


async def test_tokens_of_nobody_are_not_found(world: World, alice: Person) -> None:
    for person in (world.admin, alice):
        await person.post("/v1/principals/nobody/tokens", {}, expect=404)
        await person.get("/v1/principals/nobody/tokens", expect=404)


@pytest.mark.requirement("PR-4-30", "PR-4-31")
async def test_a_ticket_is_told_with_its_end(alice: Person) -> None:
    ticket = (await alice.post("/v1/ws/tickets", {})).json()
    assert ticket["expiresAt"] == "2026-05-06T12:35:26.789Z"
    assert ticket["ticket"]
    await alice.call("POST", "/v1/ws/tickets", content=b"", expect=201)
    await alice.post("/v1/ws/tickets", {"x": 1}, expect=400)


async def test_a_ticket_is_no_bearer(world: World, alice: Person) -> None:
    ticket = (await alice.post("/v1/ws/tickets", {})).json()["ticket"]
    await world.person("alice", ticket).get("/v1/whoami", expect=401)
