"""Every method of the client against a real server in the same process."""

from __future__ import annotations

import anyio
import pytest
from msgspec import UNSET

from bubble.client import BubbleConnection
from bubble.protocol.errors import Conflict, Forbidden, InvalidRequest, NotFound, Unauthenticated
from bubble.protocol.events import BubbleEvent, RunFinished, RunStarted, SequencedEvent
from bubble.protocol.resources import MintedToken, Principal, PrincipalSummary
from bubble.testing.server import BubbleServer

pytestmark = pytest.mark.anyio


def started(run_id: str, principal_id: str = "admin") -> RunStarted:
    return RunStarted(principal_id=principal_id, run_id=run_id)


async def test_the_client_knows_who_it_is_and_what_the_server_speaks(bubble_client: BubbleConnection) -> None:
    assert (await bubble_client.who_am_i()).principal_id == "admin"
    protocol = await bubble_client.protocol()
    assert (protocol.protocol_version, protocol.limits.event_bytes) == (1, 1024 * 1024)


async def test_a_thread_is_created_read_changed_listed_and_deleted(bubble_client: BubbleConnection) -> None:
    thread = await bubble_client.create_thread(title="First", thread_id="t-1", metadata={"team": "a"})
    assert (thread.thread_id, thread.title, thread.metadata) == ("t-1", "First", {"team": "a"})
    changed = await bubble_client.update_thread("t-1", title="Second", join_policy="open", metadata=None)
    assert (changed.title, changed.join_policy, changed.metadata) == ("Second", "open", UNSET)
    unchanged = await bubble_client.update_thread("t-1", metadata={"team": "b"})
    assert (unchanged.title, unchanged.metadata) == ("Second", {"team": "b"})
    assert (await bubble_client.get_thread("t-1")).head_seq == 2
    assert [each.thread_id async for each in bubble_client.list_threads(query="Sec")] == ["t-1"]
    await bubble_client.delete_thread("t-1")
    with pytest.raises(NotFound):
        await bubble_client.get_thread("t-1")
    with pytest.raises(Conflict):
        await bubble_client.create_thread(thread_id="t-1")


async def test_lists_are_read_page_after_page_or_one_page_at_a_time(bubble_client: BubbleConnection) -> None:
    for number in range(5):
        await bubble_client.create_thread(thread_id=f"t-{number}")
    listing = bubble_client.list_threads(limit=2)
    assert len({each.thread_id async for each in listing}) == 5
    first = await listing.page()
    second = await listing.page(after=first.next_after)
    assert [len(first.threads), len(second.threads)] == [2, 2]
    assert {each.thread_id for each in first.threads}.isdisjoint(each.thread_id for each in second.threads)


async def test_an_append_answers_with_the_stored_event(bubble_client: BubbleConnection) -> None:
    thread = await bubble_client.create_thread()
    stored = await bubble_client.append_event(thread.thread_id, started("r"))
    assert (stored.seq, stored.event) == (2, started("r"))
    page = await bubble_client.get_event_page(thread.thread_id, from_seq=2)
    assert [bytes(each) for each in page.events] == [stored.text]
    assert page.next_seq is None


@pytest.mark.requirement("PR-6-46")
async def test_a_repeated_append_is_stored_once(bubble_client: BubbleConnection) -> None:
    thread = await bubble_client.create_thread()
    both = [await bubble_client.append_event(thread.thread_id, started("r"), idempotency_key="once") for _ in range(2)]
    assert both[0].text == both[1].text
    assert (await bubble_client.get_thread(thread.thread_id)).head_seq == 2


async def test_an_expected_head_that_is_wrong_tells_the_real_one(bubble_client: BubbleConnection) -> None:
    thread = await bubble_client.create_thread()
    with pytest.raises(Conflict) as refused:
        await bubble_client.append_event(thread.thread_id, started("r"), expected_head=7)
    assert refused.value.details == {"headSeq": 1}
    assert (await bubble_client.append_event(thread.thread_id, started("r"), expected_head=1)).seq == 2


async def test_a_batch_is_appended_in_order_all_or_none(bubble_client: BubbleConnection) -> None:
    thread = await bubble_client.create_thread()
    finished = RunFinished(principal_id="admin", run_id="a")
    batch: list[BubbleEvent] = [started("a"), finished, started("b")]
    assert [each.seq for each in await bubble_client.append_events(thread.thread_id, batch)] == [2, 3, 4]
    with pytest.raises(Conflict):
        await bubble_client.append_events(thread.thread_id, [started("c"), started("a")])
    assert (await bubble_client.get_thread(thread.thread_id)).head_seq == 4


async def test_history_is_iterated_over_pages(bubble_client: BubbleConnection) -> None:
    thread = await bubble_client.create_thread()
    for group in range(3):
        await bubble_client.append_events(thread.thread_id, [started(f"r-{group}-{each}") for each in range(500)])
    assert [event.seq async for event in bubble_client.iter_events(thread.thread_id)] == list(range(1, 1_502))
    assert [event.seq async for event in bubble_client.iter_events(thread.thread_id, from_seq=5, to_seq=8)] == [
        5,
        6,
        7,
        8,
    ]


async def test_an_empty_page_can_be_waited_for(bubble_client: BubbleConnection) -> None:
    thread = await bubble_client.create_thread()
    pages = []

    async def wait_for_it() -> None:
        pages.append(await bubble_client.get_event_page(thread.thread_id, from_seq=2, wait_ms=20_000))

    with anyio.fail_after(15):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait_for_it)
            await anyio.lowlevel.checkpoint()
            await bubble_client.append_event(thread.thread_id, started("r"))
    assert len(pages[0].events) == 1


async def test_a_thread_is_imported_with_its_seqs_and_times(bubble_client: BubbleConnection) -> None:
    events = [
        SequencedEvent.from_text(
            b'{"seq":%d,"createdAt":"2020-01-01T00:00:00.00%dZ","type":"run_started","principalId":"admin","runId":"r%d"}'
            % (seq, seq, seq)
        )
        for seq in (1, 2)
    ]
    thread = await bubble_client.import_thread("old", events, title="From before", join_policy="open")
    assert (thread.title, thread.head_seq) == ("From before", 2)
    assert [event.text async for event in bubble_client.iter_events("old")] == [event.text for event in events]


async def test_grants_are_put_listed_and_removed(bubble_server: BubbleServer) -> None:
    alice = await bubble_server.register("alice")
    admin = bubble_server.admin
    thread = await admin.create_thread(participants={"alice": "observer"})
    grant = await admin.put_grant(thread.thread_id, "alice", "participant")
    assert (grant.role, grant.granted_by) == ("participant", "admin")
    assert [each.principal_id async for each in admin.list_grants(thread.thread_id)] == ["admin", "alice"]
    async with bubble_server.connect(alice) as client:
        assert [each.thread_id async for each in client.my_grants()] == [thread.thread_id]
        with pytest.raises(Forbidden):
            await client.put_grant(thread.thread_id, "alice", "owner")
        await client.remove_grant(thread.thread_id, "alice")
        assert [each async for each in client.my_grants()] == []


async def test_runs_and_the_cursor_are_read_and_set(bubble_client: BubbleConnection) -> None:
    thread = await bubble_client.create_thread()
    await bubble_client.append_events(
        thread.thread_id, [started("a"), RunFinished(principal_id="admin", run_id="a"), started("b")]
    )
    assert [each.run_id async for each in bubble_client.list_runs(thread.thread_id, state="open")] == ["b"]
    assert [each.run_id async for each in bubble_client.list_runs(thread.thread_id, principal_id="admin", limit=1)] == [
        "a",
        "b",
    ]
    assert await bubble_client.get_cursor(thread.thread_id) == 0
    assert await bubble_client.advance_cursor(thread.thread_id, 3) == 3
    assert await bubble_client.advance_cursor(thread.thread_id, 2) == 3
    with pytest.raises(InvalidRequest):
        await bubble_client.advance_cursor(thread.thread_id, 99)


async def test_principals_are_registered_read_changed_and_listed(bubble_server: BubbleServer) -> None:
    admin = bubble_server.admin
    bot = await admin.create_principal("helper", kind="bot", owner_principal_id="admin", metadata={"model": "x"})
    assert (bot.display_name, bot.owner_principal_id) == ("helper", "admin")
    changed = await admin.update_principal("helper", display_name="Helper", metadata=None)
    assert (changed.display_name, changed.metadata) == ("Helper", UNSET)
    assert [each.principal_id async for each in admin.list_principals(owner="admin")] == ["helper"]
    alice = await bubble_server.register("alice")
    async with bubble_server.connect(alice) as client:
        assert isinstance(await client.get_principal("admin"), PrincipalSummary)
        assert isinstance(await client.get_principal("alice"), Principal)
        with pytest.raises(Forbidden):
            await client.create_principal("other", kind="user")


async def test_tokens_are_minted_listed_narrowed_and_revoked(bubble_server: BubbleServer) -> None:
    admin = bubble_server.admin
    await admin.create_principal("bot", kind="bot", owner_principal_id="admin")
    minted = await admin.mint_token(
        "bot", name="ci", capabilities=["thread.read"], threads=["t-1"], expires_at="2100-01-01T00:00:00.000Z"
    )
    assert isinstance(minted, MintedToken)
    assert (minted.capabilities, minted.threads, minted.expires_at) == (
        ["thread.read"],
        ["t-1"],
        "2100-01-01T00:00:00.000Z",
    )
    assert [each.token_id for each in await admin.list_tokens("bot")] == [minted.token_id]
    async with bubble_server.connect(minted.token) as client:
        assert (await client.who_am_i()).principal_id == "bot"
        await admin.revoke_token("bot", minted.token_id)
        with pytest.raises(Unauthenticated):
            await client.who_am_i()


async def test_a_ticket_is_minted_for_a_browser(bubble_client: BubbleConnection) -> None:
    ticket = await bubble_client.mint_ticket()
    assert ticket.ticket
    assert isinstance(ticket.expires_at, str)


async def test_closing_a_principals_connections_makes_a_callable_give_another_token(
    bubble_server: BubbleServer,
) -> None:
    alice = await bubble_server.register("alice")
    second = (await bubble_server.admin.mint_token("alice")).token
    tokens = iter([alice.token, second])
    thread = await bubble_server.admin.create_thread(participants={"alice": "participant"})
    async with (
        bubble_server.connect(lambda: next(tokens)) as client,
        client.subscribe_thread(thread.thread_id) as events,
    ):
        assert [(await anext(events)).seq for _ in range(2)] == [1, 2]
        await bubble_server.admin.close_connections("alice")
        stored = await bubble_server.admin.append_event(thread.thread_id, started("r"))
        with anyio.fail_after(10):
            assert (await anext(events)).text == stored.text
        assert events.statistics().opened == 2


@pytest.mark.parametrize(
    "url",
    ["bubble.test", "ftp://bubble.test", "http://", "http://bubble.test?token=x", "http://user:secret@bubble.test"],
)
def test_an_address_that_cannot_be_a_servers_is_refused(url: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        BubbleConnection(url, token="t")
    assert "secret" not in str(refused.value)


def test_neither_the_client_nor_its_parts_show_the_token() -> None:
    client = BubbleConnection("http://bubble.test", token="bubble_user_secret")
    assert "bubble_user_secret" not in repr(client) + repr(vars(client)) + str(vars(client._tokens).keys())
