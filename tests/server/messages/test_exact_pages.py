"""A page of a thread, out of part of its events, is what folding all of them gives."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bubble.assembler import BubbleMessage, Grouping
from bubble.server.messages import paging
from bubble.server.messages.encoding import message_json
from bubble.server.messages.forms import Form
from bubble.server.messages.paging import Page, read_page, write_page
from bubble.server.messages.portion import first_seq
from bubble.server.messages.reading import Turns
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


@pytest.mark.requirement("PR-6-32")
@given(made=moves(most=120), grouping=st.sampled_from(["speaker", "run"]), most=st.integers(1, 3_000))
def test_pages_of_so_many_bytes_give_every_message_once(made: list[Move], grouping: Grouping, most: int) -> None:
    async def story() -> None:
        store = MemoryStore()
        head = await filled(store, THREAD, made)
        view = a_view(store, grouping)
        found: list[bytes] = []
        before: int | None = head + 1
        while before is not None:
            page = await read_page(view, before=before, limit=200, head=head)
            texts, before = await write_page(page, Form("json"), Turns())
            assert sum(map(len, texts)) <= most or len({first_seq(json.loads(text)) for text in texts}) == 1
            found = [*texts, *found]
        assert found == [message_json(message) for message in await whole(view, head)]

    with in_small(), patch.object(paging, "PAGE_BYTES", most):
        asyncio.run(story())


async def said(store: MemoryStore, texts: Sequence[str]) -> int:
    """Writes a message for each text, with the ids `r0`, `r1` and so on; the head."""
    for number, text in enumerate(texts):
        of_run = {"principalId": "ann", "runId": f"r{number}"}
        chunks = [
            {"type": "text-start", "id": "1"},
            *({"type": "text-delta", "id": "1", "delta": one} for one in text.split(" ")),
        ]
        parts = [{"type": "message_part", "version": "ai-sdk-v6", "part": chunk, **of_run} for chunk in chunks]
        await store.append_many(THREAD, [{"type": "run_started", **of_run}, *parts])
    return (await store.position(THREAD)).head


@pytest.mark.anyio
async def test_the_bytes_of_a_page_are_those_that_are_sent() -> None:
    store = MemoryStore()
    head = await said(store, ["- item\n" * 30] * 10)
    view = a_view(store)
    with patch.object(paging, "PAGE_BYTES", 3_000):
        page = await read_page(view, before=head + 1, limit=50, head=head)
        as_json, as_html = [await write_page(page, Form(format), Turns()) for format in ("json", "html")]
    for texts, before in (as_json, as_html):
        assert 3_000 - len(texts[0]) < sum(map(len, texts)) <= 3_000
        assert before == first_seq(json.loads(texts[0]))
        assert json.loads(texts[-1])["id"] == "r9"
    assert 1 < len(as_html[0]) < len(as_json[0]) < 10


@pytest.mark.anyio
async def test_a_page_of_long_messages_does_not_look_back_for_more_than_fit() -> None:
    """A hundred messages of 20 KB each: with pages of 100 KB the last look is not for all that were asked for."""
    store = MemoryStore()
    head = await said(store, [" ".join(["x" * 1_000] * 20)] * 100)
    view = a_view(store)
    with patch.multiple(paging, PAGE_BYTES=100_000, LOOK_BYTES=200_000, LOOK_BACK=32):
        page = await read_page(view, before=head + 1, limit=50, head=head)
    assert [message["id"] for message in page.messages] == [f"r{number}" for number in range(96, 100)]
    assert page.next_before == first_seq(page.messages[0])
    assert view.log.turns.folded < 600


@pytest.mark.anyio
async def test_reactions_to_later_messages_cost_an_older_page_no_folding() -> None:
    store = MemoryStore()
    head = await said(store, ["hello"] * 40)
    to_last = {"kind": "reaction", "targetSeq": head, "emoji": "x"}
    parts = [{**to_last, "op": op} for op in ("add", "remove") for _ in range(500)] + [
        {**to_last, "targetSeq": 2, "op": "add"}
    ]
    of_run = {"principalId": "bob", "runId": "b"}
    reactions = [{"type": "message_part", "version": "bubble-v1", "part": part, **of_run} for part in parts]
    await store.append_many(THREAD, [{"type": "run_started", **of_run}, *reactions])
    view = a_view(store)
    with patch.object(paging, "LOOK_BEYOND", 8):
        page = await read_page(view, before=5, limit=5, head=head + 1 + len(parts))
    [message] = page.messages
    assert message["metadata"]["bubble"].get("reactions") == {"x": ["bob"]}
    assert view.log.turns.folded < 20
