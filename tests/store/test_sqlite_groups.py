"""Group commit: commands that meet are stored together, each on its own merits and in its order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from bubble.protocol.errors import Conflict, InternalError, NotFound
from bubble.protocol.events import SequencedEvent
from bubble.protocol.resources import PrincipalKind
from bubble.store.commands import Appended, AppendResult, IdempotencyKey
from bubble.store.notices import Committed
from bubble.store.sqlite import SqliteStore, thread_state
from bubble.testing.store_suite.base import (
    Notices,
    a_call,
    a_finish,
    a_part,
    a_start,
    an_approval,
    outcome_of,
    submitted,
)

pytestmark = pytest.mark.anyio


class BrokenGuard:
    """A guard that somebody wrote badly."""

    principal_id = "ann"
    kind: PrincipalKind = "user"

    def require(self, capability: str, **asked: object) -> None:
        raise ZeroDivisionError(capability, asked)

    def has(self, capability: str, **asked: object) -> bool:
        raise ZeroDivisionError(capability, asked)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with await SqliteStore.open(tmp_path / "bubble.db") as store:
        yield store


async def whole(store: SqliteStore, thread_id: str) -> list[SequencedEvent]:
    texts = await store.read(thread_id, from_seq=1, to_seq=2**53 - 1, limit=10**6, max_bytes=2**40)
    return [SequencedEvent.from_stored(text) for text in texts]


def seqs(results: Sequence[AppendResult]) -> list[int]:
    return [event.seq for result in results if isinstance(result, Appended) for event in result.events]


@pytest.mark.parametrize("size", [1, 63, 64, 65, 129, 700, 1_100, 2_600])
async def test_commands_that_wait_together_are_stored_together_whatever_their_number(
    store: SqliteStore, size: int
) -> None:
    await store.append("t", a_start())
    before = store.statistics().commits
    waiting = [submitted(store, "t", a_part(delta=number)) for number in range(size)]
    results = [await outcome_of(one) for one in waiting]
    assert seqs(results) == list(range(2, size + 2))
    stored = [event.to_dict()["part"]["delta"] for event in (await whole(store, "t"))[1:]]  # type: ignore[index, call-overload]
    assert stored == list(range(size))
    assert store.statistics().commits - before < max(2, size)
    assert store.statistics().largest_batch <= size
    assert await store.check() == []


async def test_in_a_group_each_command_fails_alone(store: SqliteStore) -> None:
    await store.append("t", a_start())
    waiting = [
        submitted(store, "t", a_part()),
        submitted(store, "t", a_part("never started")),
        submitted(store, "t", a_start()),
        submitted(store, "unknown", a_start(), create=False),
        submitted(store, "t", a_part(), a_part("never started")),
        submitted(store, "t", a_part(), guard=BrokenGuard()),
        submitted(store, "t", a_part(), expected_head=17),
        submitted(store, "u", a_part("never started")),
        submitted(store, "t", a_part()),
    ]
    results = await asyncio.gather(*waiting)
    kinds = [Appended, Conflict, Conflict, NotFound, Conflict, InternalError, Conflict, Conflict, Appended]
    assert [type(result) for result in results] == kinds
    assert seqs(results) == [2, 3]
    with pytest.raises(NotFound):
        await store.position("u")


async def test_what_one_command_of_a_group_does_counts_for_the_next(store: SqliteStore) -> None:
    key = IdempotencyKey("ann", "k", b"digest")
    waiting = [
        submitted(store, "t", a_start()),
        submitted(store, "t", a_part(), idempotency=key),
        submitted(store, "t", a_part(), idempotency=key),
        submitted(store, "t", an_approval(call_id="c")),
        submitted(store, "t", an_approval(call_id="c", approved=False)),
        submitted(store, "t", a_finish()),
        submitted(store, "t", a_part()),
        submitted(store, "t", a_call("tool_call_result")),
    ]
    results = await asyncio.gather(*waiting)
    assert seqs(results) == [1, 2, 2, 3, 4, 5]
    assert [type(result) for result in results if not isinstance(result, Appended)] == [Conflict, Conflict]
    assert isinstance(results[2], Appended)
    assert results[2].replayed
    assert await store.check() == []


async def test_changes_and_appends_on_a_thread_happen_in_the_order_of_their_calls(store: SqliteStore) -> None:
    heard = Notices()
    store.listen(heard)
    first = submitted(store, "t", a_start())
    second = asyncio.ensure_future(store.advance_cursor("t", "ann", 1))
    await asyncio.sleep(0)  # the change is submitted in the coroutine's first step
    third = submitted(store, "t", a_part())
    assert seqs(await asyncio.gather(first, third)) == [1, 2]
    assert await second == 1
    assert [(one.thread_id, one.head, len(one.events)) for one in heard.of(Committed)] == [("t", 1, 1), ("t", 2, 1)]


async def test_a_change_that_fails_in_a_group_takes_nothing_with_it(store: SqliteStore) -> None:
    first = submitted(store, "t", a_start())
    beyond = asyncio.ensure_future(store.advance_cursor("t", "ann", 99))
    unknown = asyncio.ensure_future(store.put_grant("t", "nobody", "owner", by="ann", appends=True))
    await asyncio.sleep(0)
    last = submitted(store, "t", a_part())
    outcomes = await asyncio.gather(beyond, unknown, return_exceptions=True)
    assert [getattr(outcome, "code", None) for outcome in outcomes] == ["invalid_request", "not_found"]
    assert seqs(await asyncio.gather(first, last)) == [1, 2]
    assert (await store.position("t")).grant_version == 1


async def test_a_writer_that_knows_few_threads_and_runs_at_a_time_makes_no_mistake(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_state, "_MOST_THREADS", 4)
    monkeypatch.setattr(thread_state, "_MOST_REMEMBERED", 2)
    threads = [f"t-{number}" for number in range(13)]
    for run in (f"run-{number}" for number in range(7)):
        await asyncio.gather(*(store.append(thread, a_start(run)) for thread in threads))
        await asyncio.gather(*(store.append(thread, a_part(run)) for thread in threads))
    for thread in threads:
        await store.append(thread, a_finish("run-0"))
        with pytest.raises(Conflict):
            await store.append(thread, a_part("run-0"))
        await store.append(thread, a_part("run-1"))
        assert [event.seq for event in await whole(store, thread)] == list(range(1, 17))
    assert await store.check() == []


async def test_events_near_the_limit_are_read_by_size_and_one_at_a_time_where_need_be(store: SqliteStore) -> None:
    await store.append("t", a_start())
    for number in range(6):
        await store.append("t", a_part(delta="x" * 700_000 + str(number)))
    expected = [event.text for event in await whole(store, "t")]
    assert len(expected) == 7
    for max_bytes in (1, 700_000, 1_500_000, 2**31):
        found: list[bytes] = []
        while len(found) < len(expected):
            page = await store.read("t", from_seq=len(found) + 1, to_seq=99, limit=1_000, max_bytes=max_bytes)
            assert len(page) == 1 or sum(map(len, page)) <= max_bytes
            found += page
        assert found == expected
