"""Threads: creating, changing, listing, deleting (protocol, sections 5 and 6)."""

from __future__ import annotations

import pytest
from msgspec import UNSET

from bubble.protocol.errors import Conflict, Forbidden, InvalidRequest, NotFound
from bubble.protocol.resources import Metadata
from bubble.protocol.timestamps import format_ms
from bubble.store.base import BubbleStore
from bubble.store.commands import IdempotencyKey
from bubble.store.notices import Committed, GrantChanged, ThreadDeleted
from bubble.store.records import NewThread, Participant, ThreadChanges
from bubble.testing.store_suite.base import (
    FIRST_MS,
    ManualClock,
    Notices,
    StoreCase,
    a_finish,
    a_part,
    a_start,
    an_approval,
    outcome_of,
    submitted,
)

__all__ = ["DeletionPromises", "ThreadListPromises", "ThreadPromises"]

BOB = Participant(principal_id="bob", role="participant", appends=True)
CARL = Participant(principal_id="carl", role="observer", appends=False)
DAN = Participant(principal_id="dan", role="owner", appends=True)


@pytest.mark.anyio
class ThreadPromises(StoreCase):
    """What `create_thread`, `get_thread` and `update_thread` promise."""

    @pytest.mark.requirement("PR-5-24", "PR-5-25", "PR-6-12")
    async def test_a_new_thread_joins_its_creator_and_then_each_participant_in_order(self, store: BubbleStore) -> None:
        await self.enrol(store, "ann", "bob", "carl", "dan")
        thread = await store.create_thread(
            NewThread(
                thread_id="t",
                creator="ann",
                title="Plans",
                join_policy="open",
                metadata={"b": 1, "a": [None]},
                participants=[DAN, CARL, BOB],
            )
        )
        assert (thread.title, thread.join_policy, thread.metadata, thread.role, thread.head_seq) == (
            *("Plans", "open", {"b": 1, "a": [None]}, "owner"),
            3,
        )
        assert [
            (event["type"], event["byPrincipalId"], event["principalId"]) for event in await self.log(store, "t")
        ] == [("participant_joined", "ann", name) for name in ("ann", "dan", "bob")]
        assert (await store.get_roles("t"))[0] == {
            "ann": "owner",
            "dan": "owner",
            "carl": "observer",
            "bob": "participant",
        }

    async def test_a_bare_thread_has_no_title_no_metadata_and_is_invite_only(
        self, store: BubbleStore, clock: ManualClock
    ) -> None:
        await self.enrol(store, "ann")
        clock.advance(7)
        thread = await store.create_thread(NewThread(thread_id="t", creator="ann"))
        assert (thread.title, thread.metadata, thread.join_policy) == (UNSET, UNSET, "invite")
        assert thread.created_at == thread.last_activity_at == format_ms(FIRST_MS + 7)
        assert await store.get_thread("t", principal_id="ann") == thread
        assert (await store.get_thread("t")).role is UNSET

    async def test_a_thread_without_a_creator_has_no_owner_and_no_events(self, store: BubbleStore) -> None:
        thread = await store.create_thread(NewThread(thread_id="t", creator=None))
        assert (thread.head_seq, (await store.get_roles("t"))[0]) == (0, {})
        assert (await store.append("t", a_start())).seq == 1

    async def test_creation_is_told(self, store: BubbleStore) -> None:
        await self.enrol(store, "ann", "bob")
        notices = Notices()
        store.listen(notices)
        await store.create_thread(NewThread(thread_id="t", creator="ann", participants=[BOB]))
        assert [(one.change, one.grant.principal_id) for one in notices.of(GrantChanged)] == [
            ("granted", "ann"),
            ("granted", "bob"),
        ]
        assert [list(one.events) for one in notices.of(Committed)] == [await self.texts(store, "t")]

    @pytest.mark.parametrize(
        ("new", "kind"),
        [
            (NewThread(thread_id="t", creator="ghost"), NotFound),
            (NewThread(thread_id="t", creator="ann", participants=[DAN]), NotFound),
            (NewThread(thread_id="t", creator="ann", participants=[BOB, BOB]), InvalidRequest),
            (
                NewThread(
                    thread_id="t",
                    creator="ann",
                    participants=[Participant(principal_id="ann", role="observer", appends=False)],
                ),
                InvalidRequest,
            ),
            (NewThread(thread_id="", creator="ann"), InvalidRequest),
            (NewThread(thread_id="t", creator="ann", metadata={"x": float("nan")}), InvalidRequest),
        ],
        ids=["creator", "participant", "twice", "creator twice", "id", "metadata"],
    )
    async def test_a_creation_that_is_refused_leaves_nothing(
        self, store: BubbleStore, new: NewThread, kind: type[Exception]
    ) -> None:
        await self.enrol(store, "ann", "bob")
        with pytest.raises(kind):
            await store.create_thread(new)
        assert (await store.list_threads(principal_id=None)).threads == []
        assert (await store.create_thread(NewThread(thread_id="t", creator="ann"))).head_seq == 1

    async def test_an_id_is_given_once(self, store: BubbleStore) -> None:
        await self.make_thread(store, "t")
        with pytest.raises(Conflict):
            await store.create_thread(NewThread(thread_id="t", creator="ann"))

    @pytest.mark.requirement("PR-1-04")
    async def test_another_title_writes_an_event(self, store: BubbleStore, clock: ManualClock) -> None:
        await self.make_thread(store, "t")
        clock.advance(1_000)
        thread = await store.update_thread("t", ThreadChanges(title="Plans"), by="ann")
        assert (thread.title, thread.role, thread.head_seq) == ("Plans", "owner", 2)
        assert (await self.log(store, "t"))[-1] == {
            "seq": 2,
            "createdAt": format_ms(FIRST_MS + 1_000),
            "type": "thread_title_updated",
            "byPrincipalId": "ann",
            "title": "Plans",
        }
        await store.update_thread("t", ThreadChanges(title="Plans"), by="ann")
        assert (await store.position("t")).head == 2

    async def test_a_cleared_title_is_told_as_an_empty_one(self, store: BubbleStore) -> None:
        await self.make_thread(store, "t")
        await store.update_thread("t", ThreadChanges(title="Plans"), by="ann")
        assert (await store.update_thread("t", ThreadChanges(title=None), by="ann")).title is UNSET
        assert (await self.log(store, "t"))[-1]["title"] == ""

    @pytest.mark.requirement("PR-6-17")
    async def test_an_update_changes_what_it_names_and_nothing_else(self, store: BubbleStore) -> None:
        await self.make_thread(store, "t")
        await store.update_thread("t", ThreadChanges(title="Plans", metadata={"a": 1}), by="ann")
        before = await store.position("t")
        thread = await store.update_thread("t", ThreadChanges(metadata={"b": [1, {"c": "\ud83d"}]}), by="ann")
        assert (thread.title, thread.metadata) == ("Plans", {"b": [1, {"c": "\ud83d"}]})
        thread = await store.update_thread("t", ThreadChanges(), by="ann")
        assert (thread.title, thread.metadata) == ("Plans", {"b": [1, {"c": "\ud83d"}]})
        assert await store.position("t") == before
        assert (await store.update_thread("t", ThreadChanges(metadata=None), by="ann")).metadata is UNSET

    @pytest.mark.requirement("PR-5-05", "PR-5-09")
    async def test_an_update_needs_thread_update(self, store: BubbleStore) -> None:
        await self.make_thread(store, "t", bob="participant")
        await self.enrol(store, "eve")
        changes = ThreadChanges(title="Mine")
        for name, kind in (("bob", Forbidden), ("eve", NotFound)):
            with pytest.raises(kind):
                await store.update_thread("t", changes, by=name, guard=await self.guard(store, name))
        assert (await store.get_thread("t")).title is UNSET
        await store.update_thread("t", changes, by="ann", guard=await self.guard(store, "ann"))

    async def test_what_a_caller_does_to_its_metadata_does_not_reach_the_store(self, store: BubbleStore) -> None:
        await self.enrol(store, "ann")
        given: Metadata = {"list": [1]}
        await store.create_thread(NewThread(thread_id="t", creator="ann", metadata=given))
        given.clear()
        taken = (await store.get_thread("t")).metadata
        assert isinstance(taken, dict)
        taken.clear()
        assert (await store.get_thread("t")).metadata == {"list": [1]}

    async def test_what_does_not_exist_is_not_found(self, store: BubbleStore) -> None:
        with pytest.raises(NotFound):
            await store.get_thread("nowhere")
        with pytest.raises(NotFound):
            await store.update_thread("nowhere", ThreadChanges(title="x"), by="ann")
        with pytest.raises(NotFound):
            await store.delete_thread("nowhere")


@pytest.mark.anyio
class ThreadListPromises(StoreCase):
    """What `list_threads` promises."""

    async def ids(
        self, store: BubbleStore, principal_id: str | None, *, limit: int = 100, query: str | None = None
    ) -> list[str]:
        """The ids of all pages."""
        found: list[str] = []
        after: str | None = None
        while True:
            page = await store.list_threads(principal_id=principal_id, after=after, limit=limit, query=query)
            assert len(page.threads) <= limit
            found += [thread.thread_id for thread in page.threads]
            after = page.next_after
            if after is None:
                return found

    @pytest.mark.requirement("PR-6-13")
    async def test_the_latest_active_thread_comes_first(self, store: BubbleStore, clock: ManualClock) -> None:
        for name in ("a", "b", "c"):
            await self.make_thread(store, name)
            clock.advance(1_000)
        assert await self.ids(store, "ann") == ["c", "b", "a"]
        stored = await store.append("a", a_start())
        assert await self.ids(store, "ann") == ["a", "c", "b"]
        assert (await store.list_threads(principal_id="ann")).threads[0].last_activity_at == stored.created_at

    @pytest.mark.requirement("PR-6-13")
    async def test_a_principal_sees_its_threads_with_its_role(self, store: BubbleStore) -> None:
        await self.make_thread(store, "a", bob="observer")
        await self.make_thread(store, "b")
        await store.append("c", a_start())
        mine = (await store.list_threads(principal_id="bob")).threads
        assert [(thread.thread_id, thread.role) for thread in mine] == [("a", "observer")]
        assert set(await self.ids(store, None)) == {"a", "b", "c"}
        everything = (await store.list_threads(principal_id=None, viewer="bob")).threads
        assert {thread.thread_id: thread.role for thread in everything} == {"a": "observer", "b": UNSET, "c": UNSET}
        await store.remove_grant("a", "bob", by="ann")
        assert await self.ids(store, "bob") == []

    @pytest.mark.requirement("PR-6-14")
    @pytest.mark.parametrize("limit", [1, 2, 3, 7, 100])
    async def test_pages_hold_each_thread_once_also_of_the_same_moment(
        self, store: BubbleStore, clock: ManualClock, limit: int
    ) -> None:
        names = [f"t{number}" for number in range(7)]
        for number, name in enumerate(names):
            await self.make_thread(store, name)
            clock.advance(1_000 if number == 3 else 0)
        assert sorted(await self.ids(store, "ann", limit=limit)) == names
        assert sorted(await self.ids(store, None, limit=limit)) == names

    @pytest.mark.requirement("PR-6-14")
    async def test_a_thread_that_becomes_active_between_two_pages_does_not_come_twice(
        self, store: BubbleStore, clock: ManualClock
    ) -> None:
        for name in ("a", "b", "c", "d"):
            await self.make_thread(store, name)
            clock.advance(1_000)
        first = await store.list_threads(principal_id="ann", limit=2)
        await store.append("d", a_start())
        second = await store.list_threads(principal_id="ann", limit=2, after=first.next_after)
        assert [thread.thread_id for thread in (*first.threads, *second.threads)] == ["d", "c", "b", "a"]

    @pytest.mark.requirement("PR-6-15")
    async def test_a_query_keeps_what_has_it_in_title_or_id(self, store: BubbleStore) -> None:
        for name, title in (
            ("plan-1", None),
            ("b", "the plan"),
            ("c", "100%"),
            ("d", "a_b"),
            ("e", "axb"),
            ("f", "\\"),
        ):
            await self.make_thread(store, name)
            if title is not None:
                await store.update_thread(name, ThreadChanges(title=title), by="ann")
        for query, expected in (
            *(("plan", {"plan-1", "b"}), ("PLAN", {"plan-1", "b"}), ("%", {"c"}), ("_", {"d"}), ("\\", {"f"})),
            *(("nothing", set()), ("'", set()), ("", {"plan-1", "b", "c", "d", "e", "f"})),
        ):
            for principal_id in ("ann", None):
                assert set(await self.ids(store, principal_id, query=query, limit=2)) == expected, query

    @pytest.mark.requirement("PR-3-04")
    async def test_a_cursor_that_is_none_and_a_limit_below_1_are_refused(self, store: BubbleStore) -> None:
        for after in ("!", "bm90IGpzb24", "e30", "é", ""):
            with pytest.raises(InvalidRequest):
                await store.list_threads(principal_id=None, after=after)
        with pytest.raises(InvalidRequest):
            await store.list_threads(principal_id=None, limit=0)


@pytest.mark.anyio
class DeletionPromises(StoreCase):
    """A deleted thread is gone for good."""

    @pytest.mark.requirement("PR-6-18")
    async def test_nothing_is_left_of_a_deleted_thread(self, store: BubbleStore) -> None:
        await self.make_thread(store, "t", bob="participant")
        await self.make_thread(store, "u", bob="participant")
        for thread_id in ("t", "u"):
            await store.append_many(thread_id, [a_start(), a_part(), an_approval(), a_finish()])
            await store.advance_cursor(thread_id, "bob", 3)
        kept = await self.texts(store, "u")
        await store.delete_thread("t")
        for gone in (
            *(store.get_thread("t"), store.position("t"), store.get_event_page("t"), store.list_runs("t")),
            *(store.get_role("t", "ann"), store.get_roles("t"), store.list_grants("t"), store.get_cursor("t", "bob")),
            *(store.advance_cursor("t", "bob", 1), store.delete_thread("t"), store.remove_grant("t", "bob", by="ann")),
        ):
            with pytest.raises(NotFound):
                await gone
        assert list(await self.texts(store, "t")) == []
        assert await store.positions(["t"]) == {}
        assert [grant.thread_id for grant in (await store.list_grants_of("bob")).grants] == ["u"]
        assert [thread.thread_id for thread in (await store.list_threads(principal_id=None)).threads] == ["u"]
        assert await self.texts(store, "u") == kept
        assert await store.check() == []

    @pytest.mark.requirement("PR-6-18")
    async def test_a_deleted_threads_id_is_never_given_again(self, store: BubbleStore) -> None:
        await self.make_thread(store, "t")
        await store.delete_thread("t")
        with pytest.raises(Conflict):
            await store.create_thread(NewThread(thread_id="t", creator="ann"))
        with pytest.raises(Conflict):
            await store.import_thread(NewThread(thread_id="t", creator="ann"), [])
        with pytest.raises(Conflict):
            await store.append("t", a_start())
        with pytest.raises(NotFound):
            await store.append("t", a_start(), guard=await self.guard(store, "ann"))

    async def test_its_keys_go_with_it(self, store: BubbleStore) -> None:
        key = IdempotencyKey(caller="ann", key="k", digest=b"x" * 32)
        await store.append("t", a_start(), idempotency=key)
        await store.delete_thread("t")
        with pytest.raises(NotFound):
            await outcome_of(submitted(store, "t", a_start(), idempotency=key, create=False))

    async def test_a_deletion_is_told_after_its_grants_are_told_as_revoked(self, store: BubbleStore) -> None:
        await self.make_thread(store, "t", bob="observer")
        notices = Notices()
        store.listen(notices)
        await store.delete_thread("t")
        assert {(one.change, one.grant.principal_id) for one in notices.of(GrantChanged)} == {
            ("revoked", "ann"),
            ("revoked", "bob"),
        }
        assert notices.all[-1] == ThreadDeleted("t")

    async def test_what_was_submitted_before_a_deletion_is_told_before_it(self, store: BubbleStore) -> None:
        await self.make_thread(store, "t")
        notices = Notices()
        store.listen(notices)
        waiting = submitted(store, "t", a_start(), create=False)
        await store.delete_thread("t")
        assert (await outcome_of(waiting)).events[0].seq == 2
        kinds = [type(notice).__name__ for notice in notices.all]
        assert kinds == ["Committed", "GrantChanged", "ThreadDeleted"]

    @pytest.mark.requirement("PR-5-05", "PR-5-09")
    async def test_deleting_needs_thread_delete(self, store: BubbleStore) -> None:
        await self.make_thread(store, "t", bob="participant")
        await self.enrol(store, "eve")
        for name, kind in (("bob", Forbidden), ("eve", NotFound)):
            with pytest.raises(kind):
                await store.delete_thread("t", guard=await self.guard(store, name))
        await store.delete_thread("t", guard=await self.guard(store, "ann"))
