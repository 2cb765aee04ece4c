"""A page of a thread, out of part of its events, is what folding all of them gives."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bubble.assembler import BubbleMessage, Grouping
from bubble.server.messages.paging import Page, read_page
from bubble.server.messages.portion import first_seq
from bubble.store.memory import MemoryStore
from tests.server.messages.logs import Move, filled, moves
from tests.server.messages.views import THREAD, a_view, in_small, whole


def expected(messages: Sequence[BubbleMessage], *, before: int, limit: int) -> Page:
    """The page of these messages; those that one event opened stay together."""
    below = [message for message in messages if first_seq(message) < before]
    oldest = min((first_seq(message) for message in below[-limit:]), default=0)
    page = [message for message in below if first_seq(message) >= oldest]
    return Page(page, oldest if len(page) < len(below) else None)


@pytest.mark.requirement("PR-6-32")
@settings(max_examples=300)
@given(
    made=moves(most=250),
    grouping=st.sampled_from(["speaker", "run"]),
    before=st.integers(1, 250),
    limit=st.integers(1, 12),
)
def test_a_page_is_what_the_whole_thread_shows(made: list[Move], grouping: Grouping, before: int, limit: int) -> None:
    async def story() -> None:
        store = MemoryStore()
        head = await filled(store, THREAD, made)
        view = a_view(store, grouping)
        page = await read_page(view, before=before, limit=limit, head=head)
        assert page == expected(await whole(view, head), before=before, limit=limit)

    with in_small():
        asyncio.run(story())


@given(made=moves(most=120), grouping=st.sampled_from(["speaker", "run"]), limit=st.integers(1, 4))
def test_paging_back_gives_every_message_once(made: list[Move], grouping: Grouping, limit: int) -> None:
    async def story() -> None:
        store = MemoryStore()
        head = await filled(store, THREAD, made)
        view = a_view(store, grouping)
        found: list[BubbleMessage] = []
        before: int | None = head + 1
        while before is not None:
            page = await read_page(view, before=before, limit=limit, head=head)
            found = [*page.messages, *found]
            before = page.next_before
        assert found == await whole(view, head)

    with in_small():
        asyncio.run(story())


@given(made=moves(most=120), grouping=st.sampled_from(["speaker", "run"]), since=st.integers(0, 40))
def test_a_page_is_of_its_head_whatever_came_since(made: list[Move], grouping: Grouping, since: int) -> None:
    async def story() -> None:
        store = MemoryStore()
        head = max(0, await filled(store, THREAD, made) - since)
        view = a_view(store, grouping)
        page = await read_page(view, before=head + 1, limit=5, head=head)
        assert page == expected(await whole(view, head), before=head + 1, limit=5)

    with in_small():
        asyncio.run(story())
