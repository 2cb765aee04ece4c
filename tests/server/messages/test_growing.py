"""What a growing thread tells adds up to what folding all of it gives."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bubble.assembler import BubbleMessage, Grouping
from bubble.server.messages import growing as growing_module
from bubble.server.messages.growing import Growing
from bubble.server.messages.portion import first_seq, last_seq
from bubble.store.memory import MemoryStore
from tests.server.messages.logs import Move, filled, moves
from tests.server.messages.views import THREAD, a_view, in_small, whole

Steps = list[tuple[int, bool]]


def by_id(messages: list[BubbleMessage]) -> dict[str, BubbleMessage]:
    return {message["id"]: message for message in messages}


async def shows_what_is_there(growing: Growing, messages: list[BubbleMessage]) -> None:
    """Whatever it knows is right, and from `first` on, and of what changed after `covers`, it knows everything."""
    known, there = by_id(growing.messages), by_id(messages)
    assert known.items() <= there.items()
    assert [one for one in growing.messages if first_seq(one) >= growing.first] == [
        one for one in messages if first_seq(one) >= growing.first
    ]


@settings(max_examples=250)
@given(
    made=moves(most=200),
    grouping=st.sampled_from(["speaker", "run"]),
    start=st.integers(0, 100),
    limit=st.integers(0, 5),
    steps=st.lists(st.tuples(st.integers(1, 7), st.booleans()), min_size=1, max_size=12),
)
def test_what_is_told_of_each_step_is_every_change_and_nothing_else(
    made: list[Move], grouping: Grouping, start: int, limit: int, steps: Steps
) -> None:
    async def story() -> None:
        store = MemoryStore()
        head = await filled(store, THREAD, made)
        view = a_view(store, grouping)
        start_at = min(start, head)
        growing = await (Growing.with_messages(view, limit, head=start_at) if limit else Growing.after(view, start_at))
        viewer = by_id(await whole(view, start_at))
        for count, shortens in steps:
            if growing.head == head:
                break
            before = growing.head
            changes = await growing.grow(await view.log.texts(before + 1, min(head, before + count)))
            assert all(before < last_seq(message) <= growing.head for message in changes.upserts)
            viewer |= by_id(list(changes.upserts))
            messages = await whole(view, growing.head)
            assert viewer == by_id(messages)
            if shortens:
                await growing.shorten()
            await shows_what_is_there(growing, messages)

    with in_small():
        asyncio.run(story())


@settings(max_examples=200)
@given(
    made=moves(most=200),
    grouping=st.sampled_from(["speaker", "run"]),
    limit=st.integers(1, 5),
    since=st.integers(0, 30),
)
def test_what_it_covers_it_knows(made: list[Move], grouping: Grouping, limit: int, since: int) -> None:
    async def story() -> None:
        store = MemoryStore()
        head = max(0, await filled(store, THREAD, made) - since)
        view = a_view(store, grouping)
        growing = await Growing.with_messages(view, limit, head=head)
        messages = await whole(view, head)
        await shows_what_is_there(growing, messages)
        known = by_id(growing.messages)
        assert [one["id"] for one in messages if last_seq(one) > growing.covers and one["id"] not in known] == []
        assert len([one for one in growing.messages if first_seq(one) >= growing.first]) >= min(limit, len(messages))

    with in_small():
        asyncio.run(story())


@pytest.mark.anyio
async def test_a_thread_that_is_followed_for_long_is_held_no_longer_than_what_people_look_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(growing_module, "LONG_EVENTS", 400)
    monkeypatch.setattr(growing_module, "KEPT_MESSAGES", 10)
    store = MemoryStore()
    view = a_view(store)
    message: list[Move] = [("ann", 0, kind, 0) for kind in ("begin run", "begin text", "text", "end run")]
    head = await filled(store, THREAD, message * 1_000)
    growing = await Growing.after(view, 0)
    sizes: set[int] = set()
    while growing.head < head:
        await growing.grow(await view.log.texts(growing.head + 1, growing.head + 100))
        await growing.shorten()
        sizes.add(growing.size)
    assert head == 4_000
    assert max(sizes) <= 400
    assert growing.messages == (await whole(view, head))[-len(growing.messages) :]
    assert len(growing.messages) >= 10
