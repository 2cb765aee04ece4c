"""Runs as records, lost runs, presence, consumer cursors (protocol, sections 1 and 6)."""

from __future__ import annotations

import pytest
from msgspec import UNSET

from bubble.protocol.errors import Conflict, Forbidden, InvalidRequest, NotFound
from bubble.protocol.resources import RunStateName
from bubble.protocol.timestamps import format_ms
from bubble.store.base import BubbleStore
from bubble.testing.store_suite.base import (
    FIRST_MS,
    ManualClock,
    StoreCase,
    a_call,
    a_finish,
    a_part,
    a_start,
    an_approval,
)

__all__ = ["CursorPromises", "LostRunPromises", "RunPromises"]

HOUR_MS = 3_600_000


@pytest.mark.anyio
class RunPromises(StoreCase):
    """What `list_runs` promises."""

    @pytest.mark.requirement("PR-6-33")
    async def test_a_run_tells_its_beginning_its_newest_event_and_its_end(
        self, store: BubbleStore, clock: ManualClock
    ) -> None:
        await store.append("t", a_start("other"))
        await store.append("t", a_start(kind="agent_work", snapshotSeq=1))
        clock.advance(1_000)
        await store.append("t", a_part())
        open_run = (await store.list_runs("t", state="open", principal_id="ann")).runs[1]
        assert (open_run.run_id, open_run.principal_id, open_run.state, open_run.kind, open_run.snapshot_seq) == (
            *("run-1", "ann", "open", "agent_work"),
            1,
        )
        assert (open_run.started_seq, open_run.started_at) == (2, format_ms(FIRST_MS))
        assert (open_run.last_seq, open_run.last_event_at) == (3, format_ms(FIRST_MS + 1_000))
        assert (open_run.finished_seq, open_run.finished_at, open_run.outcome) == (UNSET, UNSET, UNSET)
        clock.advance(1_000)
        await store.append("t", a_finish(outcome="failed"))
        clock.advance(1_000)
        await store.append("t", an_approval())
        run = (await store.list_runs("t", state="finished")).runs[0]
        assert (run.state, run.finished_seq, run.finished_at, run.outcome) == (
            *("finished", 4),
            *(format_ms(FIRST_MS + 2_000), "failed"),
        )
        assert (run.last_seq, run.last_event_at) == (5, format_ms(FIRST_MS + 3_000))

    async def test_a_bare_run_has_neither_kind_nor_snapshot_nor_outcome(self, store: BubbleStore) -> None:
        await store.append_many("t", [a_start(), a_finish()])
        run = (await store.list_runs("t")).runs[0]
        assert (run.kind, run.snapshot_seq, run.outcome) == (UNSET, UNSET, UNSET)

    @pytest.mark.requirement("PR-1-43", "PR-6-33")
    @pytest.mark.parametrize("limit", [1, 2, 100])
    async def test_runs_are_paged_by_their_first_seq_and_kept_by_state_and_principal(
        self, store: BubbleStore, limit: int
    ) -> None:
        for number in range(6):
            await store.append("t", a_start(f"run-{9 - number}", "ann" if number % 2 else "bob"))
        await store.append_many("t", [a_finish("run-9"), a_finish("run-4")])
        cases: list[tuple[RunStateName | None, str | None, list[str]]] = [
            (None, None, ["run-9", "run-8", "run-7", "run-6", "run-5", "run-4"]),
            ("open", None, ["run-8", "run-7", "run-6", "run-5"]),
            ("finished", None, ["run-9", "run-4"]),
            ("open", "ann", ["run-8", "run-6"]),
            (None, "bob", ["run-9", "run-7", "run-5"]),
            (None, "ghost", []),
        ]
        for state, principal_id, expected in cases:
            found: list[str] = []
            after: str | None = None
            while True:
                page = await store.list_runs("t", state=state, principal_id=principal_id, after=after, limit=limit)
                found += [run.run_id for run in page.runs]
                after = page.next_after
                if after is None:
                    break
            assert found == expected

    @pytest.mark.requirement("PR-1-44")
    async def test_what_a_crash_left_open_can_be_found_and_finished(self, store: BubbleStore) -> None:
        await self.make_thread(store, "t", bob="participant")
        bob = await self.guard(store, "bob")
        for run_id in ("run-1", "run-2"):
            await store.append("t", a_start(run_id, "bob"), guard=bob)
        for run in (await store.list_runs("t", state="open", principal_id="bob")).runs:
            await store.append("t", a_finish(run.run_id, "bob", outcome="failed"), guard=bob)
        assert (await store.list_runs("t", state="open")).runs == []

    async def test_runs_are_had_by_their_ids_with_their_newest_events(self, store: BubbleStore) -> None:
        await store.append_many("t", [a_start(), a_start("run-2"), a_part(), a_finish(), a_start("run-3")])
        await store.append("t", an_approval())
        await store.append("u", a_start("run-9"))
        found = await store.get_runs("t", ["run-2", "run-1", "run-9", 'no"run', "run-1"])
        assert {name: (run.run_id, run.started_seq, run.last_seq, run.state) for name, run in found.items()} == {
            "run-1": ("run-1", 1, 6, "finished"),
            "run-2": ("run-2", 2, 2, "open"),
        }
        listed = {run.run_id: run for run in (await store.list_runs("t")).runs}
        assert found == {name: listed[name] for name in ("run-1", "run-2")}
        assert await store.get_runs("t", []) == {}
        with pytest.raises(NotFound):
            await store.get_runs("nowhere", ["run-1"])

    async def test_a_list_that_cannot_be_is_refused(self, store: BubbleStore) -> None:
        await store.append("t", a_start())
        with pytest.raises(NotFound):
            await store.list_runs("nowhere")
        with pytest.raises(InvalidRequest):
            await store.list_runs("t", after="!")
        with pytest.raises(InvalidRequest):
            await store.list_runs("t", limit=0)


@pytest.mark.anyio
class LostRunPromises(StoreCase):
    """What `finish_lost_runs` and `renew_presence` promise."""

    async def sweep(self, store: BubbleStore, clock: ManualClock) -> int:
        """Finishes what had no event for an hour."""
        return await store.finish_lost_runs(idle_since_ms=clock.now_ms - HOUR_MS)

    @pytest.mark.requirement("PR-1-45")
    async def test_an_idle_run_of_somebody_absent_is_finished_by_the_server(
        self, store: BubbleStore, clock: ManualClock
    ) -> None:
        await store.append("t", a_start())
        clock.advance(HOUR_MS + 1)
        assert await self.sweep(store, clock) == 1
        event = (await self.log(store, "t"))[-1]
        assert event == {
            "seq": 2,
            "createdAt": format_ms(clock.now_ms),
            **a_finish(principal_id="system:bubble", outcome="lost"),
        }
        run = (await store.list_runs("t")).runs[0]
        assert (run.state, run.outcome, run.finished_seq) == ("finished", "lost", 2)
        with pytest.raises(Conflict):
            await store.append("t", a_part())

    @pytest.mark.requirement("PR-1-48")
    async def test_a_lost_run_is_finished_once(self, store: BubbleStore, clock: ManualClock) -> None:
        await store.append_many("t", [a_start(), a_start("run-2"), a_finish("run-2")])
        clock.advance(HOUR_MS + 1)
        assert [await self.sweep(store, clock) for _ in range(3)] == [1, 0, 0]
        assert (await store.position("t")).head == 4

    @pytest.mark.requirement("PR-1-45")
    @pytest.mark.parametrize("event", [a_part(), an_approval(), a_call("run_interrupt_requested")])
    async def test_a_run_that_had_an_event_lately_is_not_lost(
        self, store: BubbleStore, clock: ManualClock, event: dict[str, object]
    ) -> None:
        await store.append("t", a_start())
        clock.advance(HOUR_MS)
        await store.append("t", event)
        clock.advance(HOUR_MS - 1)
        assert await self.sweep(store, clock) == 0
        clock.advance(2)
        assert await self.sweep(store, clock) == 1

    @pytest.mark.requirement("PR-1-47", "PR-1-49")
    async def test_presence_on_any_node_keeps_a_run_until_it_runs_out(
        self, store: BubbleStore, clock: ManualClock
    ) -> None:
        await store.append_many("t", [a_start("a", "ann"), a_start("b", "bob"), a_start("c", "carl")])
        clock.advance(HOUR_MS + 1)
        await store.renew_presence("node-1", ["ann"], valid_ms=90_000)
        await store.renew_presence("node-2", ["bob", "zoe"], valid_ms=90_000)
        assert await self.sweep(store, clock) == 1
        assert (await self.log(store, "t"))[-1]["runId"] == "c"
        clock.advance(89_000)
        await store.renew_presence("node-1", ["ann"], valid_ms=90_000)
        assert await self.sweep(store, clock) == 0
        clock.advance(2_000)
        assert await self.sweep(store, clock) == 1
        assert (await self.log(store, "t"))[-1]["runId"] == "b"

    @pytest.mark.requirement("PR-1-47", "PR-1-49")
    async def test_a_node_replaces_what_it_said_before(self, store: BubbleStore, clock: ManualClock) -> None:
        await store.append("t", a_start())
        clock.advance(HOUR_MS + 1)
        await store.renew_presence("node-1", ["ann"], valid_ms=90_000)
        await store.renew_presence("node-2", [], valid_ms=90_000)
        assert await self.sweep(store, clock) == 0
        await store.renew_presence("node-1", ["bob"], valid_ms=90_000)
        assert await self.sweep(store, clock) == 1

    async def test_a_purge_keeps_presence_that_counts(self, store: BubbleStore, clock: ManualClock) -> None:
        await store.append("t", a_start())
        clock.advance(HOUR_MS + 1)
        await store.renew_presence("node-1", ["ann"], valid_ms=90_000)
        await store.renew_presence("node-2", ["bob"], valid_ms=10)
        clock.advance(1_000)
        await store.purge(idempotency_ms=HOUR_MS)
        assert await self.sweep(store, clock) == 0

    async def test_lost_runs_of_many_threads_are_found(self, store: BubbleStore, clock: ManualClock) -> None:
        for number in range(20):
            await store.append_many(f"t{number}", [a_start(f"run-{index}") for index in range(3)])
        clock.advance(HOUR_MS + 1)
        assert await self.sweep(store, clock) == 60
        assert await store.check() == []


@pytest.mark.anyio
class CursorPromises(StoreCase):
    """What the consumer cursors promise."""

    @pytest.mark.requirement("PR-6-35", "PR-6-36")
    async def test_a_cursor_only_moves_forward(self, store: BubbleStore) -> None:
        await store.append_many("t", [a_start(), a_part(), a_part()])
        assert await store.get_cursor("t", "ann") == 0
        for seq, reached in ((2, 2), (1, 2), (0, 2), (3, 3), (3, 3)):
            assert await store.advance_cursor("t", "ann", seq) == reached
            assert await store.get_cursor("t", "ann") == reached

    @pytest.mark.requirement("PR-6-35")
    async def test_each_principal_has_its_own_on_each_thread(self, store: BubbleStore) -> None:
        for thread_id in ("t", "u"):
            await store.append_many(thread_id, [a_start(), a_part()])
        await store.advance_cursor("t", "ann", 2)
        assert [await store.get_cursor(*one) for one in (("t", "bob"), ("u", "ann"), ("t", "ann"))] == [0, 0, 2]

    @pytest.mark.requirement("PR-6-37")
    @pytest.mark.parametrize("seq", [2, 2**53 - 1, 2**53, -1])
    async def test_a_cursor_stays_within_the_log(self, store: BubbleStore, seq: int) -> None:
        await store.append("t", a_start())
        with pytest.raises(InvalidRequest):
            await store.advance_cursor("t", "ann", seq)
        assert await store.get_cursor("t", "ann") == 0

    @pytest.mark.requirement("PR-5-03", "PR-5-09")
    async def test_moving_a_cursor_needs_cursor_write(self, store: BubbleStore) -> None:
        await self.make_thread(store, "t", carl="observer")
        await self.enrol(store, "eve")
        assert await store.advance_cursor("t", "carl", 1, guard=await self.guard(store, "carl")) == 1
        with pytest.raises(NotFound):
            await store.advance_cursor("t", "eve", 1, guard=await self.guard(store, "eve"))
        narrow = await self.guard(store, "carl", capabilities=["thread.read"])
        with pytest.raises(Forbidden):
            await store.advance_cursor("t", "carl", 1, guard=narrow)

    async def test_an_unknown_thread_has_no_cursors(self, store: BubbleStore) -> None:
        with pytest.raises(NotFound):
            await store.get_cursor("nowhere", "ann")
        with pytest.raises(NotFound):
            await store.advance_cursor("nowhere", "ann", 0)
