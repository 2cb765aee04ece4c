"""A thread that was somewhere else before (protocol, section 6)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bubble.protocol.errors import BubbleError, Conflict, InvalidRequest, NotFound
from bubble.protocol.events import SequencedEvent, encoded, sequence
from bubble.protocol.timestamps import format_ms
from bubble.store.base import BubbleStore
from bubble.store.notices import Committed, GrantChanged
from bubble.store.records import NewThread, Participant
from bubble.testing.store_suite.base import (
    FIRST_MS,
    Event,
    ManualClock,
    Notices,
    StoreCase,
    a_call,
    a_finish,
    a_part,
    a_start,
    an_approval,
)

__all__ = ["ImportPromises"]

EARLIER_MS = FIRST_MS - 86_400_000


def joined(principal_id: str, *, left: bool = False) -> Event:
    """A participant event by `ann`."""
    kind = "participant_left" if left else "participant_joined"
    return {"type": kind, "byPrincipalId": "ann", "principalId": principal_id}


def titled(title: str) -> Event:
    """A `thread_title_updated` by `ann`."""
    return {"type": "thread_title_updated", "byPrincipalId": "ann", "title": title}


def stored(*events: Event, first_seq: int = 1, step_ms: int = 1_000) -> list[SequencedEvent]:
    """Events as another store might have kept them, a day ago."""
    result = []
    for index, event in enumerate(events):
        seq, created_at = first_seq + index, format_ms(EARLIER_MS + index * step_ms)
        text = sequence(encoded(event).text, seq=seq, created_at=created_at)
        result.append(SequencedEvent(seq=seq, created_at=created_at, text=text))
    return result


NINE_SHAPES = (
    *(joined("ann"), joined("bob"), joined("carl"), titled("First"), a_start(kind="agent_work"), a_part()),
    *(an_approval(approved=False), a_call("tool_call_result"), a_call("run_interrupt_requested")),
    *(a_finish(outcome="interrupted"), joined("carl", left=True), titled("Plans"), a_start("run-2", "bob")),
)
NEW = NewThread(thread_id="t", creator="ann")


@pytest.mark.anyio
class ImportPromises(StoreCase):
    """What `import_thread` promises."""

    async def bring(self, store: BubbleStore, events: Sequence[SequencedEvent], new: NewThread = NEW) -> None:
        """Imports with `ann`, `bob` and `carl` registered."""
        await self.enrol(store, *({"ann", "bob", "carl"} - await self.everybody(store)))
        await store.import_thread(new, events)

    @pytest.mark.requirement("PR-6-29")
    async def test_all_nine_shapes_keep_their_seq_their_time_and_their_bytes(self, store: BubbleStore) -> None:
        events = stored(*NINE_SHAPES)
        await self.bring(store, events)
        assert await self.texts(store, "t") == [event.text for event in events]
        thread = await store.get_thread("t", principal_id="ann")
        assert (thread.head_seq, thread.title, thread.role) == (13, "Plans", "owner")
        assert (thread.created_at, thread.last_activity_at) == (events[0].created_at, events[-1].created_at)
        assert await store.check() == []

    async def test_runs_and_decisions_are_rebuilt(self, store: BubbleStore) -> None:
        events = stored(*NINE_SHAPES)
        await self.bring(store, events)
        first, second = (await store.list_runs("t")).runs
        assert (first.state, first.started_seq, first.finished_seq, first.outcome) == ("finished", 5, 10, "interrupted")
        assert (first.started_at, first.finished_at) == (events[4].created_at, events[9].created_at)
        assert (first.last_seq, first.last_event_at) == (10, events[9].created_at)
        assert (second.state, second.principal_id, second.last_event_at) == ("open", "bob", events[12].created_at)
        with pytest.raises(Conflict) as caught:
            await store.append("t", an_approval(approved=True))
        assert caught.value.details == {"approved": False, "principalId": "bob", "seq": 7}
        assert (await store.append("t", a_part("run-2", "bob"))).seq == 14

    async def test_who_joined_and_did_not_leave_is_a_participant(self, store: BubbleStore) -> None:
        await self.bring(store, stored(*NINE_SHAPES))
        assert (await store.get_roles("t"))[0] == {"ann": "owner", "bob": "participant"}
        grant = (await store.list_grants("t")).grants[1]
        assert (grant.granted_by, grant.created_at) == ("ann", format_ms(EARLIER_MS + 1_000))

    async def test_an_import_that_keeps_no_participants_has_an_owner_and_nobody_else(self, store: BubbleStore) -> None:
        events = stored(*NINE_SHAPES)
        await self.bring(store, events, NewThread(thread_id="t", creator="carl", keeps_participants=False))
        assert (await store.get_roles("t"))[0] == {"carl": "owner"}
        assert await self.texts(store, "t") == [event.text for event in events]

    async def test_a_name_that_nobody_has_here_gets_no_grant(self, store: BubbleStore) -> None:
        await self.bring(store, stored(joined("ann"), joined("ghost"), a_start("run-1", "ghost")))
        await self.enrol(store, "ghost")
        assert (await store.get_role("t", "ghost"))[0] is None

    async def test_what_the_import_itself_says_goes_before_what_the_events_say(self, store: BubbleStore) -> None:
        carl = Participant(principal_id="carl", role="observer", appends=False)
        new = NewThread(
            thread_id="t", creator="bob", title="Mine", metadata={"a": 1}, join_policy="open", participants=[carl]
        )
        await self.bring(store, stored(joined("bob"), joined("carl"), titled("Theirs")), new)
        thread = await store.get_thread("t")
        assert (thread.title, thread.metadata, thread.join_policy, thread.head_seq) == ("Mine", {"a": 1}, "open", 3)
        assert (await store.get_roles("t"))[0] == {"bob": "owner", "carl": "observer"}

    async def test_an_import_without_events_is_an_empty_thread(self, store: BubbleStore) -> None:
        await self.bring(store, [])
        thread = await store.get_thread("t")
        assert (thread.head_seq, thread.created_at) == (0, format_ms(FIRST_MS))
        assert (await store.append("t", a_start())).seq == 1

    async def test_after_an_import_from_the_future_time_still_does_not_run_backwards(
        self, store: BubbleStore, clock: ManualClock
    ) -> None:
        events = stored(joined("ann"))
        clock.now_ms = EARLIER_MS - 5_000
        await self.bring(store, events)
        assert (await store.append("t", a_start())).created_at == events[0].created_at

    async def test_an_import_is_told(self, store: BubbleStore) -> None:
        await self.enrol(store, "ann", "bob", "carl")
        notices = Notices()
        store.listen(notices)
        await self.bring(store, stored(*NINE_SHAPES))
        assert {one.grant.principal_id for one in notices.of(GrantChanged)} == {"ann", "bob"}
        assert [one.head for one in notices.of(Committed)] == [13]

    @pytest.mark.requirement("PR-6-28")
    async def test_a_thread_that_exists_is_not_imported_over(self, store: BubbleStore) -> None:
        await self.make_thread(store, "t")
        with pytest.raises(Conflict):
            await self.bring(store, stored(joined("ann")))
        assert (await store.position("t")).head == 1

    @pytest.mark.requirement("PR-6-30", "PR-3-13")
    @pytest.mark.parametrize(
        ("events", "index"),
        [
            (stored(joined("ann"), first_seq=2), 0),
            (stored(joined("ann"))[:1] * 2, 1),
            (stored(joined("ann"), joined("bob"), joined("carl"))[::2], 1),
            (stored(joined("ann"), joined("bob"), step_ms=-1), 1),
            (stored(joined("ann"), a_part()), 1),
            (stored(a_start(), a_finish(), a_finish()), 2),
            ([SequencedEvent(seq=1, created_at=format_ms(0), text=stored(a_start())[0].text)], 0),
            ([SequencedEvent(seq=1, created_at="yesterday", text=b"{}")], 0),
        ],
        ids=["not from 1", "double", "gap", "backwards", "lifecycle", "second end", "text says another", "no time"],
    )
    async def test_what_does_not_fit_is_named_and_leaves_nothing_behind(
        self, store: BubbleStore, events: list[SequencedEvent], index: int
    ) -> None:
        with pytest.raises(InvalidRequest, match=rf"\$\.events\[{index}\]"):
            await self.bring(store, events)
        with pytest.raises(NotFound):
            await store.get_thread("t")
        assert (await store.list_grants_of("ann")).grants == []
        await self.bring(store, stored(joined("ann")))

    async def test_the_creator_and_participants_must_exist(self, store: BubbleStore) -> None:
        ghost = Participant(principal_id="ghost", role="observer", appends=False)
        for new in (
            NewThread(thread_id="t", creator="ghost"),
            NewThread(thread_id="t", creator="ann", participants=[ghost]),
        ):
            with pytest.raises(NotFound):
                await self.bring(store, stored(joined("ann")), new)
        with pytest.raises(BubbleError):
            await store.get_thread("t")

    @pytest.mark.requirement("PR-1-30")
    async def test_with_run_integrity_off_any_order_of_events_is_imported(self, lax_store: BubbleStore) -> None:
        await self.bring(lax_store, stored(a_part(), a_finish(), a_start(), a_start(), a_finish(), a_finish()))
        runs = (await lax_store.list_runs("t")).runs
        assert [(run.run_id, run.state, run.started_seq, run.finished_seq) for run in runs] == [
            ("run-1", "finished", 3, 5)
        ]
        assert await lax_store.check() == []

    async def test_what_one_store_holds_another_takes_as_it_is(
        self, store: BubbleStore, lax_store: BubbleStore
    ) -> None:
        await self.bring(store, stored(*NINE_SHAPES))
        await store.append_many("t", [a_part("run-2", "bob"), a_finish("run-2", "bob")])
        exported = [SequencedEvent.from_text(text) for text in await self.texts(store, "t")]
        await self.bring(lax_store, exported)
        assert await self.texts(lax_store, "t") == await self.texts(store, "t")
