"""Grants over HTTP, and the events that come with them."""

from __future__ import annotations

import pytest

from tests.server.world import Person, World

pytestmark = pytest.mark.anyio


@pytest.fixture
async def thread(alice: Person) -> str:
    """Alice's own thread."""
    return await alice.thread()


async def log(person: Person, thread_id: str) -> list[tuple[str, str, str]]:
    """Who came and went, by whom."""
    events = (await person.get(f"/v1/threads/{thread_id}/events")).json()["events"]
    return [(event["type"], event["byPrincipalId"], event["principalId"]) for event in events]


@pytest.mark.requirement("PR-6-38", "PR-5-02")
async def test_a_grant_is_put_listed_and_removed(alice: Person, bob: Person, thread: str) -> None:
    path = f"/v1/threads/{thread}/grants"
    grant = (await alice.put(f"{path}/bob", {"role": "observer"}, expect=201)).json()
    assert {name: grant[name] for name in ("threadId", "principalId", "role", "grantedBy")} == {
        "threadId": thread,
        "principalId": "bob",
        "role": "observer",
        "grantedBy": "alice",
    }
    assert grant["createdAt"] == "2026-05-06T12:34:56.789Z"
    assert (await alice.put(f"{path}/bob", {"role": "participant"}, expect=200)).json()["role"] == "participant"
    assert [(each["principalId"], each["role"]) for each in (await bob.get(path)).json()["grants"]] == [
        ("alice", "owner"),
        ("bob", "participant"),
    ]
    await alice.delete(f"{path}/bob")
    await alice.delete(f"{path}/bob", expect=404)
    await bob.get(path, expect=404)


@pytest.mark.requirement("PR-5-18")
async def test_a_grant_in_a_list_tells_who_it_is(alice: Person, thread: str) -> None:
    [grant] = (await alice.get(f"/v1/threads/{thread}/grants")).json()["grants"]
    assert grant["principal"] == {"principalId": "alice", "kind": "user", "displayName": "Alice"}


@pytest.mark.requirement("PR-5-22", "EV-36", "EV-37", "EV-38")
async def test_coming_and_going_is_told_where_the_ability_to_append_changes(
    alice: Person, bob: Person, thread: str
) -> None:
    path = f"/v1/threads/{thread}/grants/bob"
    for role in ("observer", "participant", "owner", "participant", "observer"):
        await alice.call("PUT", path, json={"role": role}, expect=None)
    await alice.put(path, {"role": "participant"})
    await bob.delete(path)
    assert (await log(alice, thread))[1:] == [
        ("participant_joined", "alice", "bob"),
        ("participant_left", "alice", "bob"),
        ("participant_joined", "alice", "bob"),
        ("participant_left", "bob", "bob"),
    ]


@pytest.mark.requirement("PR-5-15", "PR-5-16", "EV-38")
async def test_anybody_may_join_an_open_thread_as_no_more_than_a_participant(
    world: World, alice: Person, bob: Person
) -> None:
    carol = await world.user("carol")
    thread = await alice.thread(joinPolicy="open")
    path = f"/v1/threads/{thread}/grants"
    assert "role" not in (await bob.get(f"/v1/threads/{thread}")).json()
    await bob.get(path)
    await bob.put(f"{path}/bob", {"role": "owner"}, expect=403)
    await bob.put(f"{path}/carol", {"role": "observer"}, expect=403)
    await bob.put(f"{path}/bob", {"role": "observer"}, expect=201)
    await bob.put(f"{path}/bob", {"role": "participant"}, expect=200)
    await carol.put(f"{path}/carol", {"role": "participant"}, expect=201)
    assert (await log(bob, thread))[1:] == [
        ("participant_joined", "bob", "bob"),
        ("participant_joined", "carol", "carol"),
    ]


@pytest.mark.requirement("PR-5-14")
async def test_nobody_lets_themselves_into_a_thread_by_invitation(bob: Person, thread: str) -> None:
    await bob.put(f"/v1/threads/{thread}/grants/bob", {"role": "participant"}, expect=404)


@pytest.mark.requirement("PR-5-15")
async def test_who_only_may_join_reads_no_events(alice: Person, bob: Person) -> None:
    thread = await alice.thread(joinPolicy="open")
    await bob.get(f"/v1/threads/{thread}/events", expect=404)
    await bob.append(thread, bob.starts("r"), expect=403)


@pytest.mark.requirement("PR-5-17")
async def test_listing_needs_to_read_and_setting_needs_to_manage(alice: Person, bob: Person, thread: str) -> None:
    path = f"/v1/threads/{thread}/grants"
    await bob.get(path, expect=404)
    for role in ("observer", "participant"):
        await alice.call("PUT", f"{path}/bob", json={"role": role}, expect=None)
        await bob.get(path)
        refusal = await bob.put(f"{path}/alice", {"role": "observer"}, expect=403)
        assert refusal.json()["message"] == f'Principal "bob" lacks "grants.manage" on thread "{thread}".'
        await bob.delete(f"{path}/alice", expect=403)


@pytest.mark.requirement("PR-5-21")
async def test_the_last_owner_stays(alice: Person, bob: Person, thread: str) -> None:
    path = f"/v1/threads/{thread}/grants"
    await alice.delete(f"{path}/alice", expect=409)
    await alice.put(f"{path}/alice", {"role": "participant"}, expect=409)
    await alice.put(f"{path}/bob", {"role": "owner"}, expect=201)
    await bob.delete(f"{path}/alice")
    await bob.delete(f"{path}/bob", expect=409)


@pytest.mark.parametrize(
    ("principal_id", "body", "status"),
    [
        ("nobody", {"role": "observer"}, 404),
        ("bob", {"role": "king"}, 400),
        ("bob", {"role": ""}, 400),
        ("bob", {}, 400),
        ("bob", {"role": "observer", "x": 1}, 400),
        ("system:bubble", {"role": "observer"}, 400),
        ("a%20b", {"role": "observer"}, 400),
    ],
)
async def test_a_grant_that_cannot_be_is_refused(
    alice: Person, bob: Person, thread: str, principal_id: str, body: object, status: int
) -> None:
    assert bob.principal_id == "bob"
    await alice.put(f"/v1/threads/{thread}/grants/{principal_id}", body, expect=status)


@pytest.mark.requirement("PR-6-39")
async def test_ones_own_grants_are_listed_page_by_page(alice: Person, bob: Person) -> None:
    threads = [await alice.thread(participants=[{"principalId": "bob"}]) for _ in range(3)]
    await alice.thread()
    first = (await bob.get("/v1/grants?limit=2")).json()
    second = (await bob.get(f"/v1/grants?limit=2&after={first['nextAfter']}")).json()
    found = [grant["threadId"] for grant in first["grants"] + second["grants"]]
    assert sorted(found) == sorted(threads)
    assert second["nextAfter"] is None
    assert {grant["role"] for grant in first["grants"]} == {"participant"}


async def test_a_threads_grants_are_listed_page_by_page(world: World, alice: Person) -> None:
    for name in ("carol", "dan", "eve"):
        await world.register(name)
    thread = await alice.thread(participants=[{"principalId": name} for name in ("carol", "dan", "eve")])
    first = (await alice.get(f"/v1/threads/{thread}/grants?limit=3")).json()
    second = (await alice.get(f"/v1/threads/{thread}/grants?limit=3&after={first['nextAfter']}")).json()
    assert [grant["principalId"] for grant in first["grants"] + second["grants"]] == ["alice", "carol", "dan", "eve"]


async def test_a_disabled_principal_keeps_its_grant_but_gets_in_no_more(
    world: World, alice: Person, bob: Person
) -> None:
    thread = await alice.thread(participants=[{"principalId": "bob"}])
    await world.admin.patch("/v1/principals/bob", {"disabled": True})
    await bob.get(f"/v1/threads/{thread}", expect=401)
    assert len((await alice.get(f"/v1/threads/{thread}/grants")).json()["grants"]) == 2
