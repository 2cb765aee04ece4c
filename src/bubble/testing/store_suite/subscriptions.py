"""Following a thread through the store itself, and what listeners are told (spec 1, "Subscribing to a Thread")."""

from __future__ import annotations

import asyncio

import pytest

from bubble.protocol.errors import InvalidRequest, NotFound, Unavailable
from bubble.protocol.events import SequencedEvent, encoded
from bubble.store.base import BubbleStore
from bubble.store.commands import AppendCommand, AppendResult
from bubble.store.notices import Committed
from bubble.testing.store_suite.base import (
    Notices,
    StoreCase,
    a_finish,
    a_part,
    a_start,
    outcome_of,
    patience,
    submitted,
    until,
)

__all__ = ["NoticePromises", "SubscriptionPromises"]


class Seen:
    """A callback that remembers, and tells when it has seen a seq."""

    def __init__(self) -> None:
        self.events: list[SequencedEvent] = []
        self._waiting: list[tuple[int, asyncio.Event]] = []

    def __call__(self, event: SequencedEvent) -> None:
        self.events.append(event)
        for seq, bell in self._waiting:
            if event.seq >= seq:
                bell.set()

    @property
    def seqs(self) -> list[int]:
        """The seqs so far."""
        return [event.seq for event in self.events]

    async def until(self, seq: int) -> None:
        """Returns once an event with that seq or a later one was seen."""
        bell = asyncio.Event()
        self._waiting.append((seq, bell))
        if self.events and self.events[-1].seq >= seq:
            bell.set()
        await until(bell)


@pytest.mark.anyio
class SubscriptionPromises(StoreCase):
    """What `subscribe` promises."""

    @pytest.fixture
    async def ten(self, store: BubbleStore) -> BubbleStore:
        """A thread `t` of ten events, its run still open."""
        await store.append_many("t", [a_start(), *(a_part(delta=str(number)) for number in range(9))])
        return store

    @pytest.mark.requirement("EV-01", "EV-41", "EV-44", "EV-45", "EV-48", "EV-49")
    async def test_the_backlog_comes_first_and_then_what_is_live_through_one_callback(self, ten: BubbleStore) -> None:
        seen = Seen()
        subscription = await ten.subscribe("t", seen)
        assert subscription.through_seq == 10
        assert seen.events == []
        stored = [await ten.append("t", a_part(delta=str(number))) for number in range(5)]
        await seen.until(15)
        assert seen.seqs == list(range(1, 16))
        assert seen.events[10:] == stored
        assert [event.text for event in seen.events] == await self.texts(ten, "t")
        await subscription.unsubscribe()

    @pytest.mark.requirement("EV-45", "EV-46", "EV-08")
    @pytest.mark.parametrize("from_seq", range(1, 12))
    async def test_resuming_at_any_seq_leaves_no_gap_and_doubles_nothing(self, ten: BubbleStore, from_seq: int) -> None:
        seen = Seen()
        subscription = await ten.subscribe("t", seen, from_seq=from_seq)
        await ten.append("t", a_finish())
        await seen.until(11)
        assert seen.seqs == list(range(from_seq, 12))
        await subscription.unsubscribe()

    @pytest.mark.requirement("EV-47", "PR-7-08")
    @pytest.mark.parametrize("from_seq", [12, 1_000, 2**53 - 1])
    async def test_beyond_the_head_there_is_no_backlog_and_everything_new_is_live(
        self, ten: BubbleStore, from_seq: int
    ) -> None:
        seen = Seen()
        subscription = await ten.subscribe("t", seen, from_seq=from_seq)
        assert subscription.through_seq == 10
        await ten.append("t", a_part())
        await ten.append("t", a_finish())
        await seen.until(12)
        assert seen.seqs == [11, 12]
        await subscription.unsubscribe()

    @pytest.mark.requirement("EV-48", "EV-50", "PR-7-07")
    async def test_across_the_boundary_nothing_is_missing_while_appends_pour_in(self, store: BubbleStore) -> None:
        await store.append("t", a_start())
        waiting = [submitted(store, "t", a_part(delta=str(number))) for number in range(200)]
        watchers = []
        for number in range(10):
            seen = Seen()
            watchers.append((seen, await store.subscribe("t", seen, from_seq=number * 10 + 1)))
            waiting += [submitted(store, "t", a_part(delta=str(number))) for _ in range(20)]
        for one in waiting:
            await outcome_of(one)
        for number, (seen, subscription) in enumerate(watchers):
            await seen.until(401)
            first = min(number * 10 + 1, subscription.through_seq + 1)
            assert seen.seqs == list(range(first, 402))
            await subscription.unsubscribe()

    @pytest.mark.requirement("EV-51", "EV-52")
    async def test_a_filter_is_asked_for_every_event_backlog_and_live(self, ten: BubbleStore) -> None:
        seen, asked = Seen(), Seen()

        def is_even(event: SequencedEvent) -> bool:
            asked(event)
            return event.seq % 2 == 0

        subscription = await ten.subscribe("t", seen, filter=is_even)
        await ten.append_many("t", [a_part(), a_part()])
        await seen.until(12)
        assert seen.seqs == [2, 4, 6, 8, 10, 12]
        assert asked.seqs == list(range(1, 13))
        await subscription.unsubscribe()

    @pytest.mark.requirement("EV-53")
    async def test_after_unsubscribe_nothing_is_delivered_and_a_second_one_does_no_harm(self, ten: BubbleStore) -> None:
        seen, witness = Seen(), Seen()
        subscription = await ten.subscribe("t", seen)
        other = await ten.subscribe("t", witness)
        await seen.until(10)
        for _ in range(2):
            await subscription.unsubscribe()
        await subscription.wait_closed()
        await ten.append("t", a_finish())
        await witness.until(11)
        assert seen.seqs == list(range(1, 11))
        await other.unsubscribe()

    async def test_a_callback_may_end_its_own_subscription(self, ten: BubbleStore) -> None:
        seen = Seen()

        async def until_the_third(event: SequencedEvent) -> None:
            seen(event)
            if event.seq == 3:
                await subscription.unsubscribe()

        subscription = await ten.subscribe("t", until_the_third)
        async with patience():
            await subscription.wait_closed()
        assert seen.seqs == [1, 2, 3]

    async def test_a_coroutine_is_awaited_one_event_at_a_time(self, ten: BubbleStore) -> None:
        seen, running = Seen(), [0]

        async def slowly(event: SequencedEvent) -> None:
            running[0] += 1
            assert running[0] == 1
            turn = asyncio.Event()
            asyncio.get_running_loop().call_soon(turn.set)
            await turn.wait()
            running[0] -= 1
            seen(event)

        subscription = await ten.subscribe("t", slowly)
        await ten.append("t", a_finish())
        await seen.until(11)
        assert seen.seqs == list(range(1, 12))
        await subscription.unsubscribe()

    async def test_a_callback_that_waits_holds_up_nobody_else(self, ten: BubbleStore) -> None:
        release, entered, seen = asyncio.Event(), asyncio.Event(), Seen()

        async def stuck(_: SequencedEvent) -> None:
            entered.set()
            await release.wait()

        slow = await ten.subscribe("t", stuck)
        quick = await ten.subscribe("t", seen)
        await until(entered)
        await ten.append("t", a_finish())
        await seen.until(11)
        release.set()
        for subscription in (slow, quick):
            await subscription.unsubscribe()

    async def test_an_exception_of_the_callback_ends_its_subscription_and_comes_out(self, ten: BubbleStore) -> None:
        def fails(event: SequencedEvent) -> None:
            if event.seq == 4:
                raise LookupError("the fourth")

        seen = Seen()
        broken, healthy = await ten.subscribe("t", fails), await ten.subscribe("t", seen)
        with pytest.raises(LookupError, match="the fourth"):
            async with patience():
                await broken.wait_closed()
        await ten.append("t", a_finish())
        await seen.until(11)
        await broken.unsubscribe()
        await healthy.unsubscribe()

    async def test_deleting_the_thread_ends_its_subscriptions(self, ten: BubbleStore) -> None:
        seen = Seen()
        subscription = await ten.subscribe("t", seen)
        await seen.until(10)
        await ten.delete_thread("t")
        with pytest.raises(NotFound):
            async with patience():
                await subscription.wait_closed()

    async def test_closing_the_store_ends_its_subscriptions(self, ten: BubbleStore) -> None:
        seen = Seen()
        subscription = await ten.subscribe("t", seen)
        await ten.close()
        with pytest.raises(Unavailable):
            async with patience():
                await subscription.wait_closed()

    @pytest.mark.requirement("PR-2-14")
    @pytest.mark.parametrize("from_seq", [0, -1, 2**53])
    async def test_a_from_seq_that_is_no_seq_is_refused(self, ten: BubbleStore, from_seq: int) -> None:
        with pytest.raises(InvalidRequest, match="fromSeq"):
            await ten.subscribe("t", Seen(), from_seq=from_seq)

    async def test_an_unknown_thread_cannot_be_followed(self, store: BubbleStore) -> None:
        with pytest.raises(NotFound):
            await store.subscribe("nowhere", Seen())

    async def test_an_empty_thread_can(self, store: BubbleStore) -> None:
        await self.make_thread(store, "t")
        seen = Seen()
        subscription = await store.subscribe("t", seen, from_seq=2)
        assert subscription.through_seq == 1
        await store.append("t", a_start())
        await seen.until(2)
        assert seen.seqs == [2]
        await subscription.unsubscribe()


@pytest.mark.anyio
class NoticePromises(StoreCase):
    """What `listen` promises."""

    async def test_listeners_hear_of_every_event_in_order_before_its_append_is_answered(
        self, store: BubbleStore
    ) -> None:
        notices = Notices()
        store.listen(notices)
        heard: list[int] = []

        def answered(_: AppendResult) -> None:
            heard.append(max(one.head for one in notices.of(Committed)))

        for number in range(100):
            events = [encoded(a_start(f"run-{number}"))]
            store.submit(AppendCommand(thread_id="t", events=events, done=answered, create=True))
        await store.append("t", a_start("last"))
        assert all(head >= seq for seq, head in enumerate(heard, start=1))
        assert len(heard) == 100
        texts = [text for one in notices.of(Committed) for text in one.events]
        assert texts == await self.texts(store, "t")

    async def test_a_notice_tells_where_its_events_end(self, store: BubbleStore) -> None:
        notices = Notices()
        store.listen(notices)
        for number in range(30):
            submitted(store, f"t{number % 3}", a_start(f"run-{number}"))
        await store.append("t0", a_start("last"))
        for one in notices.of(Committed):
            seqs = [SequencedEvent.from_stored(text).seq for text in one.events]
            assert seqs == list(range(one.head - len(seqs) + 1, one.head + 1))

    async def test_nobody_is_told_from_within_submit(self, store: BubbleStore) -> None:
        notices = Notices()
        store.listen(notices)
        waiting = submitted(store, "t", a_start())
        assert notices.all == []
        assert not waiting.done()
        await outcome_of(waiting)
        assert len(notices.all) == 1

    async def test_who_stops_listening_is_told_nothing_more(self, store: BubbleStore) -> None:
        early, late = Notices(), Notices()
        stop = store.listen(early)
        store.listen(late)
        await store.append("t", a_start())
        for _ in range(2):
            stop()
        await store.append("t", a_finish())
        assert [one.head for one in early.of(Committed)] == [1]
        assert [one.head for one in late.of(Committed)] == [1, 2]

    async def test_a_commit_that_appends_revokes_and_appends_again_is_told_in_that_order(
        self, store: BubbleStore
    ) -> None:
        await self.make_thread(store, "t", bob="participant")
        version, notices = (await store.position("t")).grant_version, Notices()
        store.listen(notices)
        before = submitted(store, "t", a_start("run-1"))
        removal = asyncio.ensure_future(store.remove_grant("t", "bob", by="ann"))
        begun = asyncio.Event()
        asyncio.get_running_loop().call_soon(begun.set)
        await begun.wait()
        after = submitted(store, "t", a_start("run-2"))
        for one in (before, after):
            await outcome_of(one)
        await removal
        under: dict[str, int] = {}
        for committed in notices.of(Committed):
            for text in committed.events:
                event = SequencedEvent.from_stored(text)
                under[str(event.to_dict().get("runId", event.type))] = committed.grant_version
        assert under["run-1"] == version
        assert under["participant_left"] == under["run-2"] > version

    async def test_a_listener_that_fails_takes_no_other_with_it(self, store: BubbleStore) -> None:
        reported: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
        notices = Notices()
        store.listen(failing)
        store.listen(notices)
        await store.append("t", a_start())
        assert len(notices.all) == 1
        assert len(reported) == 1


def failing(_: object) -> None:
    """A listener with a fault."""
    raise LookupError("a listener with a fault")
