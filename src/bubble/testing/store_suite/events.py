"""Appending and reading: seqs, times, bytes, batches, pages (spec 1, "The Sequencing Envelope", "Appending Events", "Reading History")."""

from __future__ import annotations

import asyncio

import pytest
from msgspec import Raw

from bubble.protocol.errors import Conflict, InvalidRequest, NotFound, Unavailable
from bubble.protocol.events import (
    BubbleEvent,
    EncodedEvent,
    MessagePart,
    RunFinished,
    RunStarted,
    SequencedEvent,
    encoded,
)
from bubble.protocol.timestamps import format_ms
from bubble.store.base import BubbleStore
from bubble.store.notices import Position
from bubble.testing.store_suite.base import (
    FIRST_MS,
    Event,
    ManualClock,
    StoreCase,
    a_finish,
    a_part,
    a_start,
    outcome_of,
    submitted,
)

__all__ = ["EventPromises", "PagePromises"]

HOSTILE_PARTS = [
    rb'{"type":"x","v":"\u0000"}',
    rb'{"type":"x","v":"\ud83d"}',
    b'{"type":"x","v":123456789012345678901234567890,"w":1e400,"z":-0}',
    b'{ "type" : "x",\n"b":1, "a":2, "a":3 }',
    '{"type":"x","v":"\u2028\U0001f600\ufeff\'\'--;%s$1?"}'.encode(),
    b'{"type":"x","v":' + b"[" * 500 + b"]" * 500 + b"}",
    b'{"type":"x","v":"%s"}' % (b"x" * (1024 * 1024)),
]


@pytest.mark.anyio
class EventPromises(StoreCase):
    """What `append`, `append_many`, `submit` and `read` promise."""

    @pytest.mark.requirement("EV-03", "EV-04", "EV-40")
    async def test_the_first_event_has_seq_1_and_each_further_one_the_next(self, store: BubbleStore) -> None:
        stored = [await store.append("t", event) for event in (a_start(), a_part(), a_finish())]
        assert [event.seq for event in stored] == [1, 2, 3]

    @pytest.mark.requirement("EV-02", "EV-40")
    async def test_an_append_answers_with_the_event_as_it_is_stored(self, store: BubbleStore) -> None:
        stored = await store.append("t", a_start())
        assert stored.to_dict() == {"seq": 1, "createdAt": format_ms(FIRST_MS), **a_start()}
        assert await self.texts(store, "t") == [stored.text]

    @pytest.mark.requirement("EV-05")
    async def test_every_thread_counts_for_itself(self, store: BubbleStore) -> None:
        for expected in (1, 2, 3):
            for thread_id in ("t", "u", "T", "t.1"):
                assert (await store.append(thread_id, a_start(f"run-{expected}"))).seq == expected

    async def test_many_appends_at_once_leave_no_gap_and_keep_the_order_of_their_submission(
        self, store: BubbleStore
    ) -> None:
        waiting = [submitted(store, f"t{index % 7}", a_start(f"run-{index}")) for index in range(700)]
        stored = [(await outcome_of(one)).events[0] for one in waiting]
        assert [event.seq for event in stored] == [index // 7 + 1 for index in range(700)]
        for index in range(7):
            runs = [event["runId"] for event in await self.log(store, f"t{index}")]
            assert runs == [f"run-{number}" for number in range(index, 700, 7)]

    @pytest.mark.requirement("EV-06", "EV-07", "PR-1-24")
    async def test_created_at_is_the_time_of_the_commit(self, store: BubbleStore, clock: ManualClock) -> None:
        event = encoded(a_start())
        clock.advance(5_000)
        assert (await store.append("t", event)).created_at == format_ms(FIRST_MS + 5_000)

    @pytest.mark.requirement("PR-1-25")
    async def test_created_at_never_runs_backwards_where_the_clock_does(
        self, store: BubbleStore, clock: ManualClock
    ) -> None:
        times = []
        for step in (0, -60_000, 59_000, 2_000):
            clock.advance(step)
            times.append((await store.append("t", a_start(f"run-{clock.now_ms}"))).created_at)
        assert times == [format_ms(FIRST_MS + late) for late in (0, 0, 0, 1_000)]

    @pytest.mark.requirement("EV-30", "PR-1-15", "PR-1-16")
    @pytest.mark.parametrize("part", HOSTILE_PARTS, ids=lambda part: ascii(part[:30]))
    async def test_a_payload_comes_back_byte_for_byte(self, store: BubbleStore, part: bytes) -> None:
        await store.append("t", a_start())
        event = MessagePart(principal_id="ann", run_id="run-1", part=Raw(part), version="ai-sdk-v6")
        stored = await store.append("t", event)
        assert stored.text.endswith(b'"part":' + part + b',"version":"ai-sdk-v6"}')
        assert (await self.texts(store, "t"))[1] == stored.text

    async def test_an_event_may_come_as_a_struct_a_mapping_or_encoded(self, store: BubbleStore) -> None:
        forms: list[BubbleEvent | Event | EncodedEvent] = [
            RunStarted(principal_id="ann", run_id="a"),
            a_start("b"),
            encoded(a_start("c")),
        ]
        assert [event.seq for event in await store.append_many("t", forms)] == [1, 2, 3]

    @pytest.mark.parametrize("thread_id", ["", "a b", "x" * 129, "-t"])
    async def test_a_thread_id_that_is_none_is_refused(self, store: BubbleStore, thread_id: str) -> None:
        with pytest.raises(InvalidRequest, match="threadId"):
            await store.append(thread_id, a_start())

    async def test_an_event_that_is_none_is_refused_and_creates_nothing(self, store: BubbleStore) -> None:
        with pytest.raises(InvalidRequest, match=r"\$\.runId"):
            await store.append("t", RunFinished(principal_id="ann", run_id=""))
        with pytest.raises(NotFound):
            await store.position("t")

    async def test_without_a_guard_an_unknown_thread_is_created(self, store: BubbleStore) -> None:
        await store.append("t", a_start())
        thread = await store.get_thread("t")
        assert (thread.head_seq, thread.join_policy, await store.get_roles("t")) == (
            1,
            "invite",
            ({}, await store.position("t")),
        )

    async def test_a_refused_append_creates_no_thread(self, store: BubbleStore) -> None:
        with pytest.raises(Conflict):
            await store.append("t", a_part())
        with pytest.raises(NotFound):
            await store.get_thread("t")

    async def test_a_command_that_may_not_create_is_told_that_there_is_no_thread(self, store: BubbleStore) -> None:
        with pytest.raises(NotFound):
            await outcome_of(submitted(store, "t", a_start(), create=False))

    @pytest.mark.requirement("PR-6-20")
    async def test_a_batch_gets_consecutive_seqs_in_its_order(self, store: BubbleStore) -> None:
        await store.append("t", a_start("run-0"))
        events = [a_start(), *(a_part(delta=str(index)) for index in range(500)), a_finish()]
        stored = await store.append_many("t", events)
        assert [event.seq for event in stored] == list(range(2, 504))
        assert await self.texts(store, "t") == [(await self.texts(store, "t"))[0], *(event.text for event in stored)]

    @pytest.mark.requirement("PR-6-20", "PR-1-23")
    async def test_a_batch_with_one_event_that_does_not_fit_is_refused_whole(self, store: BubbleStore) -> None:
        await store.append("t", a_start())
        with pytest.raises(Conflict):
            await store.append_many("t", [a_part(), a_finish(), a_part()])
        assert await self.types(store, "t") == ["run_started"]
        assert (await store.append("t", a_part())).seq == 2

    async def test_an_event_in_a_batch_is_named_by_its_place(self, store: BubbleStore) -> None:
        with pytest.raises(InvalidRequest, match=r"\$\[1\]\.runId"):
            await store.append_many("t", [a_start(), a_start("")])

    async def test_an_empty_batch_is_refused(self, store: BubbleStore) -> None:
        with pytest.raises(InvalidRequest, match="at least one"):
            await store.append_many("t", [])

    @pytest.mark.requirement("PR-1-23")
    async def test_in_one_group_a_refused_append_fails_alone_and_uses_no_seq(self, store: BubbleStore) -> None:
        before = submitted(store, "t", a_start())
        refused = submitted(store, "t", a_part("run-2"))
        after = submitted(store, "t", a_part())
        with pytest.raises(Conflict):
            await outcome_of(refused)
        assert [(await outcome_of(one)).events[0].seq for one in (before, after)] == [1, 2]

    @pytest.mark.requirement("PR-6-54", "PR-6-55", "PR-8-05")
    async def test_an_expected_head_is_met_or_the_real_one_is_told(self, store: BubbleStore) -> None:
        await store.append("t", a_start(), expected_head=0)
        for wrong in (0, 2):
            with pytest.raises(Conflict) as caught:
                await store.append("t", a_part(), expected_head=wrong)
            assert caught.value.details == {"headSeq": 1}
        assert (await store.append("t", a_part(), expected_head=1)).seq == 2

    @pytest.mark.requirement("PR-6-54")
    async def test_of_several_appends_that_expect_the_same_head_one_is_stored(self, store: BubbleStore) -> None:
        waiting = [submitted(store, "t", a_start(f"run-{number}"), expected_head=0) for number in range(20)]
        results = await asyncio.gather(*(outcome_of(one) for one in waiting), return_exceptions=True)
        assert [type(result).__name__ for result in results] == ["Appended"] + ["Conflict"] * 19
        assert (await store.position("t")).head == 1

    async def test_a_cancelled_wait_takes_nothing_back(self, store: BubbleStore) -> None:
        append = asyncio.ensure_future(store.append("t", a_start()))
        started = asyncio.Event()
        asyncio.get_running_loop().call_soon(started.set)  # after the first step of the task
        await started.wait()
        append.cancel()
        with pytest.raises(asyncio.CancelledError):
            await append
        assert (await store.append("t", a_part())).seq == 2

    async def test_a_command_without_a_callback_is_stored_as_well(self, store: BubbleStore) -> None:
        quiet = submitted(store, "t", a_start(), failures_only=True)
        refused = submitted(store, "t", a_start(), failures_only=True)
        with pytest.raises(Conflict):
            await outcome_of(refused)
        assert not quiet.done()
        assert (await store.position("t")).head == 1

    async def test_positions_tell_of_the_threads_that_there_are(self, store: BubbleStore) -> None:
        await store.append_many("t", [a_start(), a_part()])
        await store.append("u", a_start())
        positions = await store.positions(["u", "nowhere", "t"])
        assert {name: position.head for name, position in positions.items()} == {"t": 2, "u": 1}
        assert positions["t"] == await store.position("t")
        assert isinstance(positions["u"], Position)
        with pytest.raises(NotFound):
            await store.position("nowhere")

    async def test_a_healthy_store_has_no_problems_and_counts_what_it_did(self, store: BubbleStore) -> None:
        await store.append_many("t", [a_start(), a_part(), a_finish()])
        with pytest.raises(Conflict):
            await store.append("t", a_part())
        statistics = store.statistics()
        assert (statistics.appends, statistics.refused, statistics.queued) == (3, 1, 0)
        assert statistics.commits >= 1
        assert await store.check() == []
        await store.ping()

    async def test_closing_stores_what_was_submitted_and_then_refuses(self, clock: ManualClock) -> None:
        store = await self.create_store(clock=clock, run_integrity="strict")
        waiting = [submitted(store, "t", a_start(f"run-{number}")) for number in range(50)]
        await store.close()
        assert [(await outcome_of(one)).events[0].seq for one in waiting] == list(range(1, 51))
        await store.close()
        with pytest.raises(Unavailable):
            submitted(store, "t", a_start())
        with pytest.raises(Unavailable):
            await store.append("t", a_start())
        with pytest.raises(Unavailable):
            await store.ping()
        with pytest.raises(Unavailable):
            await store.position("t")
        with pytest.raises(Unavailable):
            await store.list_threads(principal_id=None)


@pytest.mark.anyio
class PagePromises(StoreCase):
    """What `read` and `get_event_page` promise."""

    @pytest.fixture
    async def numbered(self, store: BubbleStore) -> BubbleStore:
        """A thread `t` of 120 events."""
        await store.append_many("t", [a_start(), *(a_part(delta=str(index)) for index in range(119))])
        return store

    @pytest.mark.requirement("EV-54", "EV-55", "EV-56", "EV-57", "EV-58", "EV-59")
    @pytest.mark.parametrize(
        ("query", "first", "last", "next_seq"),
        [
            ({"from_seq": 1, "limit": 50}, 1, 50, 51),
            ({"limit": 100}, 1, 100, 101),
            ({}, 1, 100, 101),
            ({"from_seq": 101}, 101, 120, None),
            ({"from_seq": 71, "limit": 50}, 71, 120, None),
            ({"from_seq": 5, "to_seq": 7}, 5, 7, None),
            ({"from_seq": 5, "to_seq": 7, "limit": 2}, 5, 6, 7),
            ({"from_seq": 5, "to_seq": 6, "limit": 2}, 5, 6, None),
            ({"from_seq": 120, "to_seq": 2**53 - 1}, 120, 120, None),
            ({"limit": 5_000}, 1, 120, None),
        ],
    )
    async def test_a_page_is_one_slice_in_order_and_tells_where_the_next_begins(
        self, numbered: BubbleStore, query: dict[str, int], first: int, last: int, next_seq: int | None
    ) -> None:
        page = await numbered.get_event_page("t", **query)
        assert [bytes(event) for event in page.events] == (await self.texts(numbered, "t"))[first - 1 : last]
        assert page.next_seq == next_seq

    @pytest.mark.requirement("PR-8-11", "EV-58")
    @pytest.mark.parametrize("query", [{"from_seq": 7, "to_seq": 6}, {"from_seq": 121}, {"from_seq": 2**53 - 1}])
    async def test_a_slice_without_events_is_an_empty_page(self, numbered: BubbleStore, query: dict[str, int]) -> None:
        page = await numbered.get_event_page("t", **query)
        assert (page.events, page.next_seq) == ([], None)

    @pytest.mark.requirement("PR-2-11", "PR-2-14")
    @pytest.mark.parametrize(
        "query", [{"limit": 0}, {"limit": -1}, {"from_seq": 0}, {"from_seq": 2**53}, {"to_seq": 0}, {"to_seq": 2**53}]
    )
    async def test_a_query_out_of_bounds_is_refused(self, numbered: BubbleStore, query: dict[str, int]) -> None:
        with pytest.raises(InvalidRequest):
            await numbered.get_event_page("t", **query)

    @pytest.mark.requirement("PR-2-10")
    async def test_a_page_has_at_most_1000_events(self, store: BubbleStore) -> None:
        await store.append_many("t", [a_start(), *(a_part() for _ in range(1_100))])
        page = await store.get_event_page("t", limit=5_000)
        assert (len(page.events), page.next_seq) == (1_000, 1_001)

    @pytest.mark.requirement("PR-2-12")
    async def test_a_page_stops_at_4_mib_but_holds_one_event(self, store: BubbleStore) -> None:
        await store.append("t", a_start())
        for _ in range(5):
            await store.append("t", a_part(delta="x" * (1024 * 1024)))
        page = await store.get_event_page("t")
        assert sum(len(bytes(event)) for event in page.events) <= 4 * 1024 * 1024
        assert page.next_seq == len(page.events) + 1 == 5
        texts = await store.read("t", from_seq=2, to_seq=6, limit=10, max_bytes=1)
        assert len(texts) == 1

    @pytest.mark.requirement("EV-60", "EV-08")
    async def test_paging_on_gives_every_event_once(self, numbered: BubbleStore) -> None:
        seen: list[bytes] = []
        next_seq: int | None = 1
        while next_seq is not None:
            page = await numbered.get_event_page("t", from_seq=next_seq, limit=7)
            seen += [bytes(event) for event in page.events]
            next_seq = page.next_seq
        assert seen == await self.texts(numbered, "t")

    async def test_a_thread_that_does_not_exist_has_no_pages_and_nothing_to_read(self, store: BubbleStore) -> None:
        with pytest.raises(NotFound):
            await store.get_event_page("t")
        assert list(await self.texts(store, "t")) == []

    async def test_events_are_found_by_what_their_texts_contain(self, numbered: BubbleStore) -> None:
        texts = await self.texts(numbered, "t")

        async def found(containing: bytes, from_seq: int = 1, to_seq: int = 120, limit: int = 100) -> list[bytes]:
            return list(
                await numbered.find_events(
                    "t", containing=containing, from_seq=from_seq, to_seq=to_seq, limit=limit, max_bytes=2**20
                )
            )

        sevens = [text for text in texts if b'"delta":"7' in text]
        assert len(sevens) == 11
        assert await found(b'"delta":"7') == sevens
        assert await found(b'"delta":"7', from_seq=9, to_seq=74) == sevens[:4]
        assert await found(b'"delta":"7', limit=3) == sevens[:3]
        assert await found(b'"run_started"') == texts[:1]
        assert await found(b"nowhere") == []
        assert await found(b'"delta"', from_seq=7, to_seq=6) == []

    async def test_what_is_found_stops_at_the_bytes_asked_for_but_holds_one_event(self, store: BubbleStore) -> None:
        await store.append("t", a_start())
        for letter in "xyxyx":
            await store.append("t", a_part(delta=letter * 300_000))
        for max_bytes, seqs in ((1, [2]), (700_000, [2, 4]), (2**20, [2, 4, 6])):
            found = await store.find_events("t", containing=b"xxx", from_seq=1, to_seq=6, limit=9, max_bytes=max_bytes)
            assert [SequencedEvent.from_stored(text).seq for text in found] == seqs

    async def test_of_many_that_are_found_none_is_left_out(self, store: BubbleStore) -> None:
        await store.append_many("t", [a_start(), *(a_part(delta="xy"[number % 2]) for number in range(5_000))])
        found = await store.find_events(
            "t", containing=b'"delta":"y"', from_seq=1, to_seq=2**53 - 1, limit=10_000, max_bytes=2**30
        )
        assert [SequencedEvent.from_stored(text).seq for text in found] == list(range(3, 5_002, 2))

    async def test_in_a_thread_that_does_not_exist_nothing_is_found(self, store: BubbleStore) -> None:
        found = await store.find_events("t", containing=b"", from_seq=1, to_seq=9, limit=9, max_bytes=9)
        assert list(found) == []
