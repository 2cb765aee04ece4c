"""The server's cursor as a receipt: few of them, the last one counts, and none is missed for another's failure."""

from __future__ import annotations

import asyncio

import pytest

from bubble.amphibian.receipts import Receipts
from bubble.client.supervision import beside
from bubble.protocol.errors import NotFound

pytestmark = pytest.mark.anyio


class Cursors:
    """Where cursors were put; the first advance of a thread `slow` waits."""

    def __init__(self) -> None:
        self.advances: list[tuple[str, int]] = []
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()

    async def advance(self, thread_id: str, seq: int) -> None:
        if thread_id == "gone":
            raise NotFound("No such thread.")
        self.advances.append((thread_id, seq))
        if thread_id == "slow":
            self.begun.set()
            await self.go_on.wait()


@pytest.mark.requirement("AM-10")
async def test_of_what_comes_while_one_is_on_its_way_the_last_counts() -> None:
    cursors = Cursors()
    receipts = Receipts(cursors.advance, pause=0)
    async with beside(receipts.run()):
        receipts.note("slow", 1)
        await cursors.begun.wait()
        cursors.begun.clear()
        for seq in range(2, 100):
            receipts.note("slow", seq)
        cursors.go_on.set()
        await cursors.begun.wait()
    assert cursors.advances == [("slow", 1), ("slow", 99)]


async def test_a_cursor_that_cannot_be_advanced_holds_up_no_other() -> None:
    cursors = Cursors()
    receipts = Receipts(cursors.advance)
    for thread_id in ("a", "gone", "b"):
        receipts.note(thread_id, 7)
    await receipts.flush()
    assert sorted(cursors.advances) == [("a", 7), ("b", 7)]
