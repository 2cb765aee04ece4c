"""What reaches into a part of a thread from outside it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from bubble.server.messages.growing import Growing
from bubble.server.messages.paging import read_page
from bubble.server.messages.portion import Portion, View, run_of
from bubble.store.memory import MemoryStore
from tests.server.messages.logs import Move, filled
from tests.server.messages.views import THREAD, a_view, in_small, whole

pytestmark = pytest.mark.anyio

# A text of Ann's goes on in the middle of one of Bob's: then it is Bob's turn anew. The numbers are seqs.
INTERRUPTED: list[Move] = [
    ("ann", 0, "begin run", 0),  # 1
    ("ann", 0, "begin text", 0),  # 2
    ("bob", 1, "begin run", 0),  # 3
    ("bob", 1, "begin text", 0),  # 4
    ("ann", 0, "text", 0),  # 5
    ("bob", 1, "text", 0),  # 6
]


@pytest.fixture
async def view() -> AsyncIterator[View]:
    """The interrupted text."""
    async with MemoryStore() as store:
        assert await filled(store, THREAD, INTERRUPTED) == 6
        yield a_view(store)


async def test_a_run_that_began_before_a_portion_takes_its_turns_in_it(view: View) -> None:
    portion = await Portion.fold(view, first=6, last=6)
    shown = (await portion.snapshot()).messages
    assert [message["id"] for message in shown if run_of(message) == "r1.0"] == ["r1.0", "r1.0~1"]
    assert (portion.begin, portion.first) == (3, 6)


async def test_of_a_run_that_began_before_a_portion_nothing_is_shown(view: View) -> None:
    portion = await Portion.fold(view, first=6, last=6)
    trusted = portion.trusted((await portion.snapshot()).messages)
    assert trusted == [message for message in await whole(view, 6) if run_of(message) == "r1.0"]


async def test_a_message_that_may_be_missing_is_not_passed_over(view: View) -> None:
    # Bob's two messages are known to a portion that begins with them, but Ann's between them is not.
    with in_small():
        page = await read_page(view, before=7, limit=2, head=6)
    assert [message["id"] for message in page.messages] == ["r0.0~1", "r1.0~1"]


async def test_a_reaction_to_what_lies_before_a_portion_is_told_with_the_right_message(view: View) -> None:
    growing = await Growing.after(view, 5)
    await growing.grow(await view.log.texts(6, 6))
    store = view.log.store
    part = {"kind": "reaction", "targetSeq": 5, "emoji": "\U0001f389", "op": "add"}
    event = {"type": "message_part", "principalId": "bob", "runId": "r1.0", "part": part, "version": "bubble-v1"}
    await store.append(THREAD, event)
    changes = await growing.grow(await view.log.texts(7, 7))
    assert list(changes.upserts) == [message for message in await whole(view, 7) if message["id"] == "r0.0~1"]


async def test_what_changed_messages_before_a_portion_is_not_covered(view: View) -> None:
    more: list[Move] = [("bob", 1, "text", 0)] * 3
    assert await filled(view.log.store, THREAD, [*more, ("ann", 0, "end run", 0)]) == 10
    with in_small():
        growing = await Growing.with_messages(view, 1, head=10)
    assert growing.covers == 10
    there = await whole(view, 10)
    assert growing.messages == [message for message in there if run_of(message) == "r1.0"]
