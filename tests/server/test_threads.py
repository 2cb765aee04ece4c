"""Threads over HTTP."""

from __future__ import annotations

import re

import pytest

from tests.server.world import Person, World, a_world

pytestmark = pytest.mark.anyio


async def events_of(person: Person, thread_id: str) -> list[dict[str, object]]:
    events: list[dict[str, object]] = (await person.get(f"/v1/threads/{thread_id}/events")).json()["events"]
    return events


def bare(event: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in event.items() if name not in ("seq", "createdAt")}


@pytest.mark.requirement("PR-6-12", "PR-5-24", "PR-5-25")
async def test_a_new_thread_has_its_creator_as_owner_and_joins_everybody_in_order(
    world: World, alice: Person, bob: Person
) -> None:
    bot = await world.bot("helper", owner=alice)
    body = {
        "title": "Plans",
        "joinPolicy": "open",
        "metadata": {"a": [1, {"b": None}]},
        "participants": [{"principalId": "helper"}, {"principalId": "bob", "role": "observer"}],
    }
    thread = (await alice.post("/v1/threads", body)).json()
    assert {name: thread[name] for name in ("title", "joinPolicy", "metadata", "headSeq", "role")} == {
        "title": "Plans",
        "joinPolicy": "open",
        "metadata": {"a": [1, {"b": None}]},
        "headSeq": 2,
        "role": "owner",
    }
    assert [bare(event) for event in await events_of(bot, thread["threadId"])] == [
        {"type": "participant_joined", "byPrincipalId": "alice", "principalId": "alice"},
        {"type": "participant_joined", "byPrincipalId": "alice", "principalId": "helper"},
    ]
    assert (await bob.get(f"/v1/threads/{thread['threadId']}")).json()["role"] == "observer"


@pytest.mark.requirement("PR-5-13", "PR-5-14")
async def test_a_thread_that_says_nothing_has_a_random_id_and_is_by_invitation(alice: Person) -> None:
    first, second = [(await alice.post("/v1/threads", {})).json() for _ in range(2)]
    assert re.fullmatch("[0-9a-f]{32}", first["threadId"])
    assert first["threadId"] != second["threadId"]
    assert first["joinPolicy"] == "invite"


@pytest.mark.requirement("PR-5-12")
async def test_only_who_may_name_threads_learns_that_an_id_is_taken(world: World, alice: Person) -> None:
    await world.admin.post("/v1/threads", {"threadId": "general"})
    await world.admin.post("/v1/threads", {"threadId": "general"}, expect=409)
    for thread_id in ("general", "free"):
        refusal = await alice.post("/v1/threads", {"threadId": thread_id}, expect=403)
        assert "threads.name" in refusal.json()["message"]


@pytest.mark.requirement("PR-2-01", "PR-2-02")
@pytest.mark.parametrize("thread_id", ["", "-a", ".a", "a b", "a/b", "é", "a" * 129, "system:x"])
async def test_an_id_that_cannot_be_one_is_refused(world: World, thread_id: str) -> None:
    await world.admin.post("/v1/threads", {"threadId": thread_id}, expect=400)
    await world.admin.post("/v1/threads", {"threadId": "a" * 128})


@pytest.mark.requirement("PR-2-01")
async def test_an_id_in_the_path_that_cannot_be_one_is_refused(alice: Person) -> None:
    for path in ("/v1/threads/a%20b", "/v1/threads/-a/events", "/v1/threads/" + "a" * 129):
        assert (await alice.get(path, expect=400)).json()["code"] == "invalid_request"


async def test_a_participant_that_does_not_exist_is_named(alice: Person) -> None:
    refusal = await alice.post("/v1/threads", {"participants": [{"principalId": "nobody"}]}, expect=404)
    assert "nobody" in refusal.json()["message"]
    assert (await alice.get("/v1/threads")).json()["threads"] == []


async def test_a_participant_is_named_once(alice: Person, bob: Person) -> None:
    twice = [{"principalId": bob.principal_id}, {"principalId": bob.principal_id}]
    await alice.post("/v1/threads", {"participants": twice}, expect=400)


@pytest.mark.requirement("PR-6-13")
async def test_the_list_holds_what_the_caller_can_see_latest_activity_first(
    world: World, alice: Person, bob: Person
) -> None:
    first = await alice.thread(title="first")
    world.clock.pass_ms(1_000)
    second = await alice.thread(title="second", participants=[{"principalId": "bob"}])
    world.clock.pass_ms(1_000)
    await alice.append(first, alice.starts("r"))

    async def seen(person: Person) -> list[str]:
        return [thread["threadId"] for thread in (await person.get("/v1/threads")).json()["threads"]]

    assert await seen(alice) == [first, second]
    assert await seen(bob) == [second]
    assert await seen(world.admin) == [first, second]


@pytest.mark.requirement("PR-6-14", "PR-2-10")
async def test_the_list_is_paged_with_each_thread_once(world: World, alice: Person) -> None:
    made = set()
    for _ in range(5):
        world.clock.pass_ms(1)
        made.add(await alice.thread())
    found: list[str] = []
    after = ""
    while True:
        page = (await alice.get(f"/v1/threads?limit=2{after}")).json()
        found += [thread["threadId"] for thread in page["threads"]]
        if page["nextAfter"] is None:
            break
        after = f"&after={page['nextAfter']}"
    assert len(found) == 5
    assert set(found) == made
    assert len((await alice.get("/v1/threads?limit=100000")).json()["threads"]) == 5


@pytest.mark.requirement("PR-6-15")
async def test_the_list_can_be_searched(alice: Person) -> None:
    wanted = await alice.thread(title="Quarterly plans")
    await alice.thread(title="Lunch")
    assert [each["threadId"] for each in (await alice.get("/v1/threads?q=plans")).json()["threads"]] == [wanted]
    assert (await alice.get("/v1/threads?q=dinner")).json()["threads"] == []


@pytest.mark.requirement("PR-3-04", "PR-2-11")
@pytest.mark.parametrize(
    "query",
    ["after=zzz", "after=", "limit=0", "limit=-1", "limit=x", "limit=1.5", "limit=", "limit=1&limit=2", "x=1", "q=%ff"],
)
async def test_a_wrong_query_is_refused(alice: Person, query: str) -> None:
    await alice.thread()
    assert (await alice.get(f"/v1/threads?{query}", expect=400)).json()["code"] == "invalid_request"


@pytest.mark.requirement("PR-4-12")
async def test_a_token_narrowed_to_threads_sees_no_other(world: World, alice: Person) -> None:
    seen, unseen = await alice.thread(), await alice.thread()
    narrow = await world.login("alice", threads=[seen])
    assert [each["threadId"] for each in (await narrow.get("/v1/threads")).json()["threads"]] == [seen]
    assert [each["threadId"] for each in (await narrow.get("/v1/grants")).json()["grants"]] == [seen]
    await narrow.get(f"/v1/threads/{seen}")
    for path in (f"/v1/threads/{unseen}", f"/v1/threads/{unseen}/events", f"/v1/threads/{unseen}/grants"):
        await narrow.get(path, expect=404)
    await narrow.append(unseen, alice.starts("r"), expect=404)


@pytest.mark.requirement("PR-4-11")
async def test_a_token_narrowed_to_capabilities_does_no_more(world: World, alice: Person) -> None:
    thread = await alice.thread()
    narrow = await world.login("alice", capabilities=["thread.read", "events.run_started"])
    await narrow.get(f"/v1/threads/{thread}")
    await narrow.append(thread, alice.starts("r"))
    await narrow.append(thread, alice.says("r"), expect=403)
    await narrow.get(f"/v1/threads/{thread}/events", expect=404)
    await narrow.delete(f"/v1/threads/{thread}", expect=403)
    await narrow.post("/v1/threads", {}, expect=403)


@pytest.mark.requirement("PR-6-16")
async def test_a_thread_tells_its_head(alice: Person) -> None:
    thread = await alice.thread()
    await alice.append(thread, alice.starts("r"))
    assert (await alice.get(f"/v1/threads/{thread}")).json()["headSeq"] == 2


@pytest.mark.requirement("PR-6-17", "PR-1-04")
async def test_what_is_changed_is_changed_and_a_new_title_is_an_event(alice: Person) -> None:
    thread = await alice.thread(title="Old", metadata={"a": 1})
    changed = (await alice.patch(f"/v1/threads/{thread}", {"title": "New"})).json()
    assert (changed["title"], changed["metadata"], changed["headSeq"]) == ("New", {"a": 1}, 2)
    assert bare((await events_of(alice, thread))[-1]) == {
        "type": "thread_title_updated",
        "byPrincipalId": "alice",
        "title": "New",
    }
    changed = (await alice.patch(f"/v1/threads/{thread}", {"joinPolicy": "open", "metadata": None})).json()
    assert (changed["joinPolicy"], changed.get("metadata"), changed["headSeq"]) == ("open", None, 2)
    assert "title" not in (await alice.patch(f"/v1/threads/{thread}", {"title": None})).json()


async def test_metadata_has_a_limit(alice: Person) -> None:
    large = {"x": "y" * (16 * 1024)}
    await alice.post("/v1/threads", {"metadata": large}, expect=413)
    thread = await alice.thread()
    await alice.patch(f"/v1/threads/{thread}", {"metadata": large}, expect=413)


@pytest.mark.requirement("PR-6-18")
async def test_a_deleted_thread_is_gone_and_its_id_never_comes_back(world: World, alice: Person) -> None:
    await world.admin.post(
        "/v1/threads", {"threadId": "t", "participants": [{"principalId": "alice", "role": "owner"}]}
    )
    await alice.delete("/v1/threads/t")
    for path in ("/v1/threads/t", "/v1/threads/t/events", "/v1/threads/t/runs"):
        await alice.get(path, expect=404)
        await world.admin.get(path, expect=404)
    await world.admin.post("/v1/threads", {"threadId": "t"}, expect=409)
    assert (await alice.get("/v1/threads")).json()["threads"] == []


@pytest.mark.requirement("PR-3-07", "PR-5-09")
async def test_what_may_not_be_seen_cannot_be_told_from_what_does_not_exist(alice: Person, bob: Person) -> None:
    hidden = await alice.thread()
    missing = "0" * 32
    requests: list[tuple[str, str, object]] = [
        ("GET", "", None),
        ("PATCH", "", {"title": "x"}),
        ("DELETE", "", None),
        ("GET", "/events", None),
        ("GET", "/events?fromSeq=1&waitMs=1000", None),
        ("POST", "/events", bob.starts("r")),
        ("POST", "/events:batch", {"events": [bob.starts("r")]}),
        ("GET", "/events/stream", None),
        ("GET", "/runs", None),
        ("GET", "/cursor", None),
        ("PUT", "/cursor", {"seq": 0}),
        ("GET", "/grants", None),
        ("PUT", "/grants/bob", {"role": "participant"}),
        ("DELETE", "/grants/bob", None),
    ]
    for method, path, body in requests:
        answers = [
            (await bob.call(method, f"/v1/threads/{thread}{path}", json=body, expect=404)).text.replace(thread, "T")
            for thread in (hidden, missing)
        ]
        assert answers[0] == answers[1], (method, path)


@pytest.mark.requirement("PR-5-08")
async def test_a_custom_role_can_be_granted() -> None:
    async with a_world(roles={"moderator": ["thread.read", "events.subscribe", "grants.manage"]}) as world:
        alice, bob = await world.user("alice"), await world.user("bob")
        thread = await alice.thread(participants=[{"principalId": "bob", "role": "moderator"}])
        await world.register("carol")
        await bob.put(f"/v1/threads/{thread}/grants/carol", {"role": "participant"}, expect=201)
        await bob.append(thread, bob.starts("r"), expect=403)
        assert (await bob.get(f"/v1/threads/{thread}")).json()["role"] == "moderator"
