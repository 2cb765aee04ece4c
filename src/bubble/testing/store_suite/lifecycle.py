"""Who may append what, and what the state of the runs allows (spec 1, "Run Lifecycle"; protocol, section 1)."""

from __future__ import annotations

import asyncio

import pytest

from bubble.protocol.errors import BubbleError, Conflict, Forbidden, NotFound
from bubble.store.base import BubbleStore
from bubble.testing.store_suite.base import (
    Event,
    StoreCase,
    a_call,
    a_finish,
    a_part,
    a_start,
    an_approval,
    outcome_of,
    submitted,
    typed,
)

__all__ = ["AuthorshipPromises", "LifecyclePromises"]

SIGNALS = [an_approval(), a_call("tool_call_result"), a_call("run_interrupt_requested")]


@pytest.mark.anyio
class LifecyclePromises(StoreCase):
    """The life of a run, without a guard: the rules hold for embedded use too."""

    @pytest.mark.requirement("EV-11", "EV-12", "EV-18", "EV-19", "EV-22")
    async def test_a_users_run_and_an_agents_run_can_be_written_as_the_page_prints_them(
        self, store: BubbleStore
    ) -> None:
        alice, bot = ("run-user-001", "user-alice"), ("run-001", "bot-research")
        for event in (
            a_start(*alice, kind="user_input"),
            a_part(*alice),
            a_finish(*alice),
            a_start(*bot, kind="agent_work", snapshotSeq=17),
            *(a_part(*bot, delta=str(number)) for number in range(5)),
            a_finish(*bot),
        ):
            await store.append("thread-42", event)
        parts = [event for event in await self.log(store, "thread-42") if event["runId"] == "run-001"][1:-1]
        assert [event["part"] for event in parts] == [a_part(*bot, delta=str(number))["part"] for number in range(5)]

    @pytest.mark.requirement("EV-13", "EV-15")
    @pytest.mark.parametrize("kind", ["user_input", "agent_work", "system_work", None])
    async def test_a_run_is_treated_the_same_whatever_its_kind(self, store: BubbleStore, kind: str | None) -> None:
        start = a_start() if kind is None else a_start(kind=kind)
        stored = await store.append_many("t", [start, a_part(), a_finish()])
        assert [event.seq for event in stored] == [1, 2, 3]

    @pytest.mark.requirement("PR-1-32", "PR-8-06", "EV-11")
    async def test_a_run_starts_once_in_its_thread(self, store: BubbleStore) -> None:
        await store.append("t", a_start())
        with pytest.raises(Conflict) as caught:
            await store.append("t", a_start(principal_id="bob"))
        assert caught.value.details == {"runId": "run-1", "state": "open"}
        await store.append("t", a_finish())
        with pytest.raises(Conflict) as caught:
            await store.append("t", a_start())
        assert caught.value.details == {"runId": "run-1", "state": "finished"}
        assert (await store.append("u", a_start())).seq == 1

    @pytest.mark.requirement("PR-1-33", "PR-1-35", "PR-1-39", "PR-8-06")
    @pytest.mark.parametrize("event", [a_part(), a_finish(), *SIGNALS], ids=typed)
    async def test_nothing_is_taken_for_a_run_that_never_started(self, store: BubbleStore, event: Event) -> None:
        await store.append("t", a_start("another"))
        with pytest.raises(Conflict) as caught:
            await store.append("t", event)
        assert caught.value.details == {"runId": "run-1", "state": "unknown"}

    @pytest.mark.requirement("PR-1-34", "PR-1-35", "EV-18", "PR-8-06")
    @pytest.mark.parametrize("outcome", [None, "success", "failed", "interrupted", "lost"])
    @pytest.mark.parametrize("event", [a_part(), a_finish()], ids=typed)
    async def test_a_run_that_finished_takes_no_part_and_no_second_end(
        self, store: BubbleStore, event: Event, outcome: str | None
    ) -> None:
        await store.append_many("t", [a_start(), a_finish() if outcome is None else a_finish(outcome=outcome)])
        with pytest.raises(Conflict) as caught:
            await store.append("t", event)
        assert caught.value.details == {"runId": "run-1", "state": "finished"}

    @pytest.mark.requirement("PR-1-38", "PR-1-40", "EV-31", "EV-34", "EV-28")
    @pytest.mark.parametrize("event", SIGNALS, ids=typed)
    async def test_a_decision_a_result_and_an_interrupt_come_from_others_before_and_after_the_end(
        self, store: BubbleStore, event: Event
    ) -> None:
        await store.append("t", a_start())
        assert (await store.append("t", event)).seq == 2
        await store.append("t", a_finish())
        later = {**event, "toolCallId": "call-2"} if "toolCallId" in event else event
        assert (await store.append("t", later)).seq == 4

    @pytest.mark.requirement("EV-32", "EV-33", "EV-35")
    async def test_a_run_that_was_asked_to_stop_goes_on_until_it_finishes(self, store: BubbleStore) -> None:
        await store.append_many("t", [a_start(), a_call("run_interrupt_requested"), a_part(), a_finish()])
        with pytest.raises(Conflict):
            await store.append("t", a_part())

    @pytest.mark.requirement("PR-1-41", "PR-8-04", "PR-8-07")
    @pytest.mark.parametrize("approved", [True, False])
    async def test_the_first_decision_on_a_tool_call_stands(self, store: BubbleStore, approved: bool) -> None:  # noqa: FBT001
        await store.append("t", a_start())
        await store.append("t", an_approval(approved=approved))
        for second in (True, False):
            with pytest.raises(Conflict) as caught:
                await store.append("t", an_approval(principal_id="carl", approved=second))
            assert caught.value.details == {"approved": approved, "principalId": "bob", "seq": 2}

    @pytest.mark.requirement("PR-1-41")
    async def test_a_decision_binds_one_call_of_one_run_of_one_thread(self, store: BubbleStore) -> None:
        for thread_id in ("t", "u"):
            await store.append_many(thread_id, [a_start(), a_start("run-2")])
            for run_id in ("run-1", "run-2"):
                for call_id in ("call-1", "call-2"):
                    await store.append(thread_id, an_approval(run_id, call_id=call_id))
            assert (await store.position(thread_id)).head == 6

    async def test_the_rules_see_what_came_earlier_in_the_same_batch(self, store: BubbleStore) -> None:
        await store.append_many("t", [a_start(), a_part(), an_approval(), a_finish()])
        for batch in (
            [a_start("run-2"), a_start("run-2")],
            [a_start("run-2"), a_finish("run-2"), a_part("run-2")],
            [a_start("run-2"), an_approval("run-2"), an_approval("run-2")],
            [a_start("run-2"), a_finish("run-2"), a_finish("run-2")],
        ):
            with pytest.raises(Conflict):
                await store.append_many("t", batch)
        assert (await store.position("t")).head == 4
        assert (await store.list_runs("t", state="open")).runs == []

    @pytest.mark.requirement("PR-1-31")
    async def test_of_racing_starts_finishes_and_decisions_one_of_each_is_stored(self, store: BubbleStore) -> None:
        for event in (a_start(), an_approval(), a_finish()):
            waiting = [submitted(store, "t", event) for _ in range(20)]
            results = await asyncio.gather(*(outcome_of(one) for one in waiting), return_exceptions=True)
            assert [type(result).__name__ for result in results] == ["Appended"] + ["Conflict"] * 19
        assert await self.types(store, "t") == ["run_started", "tool_call_approval", "run_finished"]

    @pytest.mark.requirement("PR-1-30")
    async def test_with_run_integrity_off_anything_may_come_in_any_order(self, lax_store: BubbleStore) -> None:
        events = [
            *(a_finish(), a_part(), a_start(), a_start(principal_id="bob"), *SIGNALS, *SIGNALS),
            *(a_finish(principal_id="bob"), a_part(), a_finish("run-2"), a_start("run-2")),
        ]
        for event in events:
            await lax_store.append("t", event)
        await lax_store.append_many("u", events)
        assert (await lax_store.position("t")).head == (await lax_store.position("u")).head == len(events)
        assert await lax_store.check() == []
        for thread_id in ("t", "u"):
            runs = (await lax_store.list_runs(thread_id)).runs
            assert [(run.run_id, run.principal_id, run.state) for run in runs] == [
                ("run-1", "ann", "finished"),
                ("run-2", "ann", "open"),
            ]


@pytest.mark.anyio
class AuthorshipPromises(StoreCase):
    """What a guard allows, by the grants committed at that moment."""

    @pytest.mark.requirement("PR-5-04", "PR-1-38", "EV-31", "EV-32")
    async def test_a_participant_appends_every_kind_of_event(self, store: BubbleStore) -> None:
        await self.make_thread(store, "t", bob="participant")
        ann, bob = await self.guard(store, "ann"), await self.guard(store, "bob")
        await store.append_many("t", [a_start(), a_part()], guard=ann)
        for event in SIGNALS:
            await store.append("t", event, guard=bob)
        await store.append("t", a_finish(), guard=ann)

    @pytest.mark.requirement("PR-5-03", "PR-3-06", "PR-5-11")
    @pytest.mark.parametrize("event", [a_start(principal_id="bob"), a_part(principal_id="bob"), *SIGNALS], ids=typed)
    async def test_an_observer_appends_nothing(self, store: BubbleStore, event: Event) -> None:
        await self.make_thread(store, "t", bob="observer")
        await store.append("t", a_start("run-1"))
        with pytest.raises(Forbidden) as caught:
            await store.append("t", event, guard=await self.guard(store, "bob"))
        assert caught.value.message == f'Principal "bob" lacks "events.{event["type"]}" on thread "t".'

    @pytest.mark.requirement("PR-5-09", "PR-3-07")
    async def test_a_stranger_cannot_tell_a_thread_from_none(self, store: BubbleStore) -> None:
        await self.make_thread(store, "t")
        await self.enrol(store, "eve")
        eve = await self.guard(store, "eve")
        messages = []
        for thread_id in ("t", "nowhere"):
            with pytest.raises(NotFound) as caught:
                await store.append(thread_id, a_start(principal_id="eve"), guard=eve)
            messages.append(caught.value.message.replace(f'"{thread_id}"', "..."))
        assert messages[0] == messages[1]
        assert await store.positions(["nowhere"]) == {}

    @pytest.mark.requirement("PR-1-26")
    async def test_nobody_writes_as_another(self, store: BubbleStore) -> None:
        await self.make_thread(store, "t", bob="participant")
        with pytest.raises(Forbidden):
            await store.append("t", a_start(principal_id="ann"), guard=await self.guard(store, "bob"))

    @pytest.mark.requirement("PR-1-27", "PR-1-28")
    async def test_an_admin_writes_as_another_but_decides_for_nobody(self, store: BubbleStore) -> None:
        await self.make_thread(store, "t")
        await self.make_admin(store, "root")
        root = await self.guard(store, "root")
        await store.append("t", a_start(principal_id="ann"), guard=root)
        with pytest.raises(Forbidden):
            await store.append("t", an_approval(principal_id="bob"), guard=root)
        await store.append("t", an_approval(principal_id="root"), guard=root)

    @pytest.mark.requirement("PR-1-36", "PR-1-37")
    async def test_anothers_run_is_finished_by_an_owner_and_by_nobody_less(self, store: BubbleStore) -> None:
        await self.make_thread(store, "t", bob="participant", carl="participant")
        for run_id in ("run-1", "run-2"):
            await store.append("t", a_start(run_id, "bob"), guard=await self.guard(store, "bob"))
        with pytest.raises(Forbidden):
            await store.append("t", a_finish("run-1", "carl"), guard=await self.guard(store, "carl"))
        await store.append("t", a_finish("run-1", "ann"), guard=await self.guard(store, "ann"))
        await store.append("t", a_finish("run-2", "bob"), guard=await self.guard(store, "bob"))

    @pytest.mark.requirement("PR-5-19")
    async def test_a_bot_decides_on_no_tool_call(self, store: BubbleStore) -> None:
        await self.enrol(store, "bot", kind="bot")
        await self.make_thread(store, "t", bot="participant")
        await store.append("t", a_start())
        with pytest.raises(Forbidden):
            await store.append("t", an_approval(principal_id="bot"), guard=await self.guard(store, "bot"))

    @pytest.mark.requirement("PR-5-20")
    async def test_nobody_decides_on_a_tool_call_of_their_own_run(self, store: BubbleStore) -> None:
        await self.make_thread(store, "t")
        ann = await self.guard(store, "ann")
        await store.append("t", a_start(), guard=ann)
        with pytest.raises(Forbidden):
            await store.append("t", an_approval(principal_id="ann"), guard=ann)
        with pytest.raises(Forbidden):
            await store.append_many("t", [a_start("run-2"), an_approval("run-2", "ann")], guard=ann)

    async def test_a_refused_decision_is_no_decision(self, store: BubbleStore) -> None:
        await self.make_thread(store, "t", bob="participant", eve="observer")
        await store.append("t", a_start())
        with pytest.raises(BubbleError):
            await store.append("t", an_approval(principal_id="eve"), guard=await self.guard(store, "eve"))
        await store.append("t", an_approval(principal_id="bob"), guard=await self.guard(store, "bob"))

    @pytest.mark.requirement("PR-4-11", "PR-4-12")
    async def test_a_narrowed_bearer_appends_what_and_where_it_is_narrowed_to(self, store: BubbleStore) -> None:
        for thread_id in ("t", "u"):
            await self.make_thread(store, thread_id)
        narrow = await self.guard(store, "ann", capabilities=["events.run_started"], threads=["t"])
        await store.append("t", a_start(), guard=narrow)
        with pytest.raises(Forbidden):
            await store.append("t", a_part(), guard=narrow)
        with pytest.raises(NotFound):
            await store.append("u", a_start(), guard=narrow)

    @pytest.mark.requirement("PR-3-16")
    async def test_visibility_comes_before_capability_and_that_before_head_and_lifecycle(
        self, store: BubbleStore
    ) -> None:
        await self.make_thread(store, "t", bob="observer")
        await self.enrol(store, "eve")
        doubly_wrong = a_part("never-started", "bob")
        with pytest.raises(NotFound):
            await store.append("t", doubly_wrong, guard=await self.guard(store, "eve"), expected_head=99)
        with pytest.raises(Forbidden):
            await store.append("t", doubly_wrong, guard=await self.guard(store, "bob"), expected_head=99)
        with pytest.raises(Conflict) as caught:
            await store.append("t", a_part("never-started"), guard=await self.guard(store, "ann"), expected_head=99)
        assert caught.value.details == {"headSeq": 1}

    @pytest.mark.requirement("PR-5-26")
    async def test_what_was_submitted_after_a_revocation_is_refused(self, store: BubbleStore) -> None:
        await self.make_thread(store, "t", bob="participant")
        bob = await self.guard(store, "bob")
        before = submitted(store, "t", a_start("run-1", "bob"), guard=bob, create=False)
        removal = asyncio.ensure_future(store.remove_grant("t", "bob", by="ann"))
        begun = asyncio.Event()
        asyncio.get_running_loop().call_soon(begun.set)
        await begun.wait()
        after = submitted(store, "t", a_start("run-2", "bob"), guard=bob, create=False)
        await removal
        await outcome_of(before)
        with pytest.raises(NotFound):
            await outcome_of(after)
        assert await self.types(store, "t") == [
            *("participant_joined", "participant_joined", "run_started", "run_finished", "participant_left")
        ]
