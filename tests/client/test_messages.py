"""A thread followed as messages."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from bubble.assembler import MessagePart, NativePart
from bubble.client import BubbleConnection, MessagesUpdate
from bubble.extensions import Extension
from bubble.extensions.artifacts import EXTENSION
from bubble.protocol.errors import InvalidRequest, NotFound
from bubble.protocol.events import RunFinished, RunStarted
from bubble.testing.server import BubbleServer

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]


@pytest.fixture
async def thread_id(bubble_client: BubbleConnection) -> str:
    return (await bubble_client.create_thread()).thread_id


def texts(update: MessagesUpdate) -> list[str]:
    """What each message says, from the run of somebody."""
    said = []
    for message in update.messages:
        pieces = [str(part["text"]) for part in message["parts"] if part["type"] == "text"]
        if pieces:
            said.append("".join(pieces))
    return said


async def say(client: BubbleConnection, thread_id: str, text: str, *, run_id: str | None = None) -> None:
    async with client.run(thread_id, run_id=run_id, kind="agent_work") as run:
        await run.text(text)


async def test_the_first_update_is_the_history_and_the_next_ones_what_changes(
    bubble_client: BubbleConnection, thread_id: str
) -> None:
    await say(bubble_client, thread_id, "before")
    async with bubble_client.follow_messages(thread_id) as view:
        first = await anext(view)
        assert texts(first) == ["before"]
        assert (first.upserts, first.removals) == (first.messages, ())
        await say(bubble_client, thread_id, "after", run_id="r")
        async for update in view:
            if update.messages[-1]["metadata"]["bubble"]["status"] == "finished":
                break
        assert texts(update) == ["before", "after"]
        assert [message["id"] for message in update.upserts] == ["r"]
        assert update.messages[0] is first.messages[0]
        assert update.head_seq == (await bubble_client.get_thread(thread_id)).head_seq


async def test_a_thread_where_nobody_said_anything_has_an_update_too(
    bubble_client: BubbleConnection, thread_id: str
) -> None:
    async with bubble_client.follow_messages(thread_id, from_seq=2) as view:
        update = await anext(view)
        assert (update.messages, update.head_seq, view.has_older) == ((), 0, True)
        await say(bubble_client, thread_id, "hello")
        assert [message["metadata"]["bubble"]["principalId"] for message in (await anext(view)).messages] == ["admin"]


async def test_a_reader_that_is_slow_sees_the_newest_state_only(
    bubble_client: BubbleConnection, thread_id: str
) -> None:
    async with bubble_client.follow_messages(thread_id) as view:
        await anext(view)
        async with bubble_client.subscribe_thread(thread_id) as events:
            async with bubble_client.run(thread_id) as run:
                for number in range(500):
                    await run.text(f"{number} ")
            async for stored in events:
                if stored.type == "run_finished":
                    break
        updates = [await anext(view)]
        while updates[-1].messages[-1]["metadata"]["bubble"]["status"] == "streaming":
            updates.append(await anext(view))
        assert texts(updates[-1]) == ["".join(f"{number} " for number in range(500))]
        assert len(updates) < 50


async def test_nothing_is_told_of_events_that_change_no_message(
    bubble_client: BubbleConnection, thread_id: str
) -> None:
    async with bubble_client.follow_messages(thread_id) as view:
        await anext(view)
        await bubble_client.append_event(thread_id, RunStarted(principal_id="admin", run_id="silent"))
        await bubble_client.append_event(thread_id, RunFinished(principal_id="admin", run_id="silent"))
        await say(bubble_client, thread_id, "at last", run_id="r")
        assert [message["id"] for message in (await anext(view)).upserts] == ["r"]


async def test_of_a_long_thread_the_end_is_read_and_the_rest_when_it_is_asked_for(
    bubble_client: BubbleConnection, thread_id: str
) -> None:
    async with bubble_client.run(thread_id, run_id="long") as run:
        for number in range(1_500):
            await run.text(f"{number} ")
    await say(bubble_client, thread_id, "the end", run_id="last")
    async with bubble_client.follow_messages(thread_id) as view:
        with pytest.raises(RuntimeError, match="first update"):
            await view.load_older()
        shown = [(texts(await anext(view)), view.has_older)]
        older = await view.load_older()
        shown.append((texts(older), view.has_older))
        assert shown == [(["the end"], True), (["".join(f"{number} " for number in range(1_500)), "the end"], False)]
        assert "last" not in [message["id"] for message in older.upserts]
        nothing = await view.load_older()
        assert (texts(nothing), nothing.upserts, nothing.removals) == (texts(older), (), ())
        await say(bubble_client, thread_id, "more", run_id="more")
        assert [message["id"] for message in (await anext(view)).upserts] == ["more"]


async def test_older_messages_can_be_asked_for_little_by_little(
    bubble_client: BubbleConnection, thread_id: str
) -> None:
    for number in range(3):
        await say(bubble_client, thread_id, str(number))
    head = (await bubble_client.get_thread(thread_id)).head_seq
    async with bubble_client.follow_messages(thread_id, from_seq=head + 1) as view:
        shown = [texts(await anext(view))]
        while view.has_older:
            shown.append(texts(await view.load_older(limit=5)))
    assert shown == [[], ["2"], ["1", "2"], ["0", "1", "2"], ["0", "1", "2"]]


async def test_a_thread_of_few_messages_is_read_back_in_ever_larger_steps(
    bubble_client: BubbleConnection, thread_id: str
) -> None:
    async with bubble_client.run(thread_id, run_id="long") as run:
        for number in range(8_500):
            await run.text(f"{number} ")
    async with bubble_client.follow_messages(thread_id) as view:
        update, steps = await anext(view), 0
        while view.has_older:
            update, steps = await view.load_older(), steps + 1
    assert texts(update) == ["".join(f"{number} " for number in range(8_500))]
    assert steps == 4  # 2,000, 4,000, 8,000, all: and not one for each thousand


@pytest.mark.parametrize("limit", [0, -5, 1.5, "3"])
async def test_older_messages_are_asked_for_by_a_number_that_can_be_one(
    bubble_client: BubbleConnection,
    thread_id: str,
    limit: Any,  # noqa: ANN401 - wrong ones
) -> None:
    await say(bubble_client, thread_id, "hello")
    async with bubble_client.follow_messages(thread_id, from_seq=4) as view:
        await anext(view)
        with pytest.raises(InvalidRequest, match="`limit`"):
            await view.load_older(limit=limit)
        assert texts(await view.load_older()) == ["hello"]


async def test_what_is_before_a_beginning_that_is_yet_to_come_is_there_when_it_is_asked_for(
    bubble_client: BubbleConnection, thread_id: str
) -> None:
    await say(bubble_client, thread_id, "before")
    head = (await bubble_client.get_thread(thread_id)).head_seq
    async with bubble_client.follow_messages(thread_id, from_seq=head + 100) as view:
        assert ((await anext(view)).messages, view.has_older) == ((), True)
        loaded = await view.load_older()
        assert (texts(loaded), view.has_older) == (["before"], False)
        await say(bubble_client, thread_id, "meanwhile", run_id="r")
        async for update in view:
            if update.messages[-1]["metadata"]["bubble"]["status"] == "finished":
                break
        assert texts(update) == ["before", "meanwhile"]


class Gate:
    """A handler that tells when it is asked, and answers when it may."""

    kind = "gated"

    def __init__(self) -> None:
        self.is_asked, self.may_answer = asyncio.Event(), asyncio.Event()

    async def to_chunks(self, part: NativePart) -> Sequence[Mapping[str, Any]]:
        self.is_asked.set()
        await self.may_answer.wait()
        return [{"type": "data-gated", "data": dict(part)}]

    def from_ui_part(self, _: MessagePart) -> NativePart | None:
        return None


async def test_older_messages_that_are_asked_for_while_new_ones_are_folded_leave_none_out(
    bubble_client: BubbleConnection, thread_id: str
) -> None:
    gate = Gate()
    bubble_client.assembler.settle([Extension(name="gated", version=1, part_handlers=(gate,))])
    await say(bubble_client, thread_id, "before")
    head = (await bubble_client.get_thread(thread_id)).head_seq
    async with bubble_client.follow_messages(thread_id, from_seq=head + 7) as view:
        await anext(view)
        async with bubble_client.subscribe_thread(thread_id) as events:
            await say(bubble_client, thread_id, "meanwhile")  # five events, below the beginning
            async with bubble_client.run(thread_id) as run:
                await run.part({"kind": "gated"}, version="bubble-v1")
            async for stored in events:
                if stored.seq == head + 8:
                    break
        reading = asyncio.create_task(anext(view))
        await gate.is_asked.wait()
        loading = asyncio.create_task(view.load_older())
        for _ in range(10):
            await asyncio.sleep(0)
        gate.may_answer.set()
        await asyncio.gather(reading, loading)
        loaded = await view.load_older()
    assert texts(loaded) == ["before", "meanwhile"]
    assert (loaded.head_seq, view.has_older) == (head + 8, False)


async def test_what_comes_before_the_beginning_is_not_shown(bubble_client: BubbleConnection, thread_id: str) -> None:
    first = (await bubble_client.get_thread(thread_id)).head_seq + 1
    async with bubble_client.follow_messages(thread_id, from_seq=first + 5) as view:
        await anext(view)
        await say(bubble_client, thread_id, "one")  # five events
        await say(bubble_client, thread_id, "two")
        async for update in view:
            assert len(update.messages) == 1
            if update.messages[0]["metadata"]["bubble"]["status"] == "finished":
                break
        assert texts(update) == ["two"]
        assert texts(await view.load_older(limit=5)) == ["one", "two"]


async def test_older_events_that_could_not_be_read_can_be_asked_for_again(
    bubble_server: BubbleServer, thread_id: str
) -> None:
    alice = await bubble_server.register("alice")
    await bubble_server.admin.put_grant(thread_id, "alice", "observer")
    for text in ("one", "two"):
        await say(bubble_server.admin, thread_id, text)
    last = (await bubble_server.admin.get_thread(thread_id)).head_seq
    async with bubble_server.connect(alice) as hers, hers.follow_messages(thread_id, from_seq=last) as view:
        await anext(view)
        await bubble_server.admin.remove_grant(thread_id, "alice")
        with pytest.raises(NotFound):
            await view.load_older()
        await bubble_server.admin.put_grant(thread_id, "alice", "observer")
        assert view.has_older
        assert texts(await view.load_older()) == ["one", "two"]


@pytest.mark.parametrize("grouping", ["speaker", "run"])
async def test_messages_are_grouped_as_it_was_asked_for(
    bubble_server: BubbleServer, thread_id: str, grouping: str
) -> None:
    alice = await bubble_server.register("alice")
    await bubble_server.admin.put_grant(thread_id, "alice", "participant")
    async with bubble_server.connect(alice) as hers, bubble_server.admin.run(thread_id, run_id="a") as one:
        await one.text("Once ")
        await one.flush()
        await say(hers, thread_id, "Hm.", run_id="b")
        await one.text("upon a time.")
        await one.flush()
        async with hers.follow_messages(thread_id, grouping=grouping) as view:  # type: ignore[arg-type]
            update = await anext(view)
    expected = {"speaker": ["Once ", "Hm.", "upon a time."], "run": ["Once upon a time.", "Hm."]}
    assert texts(update) == expected[grouping]


async def with_a_report(client: BubbleConnection, thread_id: str) -> None:
    """A thread with a message that no handler has to do with, and one with an artifact."""
    await say(client, thread_id, "hello", run_id="hello")
    async with client.run(thread_id, run_id="report") as run:
        await run.artifact("a", text="Costs")


def kinds(update: MessagesUpdate) -> list[Any]:
    return [part["type"] for part in update.messages[-1]["parts"]]


@pytest.mark.requirement("TA-C-08")
async def test_another_set_of_extensions_shows_what_is_there_anew_at_once(
    bubble_client: BubbleConnection, thread_id: str
) -> None:
    provider = bubble_client.assembler
    provider.settle([])
    await with_a_report(bubble_client, thread_id)
    async with bubble_client.follow_messages(thread_id) as view:
        before = await anext(view)
        waiting = asyncio.create_task(anext(view))
        await asyncio.sleep(0)
        provider.settle([EXTENSION])
        after = await waiting
        assert (kinds(before), kinds(after)) == (["data-bubble-extension"], ["data-bubble-artifact"])
        assert [message["id"] for message in after.upserts] == ["report"]
        assert after.messages[-2] is before.messages[-2]
        assert after.head_seq == before.head_seq
        await say(bubble_client, thread_id, "more", run_id="more")
        assert [message["id"] for message in (await anext(view)).upserts] == ["more"]


@pytest.mark.requirement("TA-C-08")
async def test_older_messages_are_shown_by_the_newest_set_of_extensions(
    bubble_client: BubbleConnection, thread_id: str
) -> None:
    provider = bubble_client.assembler
    provider.settle([])
    await with_a_report(bubble_client, thread_id)
    head = (await bubble_client.get_thread(thread_id)).head_seq
    async with bubble_client.follow_messages(thread_id, from_seq=head + 1) as view:
        await anext(view)
        provider.settle([EXTENSION])
        provider.settle([])
        provider.settle([EXTENSION])
        await say(bubble_client, thread_id, "more", run_id="more")
        await anext(view)
        loaded = await view.load_older()
    report = next(message for message in loaded.messages if message["id"] == "report")
    assert [part["type"] for part in report["parts"]] == ["data-bubble-artifact"]


async def test_another_grouping_is_refused(bubble_client: BubbleConnection, thread_id: str) -> None:
    with pytest.raises(ValueError, match="grouping"):
        async with bubble_client.follow_messages(thread_id, grouping="author"):  # type: ignore[arg-type]
            raise AssertionError("The block must not be entered.")


async def test_a_reader_that_is_cancelled_at_any_moment_can_go_on(
    bubble_client: BubbleConnection, thread_id: str
) -> None:
    await say(bubble_client, thread_id, "before")
    async with bubble_client.follow_messages(thread_id) as view:
        update: MessagesUpdate | None = None
        for turns in range(40):
            waiting = asyncio.create_task(anext(view))
            await say(bubble_client, thread_id, str(turns))
            for _ in range(turns):
                await asyncio.sleep(0)
            waiting.cancel()
            (outcome,) = await asyncio.gather(waiting, return_exceptions=True)
            update = outcome if isinstance(outcome, MessagesUpdate) else update
        await say(bubble_client, thread_id, "the end", run_id="end")
        while update is None or "end" not in [message["id"] for message in update.messages]:
            update = await anext(view)
        assert texts(update) == ["before", *map(str, range(40)), "the end"]


async def test_it_ends_for_who_is_removed_after_what_was_shown(bubble_server: BubbleServer, thread_id: str) -> None:
    alice = await bubble_server.register("alice")
    await bubble_server.admin.put_grant(thread_id, "alice", "observer")
    async with bubble_server.connect(alice) as hers, hers.follow_messages(thread_id) as view:
        await anext(view)
        await bubble_server.admin.remove_grant(thread_id, "alice")
        with pytest.raises(NotFound):
            await anext(view)


async def test_who_may_not_read_a_thread_cannot_follow_its_messages(
    bubble_server: BubbleServer, thread_id: str
) -> None:
    async with bubble_server.connect(await bubble_server.register("alice")) as hers:
        with pytest.raises(NotFound):
            async with hers.follow_messages(thread_id):
                raise AssertionError("The block must not be entered.")


async def test_it_is_entered_once_and_from_a_seq_that_can_be_one(
    bubble_client: BubbleConnection, thread_id: str
) -> None:
    view = bubble_client.follow_messages(thread_id)
    async with view:
        pass
    with pytest.raises(RuntimeError, match="entered once"):
        await view.__aenter__()
    with pytest.raises(InvalidRequest, match="from_seq"):
        bubble_client.follow_messages(thread_id, from_seq=0)
    with pytest.raises(InvalidRequest, match="from_seq"):
        bubble_client.follow_messages(thread_id, from_seq="3")  # type: ignore[arg-type]


async def test_it_is_not_read_before_it_is_entered(bubble_client: BubbleConnection, thread_id: str) -> None:
    for subscription in (
        bubble_client.follow_messages(thread_id),
        bubble_client.subscribe_thread(thread_id),
        bubble_client.subscribe_grants(),
    ):
        with pytest.raises(RuntimeError, match="`async with`"):
            await anext(subscription)
