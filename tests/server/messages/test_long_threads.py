"""What a page of a long thread costs, counted in events that are read. It does not depend on how long the thread is."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from bubble.assembler import BubbleMessage
from bubble.protocol.events import EncodedEvent, encoded
from bubble.server.messages.growing import Growing
from bubble.server.messages.paging import read_page
from bubble.server.messages.portion import first_seq
from bubble.store.base import BubbleStore
from bubble.store.opening import open_store
from tests.server.messages.views import THREAD, a_view, whole

pytestmark = pytest.mark.anyio

BOTS = 8
DELTAS = 20


class Counted:
    """What was asked of a store: how many events it gave, and how many it looked through for others."""

    def __init__(self, store: BubbleStore, monkeypatch: pytest.MonkeyPatch) -> None:
        self.given = 0
        self.searched = 0
        self._read, self._find = store.read, store.find_events
        monkeypatch.setattr(store, "read", self.read)
        monkeypatch.setattr(store, "find_events", self.find_events)

    async def read(self, thread_id: str, **query: int) -> Sequence[bytes]:
        texts = await self._read(thread_id, **query)
        self.given += len(texts)
        return texts

    async def find_events(self, thread_id: str, *, from_seq: int, to_seq: int, **query: object) -> Sequence[bytes]:
        texts = await self._find(thread_id, from_seq=from_seq, to_seq=to_seq, **query)  # type: ignore[arg-type]
        self.given += len(texts)
        self.searched += to_seq - from_seq + 1
        return texts


def chunk(bot: int, run_id: str, **part: object) -> EncodedEvent:
    of_run = {"principalId": f"bot{bot}", "runId": run_id}
    return encoded({"type": "message_part", "version": "ai-sdk-v6", "part": part, **of_run})


def busy(rounds: int) -> list[EncodedEvent]:
    """Bots that are always at it: at no moment is no run open. Every run has as many events, and in each round one of them ends."""
    events: list[EncodedEvent] = []
    for number in range(rounds):
        for bot in range(BOTS):
            run_id = f"r{bot}.{(number + bot) // DELTAS}"
            of_run = {"principalId": f"bot{bot}", "runId": run_id}
            if (number + bot) % DELTAS == 0:
                events.append(encoded({"type": "run_started", **of_run}))
                events.append(chunk(bot, run_id, type="text-start", id="1"))
            elif number >= DELTAS - bot:
                events.append(chunk(bot, run_id, type="text-delta", id="1", delta="word "))
                if (number + bot) % DELTAS == DELTAS - 1:
                    events.append(encoded({"type": "run_finished", **of_run}))
    return events


Filled = Callable[[int], Awaitable[BubbleStore]]


@pytest.fixture(params=["memory", "sqlite"])
async def a_busy_thread(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Filled]:
    """Gives a store whose thread has gone on for so many rounds."""
    opened: list[BubbleStore] = []

    async def fill(rounds: int) -> BubbleStore:
        url = "memory:" if request.param == "memory" else f"sqlite:///{tmp_path}/{rounds}.db"
        store = await open_store(url)
        opened.append(store)
        events = busy(rounds)
        for first in range(0, len(events), 1_000):
            await store.append_many(THREAD, events[first : first + 1_000])
        return store

    yield fill
    for store in opened:
        await store.close()


async def test_the_last_page_costs_the_same_in_a_thread_of_any_length(
    a_busy_thread: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    heads, costs = [], []
    for rounds in (400, 2_000):
        store = await a_busy_thread(rounds)
        head = (await store.position(THREAD)).head
        view = a_view(store)
        expected = (await whole(view, head))[-50:]
        counted = Counted(store, monkeypatch)
        page = await read_page(view, before=head + 1, limit=50, head=head)
        assert list(page.messages) == expected
        assert counted.searched == 0
        heads.append(head)
        costs.append(counted.given)
    assert heads[1] > 15_000
    assert costs[1] == costs[0] < 2_000


async def test_an_older_page_reads_itself_and_only_looks_through_the_rest(
    a_busy_thread: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await a_busy_thread(2_000)
    head = (await store.position(THREAD)).head
    view = a_view(store)
    shown: list[BubbleMessage] = await whole(view, head)
    expected = [message for message in shown if first_seq(message) < 6_000][-50:]
    counted = Counted(store, monkeypatch)
    page = await read_page(view, before=6_000, limit=50, head=head)
    assert list(page.messages) == expected
    assert counted.given < 2_500
    assert head - 6_000 - 1_000 < counted.searched <= head - 6_000


async def test_who_begins_to_watch_reads_what_is_shown_and_not_the_thread(
    a_busy_thread: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await a_busy_thread(2_000)
    head = (await store.position(THREAD)).head
    counted = Counted(store, monkeypatch)
    growing = await Growing.with_messages(a_view(store), 50, head=head)
    assert len([message for message in growing.messages if first_seq(message) >= growing.first]) >= 50
    assert counted.given < 3_000
