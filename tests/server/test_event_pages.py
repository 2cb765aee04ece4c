"""Reading events over HTTP: pages, and pages that are held open."""

from __future__ import annotations

import asyncio

import pytest

from tests.server.world import NOW, Person, Tails, World, a_world

pytestmark = pytest.mark.anyio


@pytest.fixture
async def thread(alice: Person, bob: Person) -> str:
    """Alice's thread, on which Bob takes part: two events, and an open run `r` of Alice."""
    thread_id = await alice.thread(participants=[{"principalId": bob.principal_id}])
    await alice.append(thread_id, alice.starts("r"))
    return thread_id


# --- pages ------------------------------------------------------------------------------------------------------------------------


@pytest.fixture
async def long_thread(alice: Person) -> str:
    """A thread of 122 events, the first two of which begin it."""
    thread_id = await alice.thread()
    await alice.append(thread_id, alice.starts("r"))
    await alice.post(f"/v1/threads/{thread_id}/events:batch", {"events": [alice.says("r", str(n)) for n in range(120)]})
    return thread_id


async def page(person: Person, thread_id: str, query: str = "") -> tuple[list[int], int | None]:
    answer = (await person.get(f"/v1/threads/{thread_id}/events{query}")).json()
    return [event["seq"] for event in answer["events"]], answer["nextSeq"]


@pytest.mark.requirement(
    "PR-6-21", "EV-54", "EV-55", "EV-56", "EV-57", "EV-58", "EV-59", "PR-2-09", "PR-2-10", "PR-8-11", "PR-6-24"
)
@pytest.mark.parametrize(
    ("query", "seqs", "next_seq"),
    [
        ("", range(1, 101), 101),
        ("?limit=50", range(1, 51), 51),
        ("?fromSeq=1&limit=50", range(1, 51), 51),
        ("?fromSeq=101", range(101, 123), None),
        ("?limit=1000", range(1, 123), None),
        ("?limit=5000", range(1, 123), None),
        ("?fromSeq=10&toSeq=12", range(10, 13), None),
        ("?fromSeq=10&toSeq=12&limit=2", range(10, 12), 12),
        ("?fromSeq=120&toSeq=5000", range(120, 123), None),
        ("?fromSeq=122", range(122, 123), None),
        ("?fromSeq=123", [], None),
        ("?fromSeq=9007199254740991", [], None),
        ("?fromSeq=12&toSeq=10", [], None),
        ("?fromSeq=12&toSeq=10&waitMs=30000", [], None),
    ],
)
async def test_a_page_is_one_slice(
    alice: Person, long_thread: str, query: str, seqs: range | list[int], next_seq: int | None
) -> None:
    assert await page(alice, long_thread, query) == (list(seqs), next_seq)


@pytest.mark.requirement("PR-2-14", "PR-2-11")
@pytest.mark.parametrize(
    "query",
    [
        "fromSeq=0",
        "fromSeq=-1",
        "fromSeq=9007199254740992",
        "fromSeq=x",
        "fromSeq=1.5",
        "fromSeq=1e3",
        "fromSeq=",
        "fromSeq=%201",
        "toSeq=0",
        "toSeq=9007199254740992",
        "limit=0",
        "limit=-5",
        "limit=ten",
        "waitMs=-1",
        "waitMs=30001",
        "waitMs=x",
        "fromSeq=1&fromSeq=2",
        "from=1",
    ],
)
async def test_a_page_that_cannot_be_is_refused(alice: Person, long_thread: str, query: str) -> None:
    refusal = (await alice.get(f"/v1/threads/{long_thread}/events?{query}", expect=400)).json()
    assert refusal["code"] == "invalid_request"
    assert query.partition("=")[0] in refusal["message"]


@pytest.mark.requirement("PR-2-12")
async def test_a_page_stops_at_its_size_but_holds_one_event(alice: Person) -> None:
    thread_id = await alice.thread()
    await alice.append(thread_id, alice.starts("r"))
    for _ in range(6):
        await alice.append(thread_id, alice.says("r", "x" * 1_000_000))
    seqs, next_seq = await page(alice, thread_id, "?fromSeq=3&limit=10")
    assert next_seq == 3 + len(seqs)
    assert 4 <= len(seqs) <= 5
    async with a_world(limits={"page_bytes": 1_000}) as small:
        admin = small.admin
        thread_id = await admin.thread()
        await admin.append(thread_id, admin.starts("r"))
        await admin.append(thread_id, admin.says("r", "x" * 5_000))
        await admin.append(thread_id, admin.says("r", "y"))
        assert await page(admin, thread_id, "?fromSeq=3") == ([3], 4)


@pytest.mark.requirement("EV-60", "PR-6-24", "WS-42")
async def test_paging_to_the_end_and_on_misses_nothing(alice: Person, long_thread: str) -> None:
    seen: list[int] = []
    following: int | None = 1
    while following is not None:
        seqs, following = await page(alice, long_thread, f"?fromSeq={following}&limit=7")
        seen += seqs
    await alice.append(long_thread, alice.says("r", "late"))
    seqs, _ = await page(alice, long_thread, f"?fromSeq={seen[-1] + 1}")
    assert seen + seqs == list(range(1, 124))


# --- held pages -------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def tails(world: World) -> Tails:
    """The hub of the world, watched."""
    return Tails(world)


@pytest.mark.requirement("PR-6-22")
async def test_a_held_page_is_answered_as_soon_as_there_is_an_event(tails: Tails, alice: Person, thread: str) -> None:
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        waiting = group.create_task(page(alice, thread, "?fromSeq=4&waitMs=30000"))
        await tails.are(1)
        await alice.append(thread, alice.says("r"))
    assert waiting.result() == ([4], None)


@pytest.mark.requirement("PR-6-22")
async def test_a_page_held_for_a_later_seq_is_not_answered_by_an_earlier_one(
    tails: Tails, alice: Person, thread: str
) -> None:
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        waiting = group.create_task(page(alice, thread, "?fromSeq=5&waitMs=30000"))
        await tails.are(1)
        await alice.append(thread, alice.says("r"))
        assert not waiting.done()
        await alice.append(thread, alice.says("r"))
    assert waiting.result() == ([5], None)


@pytest.mark.requirement("PR-6-23")
async def test_a_held_page_that_stays_empty_is_answered_empty(alice: Person, thread: str) -> None:
    assert await page(alice, thread, "?fromSeq=4&waitMs=20") == ([], None)


@pytest.mark.requirement("PR-8-15")
async def test_a_revocation_ends_a_held_page(tails: Tails, alice: Person, bob: Person, thread: str) -> None:
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        waiting = group.create_task(bob.get(f"/v1/threads/{thread}/events?fromSeq=4&waitMs=30000", expect=404))
        await tails.are(1)
        await alice.delete(f"/v1/threads/{thread}/grants/bob")
    assert waiting.result().json()["code"] == "not_found"


@pytest.mark.parametrize("end", ["revoked", "expired", "disabled"])
async def test_a_page_held_for_a_bearer_that_ends_meanwhile_gives_nothing_away(
    world: World, tails: Tails, alice: Person, bob: Person, thread: str, end: str
) -> None:
    lasting = {"expiresAt": "2026-05-06T12:35:56.789Z"} if end == "expired" else {}
    minted = (await world.admin.post("/v1/principals/bob/tokens", lasting)).json()
    there = world.person("bob", minted["token"])
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        waiting = group.create_task(there.get(f"/v1/threads/{thread}/events?fromSeq=4&waitMs=30000", expect=401))
        await tails.are(1)
        if end == "revoked":
            await world.admin.delete(f"/v1/principals/bob/tokens/{minted['tokenId']}")
        elif end == "disabled":
            await world.admin.patch("/v1/principals/bob", {"disabled": True})
        else:
            world.clock.pass_ms(120_000)
        await alice.append(thread, alice.says("r"))
    assert waiting.result().json()["code"] == "unauthenticated"
    if end != "disabled":
        assert await page(bob, thread, "?fromSeq=4") == ([4], None)


async def test_a_held_page_of_a_client_that_left_is_let_go(tails: Tails, alice: Person, thread: str) -> None:
    async with asyncio.timeout(5):
        waiting = asyncio.create_task(page(alice, thread, "?fromSeq=4&waitMs=30000"))
        await tails.are(1)
        waiting.cancel()
        await asyncio.wait([waiting])
        await tails.are(0)


async def test_a_draining_server_answers_held_pages_at_once(
    world: World, tails: Tails, alice: Person, thread: str
) -> None:
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        waiting = group.create_task(page(alice, thread, "?fromSeq=4&waitMs=30000"))
        await tails.are(1)
        await world.app.drain()
    assert waiting.result() == ([], None)


# --- time -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("PR-1-24", "PR-1-25", "EV-06", "EV-07")
async def test_the_time_is_the_commits_and_never_runs_backwards(world: World, alice: Person, thread: str) -> None:
    world.clock.now = NOW + 1_000
    assert (await alice.append(thread, alice.says("r")))["createdAt"] == "2026-05-06T12:34:57.789Z"
    world.clock.now = NOW - 5_000
    assert (await alice.append(thread, alice.says("r")))["createdAt"] == "2026-05-06T12:34:57.789Z"
