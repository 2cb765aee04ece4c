"""Grants and the events that they write (spec 1, "Participant Lifecycle"; protocol, section 5)."""

from __future__ import annotations

import asyncio

import pytest

from bubble.protocol.errors import BubbleError, Conflict, Forbidden, InvalidRequest, NotFound
from bubble.protocol.timestamps import format_ms
from bubble.store.base import BubbleStore
from bubble.store.notices import Committed, GrantChanged
from bubble.store.records import ThreadChanges
from bubble.testing.store_suite.base import FIRST_MS, POLICY, ManualClock, Notices, StoreCase, a_finish, a_start

__all__ = ["GrantPromises", "OpenThreadPromises"]

ROLES = {"observer": False, "participant": True, "owner": True}


@pytest.mark.anyio
class GrantPromises(StoreCase):
    """What `put_grant`, `remove_grant` and the lists of grants promise."""

    async def put(self, store: BubbleStore, name: str, role: str, *, by: str = "ann", guarded: bool = False) -> bool:
        """Gives a grant on `t`; whether it is new."""
        guard = await self.guard(store, by) if guarded else None
        _, is_new = await store.put_grant("t", name, role, by=by, appends=POLICY.role_appends(role), guard=guard)
        return is_new

    @pytest.mark.requirement("PR-5-02", "PR-5-18")
    async def test_a_grant_tells_who_gave_what_to_whom_and_when(self, store: BubbleStore, clock: ManualClock) -> None:
        await self.make_thread(store, "t")
        await self.enrol(store, "bob")
        clock.advance(1_000)
        grant, is_new = await store.put_grant("t", "bob", "observer", by="ann", appends=False)
        assert is_new
        assert (grant.thread_id, grant.principal_id, grant.role, grant.granted_by, grant.created_at) == (
            *("t", "bob", "observer", "ann"),
            format_ms(FIRST_MS + 1_000),
        )
        listed = (await store.list_grants("t")).grants
        assert [one.principal_id for one in listed] == ["ann", "bob"]
        assert listed[1].principal == (await store.get_principal("bob")).summary()

    @pytest.mark.requirement("PR-5-22", "EV-37", "EV-38")
    @pytest.mark.parametrize("before", [None, "observer", "participant", "owner"])
    @pytest.mark.parametrize("after", [None, "observer", "participant", "owner"])
    async def test_an_event_is_written_exactly_when_the_ability_to_append_comes_or_goes(
        self, store: BubbleStore, before: str | None, after: str | None
    ) -> None:
        await self.make_thread(store, "t")
        await self.enrol(store, "bob")
        if before is not None:
            await self.put(store, "bob", before)
        head = (await store.position("t")).head
        if after is not None:
            await self.put(store, "bob", after)
        elif before is not None:
            await store.remove_grant("t", "bob", by="ann")
        could, can = (role is not None and ROLES[role] for role in (before, after))
        kinds = [] if could == can else ["participant_joined" if can else "participant_left"]
        written = (await self.log(store, "t"))[head:]
        assert [(event["type"], event["byPrincipalId"], event["principalId"]) for event in written] == [
            (kind, "ann", "bob") for kind in kinds
        ]
        assert (await store.get_role("t", "bob"))[0] == after

    @pytest.mark.requirement("EV-38")
    async def test_who_leaves_by_themselves_is_named_as_who_did_it(self, store: BubbleStore) -> None:
        await self.make_thread(store, "t", bob="participant")
        await store.remove_grant("t", "bob", by="bob", guard=await self.guard(store, "bob"))
        event = (await self.log(store, "t"))[-1]
        assert (event["type"], event["byPrincipalId"], event["principalId"]) == ("participant_left", "bob", "bob")

    @pytest.mark.parametrize("after", [None, "observer"])
    async def test_who_can_no_longer_append_leaves_no_run_open(self, store: BubbleStore, after: str | None) -> None:
        await self.make_thread(store, "t", bob="participant")
        for run_id, author in (("hers", "ann"), ("first", "bob"), ("over", "bob"), ("second", "bob")):
            await store.append("t", a_start(run_id, author))
        await store.append("t", a_finish("over", "bob"))
        head = (await store.position("t")).head
        if after is None:
            await store.remove_grant("t", "bob", by="ann")
        else:
            await self.put(store, "bob", after)
        written = (await self.log(store, "t"))[head:]
        assert [event["type"] for event in written] == ["run_finished", "run_finished", "participant_left"]
        assert [(end["runId"], end["principalId"], end["outcome"]) for end in written[:2]] == [
            ("first", "system:bubble", "lost"),
            ("second", "system:bubble", "lost"),
        ]
        assert [run.run_id for run in (await store.list_runs("t", state="open")).runs] == ["hers"]

    async def test_who_may_still_append_goes_on_with_its_runs(self, store: BubbleStore) -> None:
        await self.make_thread(store, "t", bob="participant")
        await store.append("t", a_start("run-1", "bob"))
        await self.put(store, "bob", "owner")
        assert (await self.log(store, "t"))[-1]["type"] == "run_started"

    async def test_the_same_grant_again_changes_nothing(self, store: BubbleStore, clock: ManualClock) -> None:
        await self.make_thread(store, "t", bob="participant")
        position, notices = await store.position("t"), Notices()
        store.listen(notices)
        clock.advance(1_000)
        assert await self.put(store, "bob", "participant") is False
        assert await store.position("t") == position
        assert notices.all == []
        assert (await store.list_grants("t")).grants[1].created_at == format_ms(FIRST_MS)

    async def test_a_changed_grant_keeps_its_date_and_tells_who_changed_it(
        self, store: BubbleStore, clock: ManualClock
    ) -> None:
        await self.make_thread(store, "t", bob="participant", carl="owner")
        clock.advance(1_000)
        grant, is_new = await store.put_grant("t", "bob", "observer", by="carl", appends=False)
        assert not is_new
        assert (grant.role, grant.granted_by, grant.created_at) == ("observer", "carl", format_ms(FIRST_MS))

    @pytest.mark.requirement("PR-5-21")
    async def test_the_last_owner_stays(self, store: BubbleStore) -> None:
        await self.make_thread(store, "t", bob="participant")
        with pytest.raises(Conflict):
            await store.remove_grant("t", "ann", by="ann")
        for role in ("participant", "observer"):
            with pytest.raises(Conflict):
                await self.put(store, "ann", role)
        assert (await store.get_role("t", "ann"))[0] == "owner"
        await self.put(store, "bob", "owner")
        await store.remove_grant("t", "ann", by="ann")
        with pytest.raises(Conflict):
            await store.remove_grant("t", "bob", by="bob")

    @pytest.mark.requirement("PR-5-21")
    async def test_of_two_owners_who_leave_at_once_one_stays(self, store: BubbleStore) -> None:
        await self.make_thread(store, "t", bob="owner")
        results = await asyncio.gather(
            *(store.remove_grant("t", name, by=name) for name in ("ann", "bob")), return_exceptions=True
        )
        assert sorted(type(result).__name__ for result in results) == ["Conflict", "NoneType"]

    async def test_a_grant_needs_a_thread_and_a_principal_that_exist(self, store: BubbleStore) -> None:
        await self.make_thread(store, "t")
        with pytest.raises(NotFound, match="ghost"):
            await self.put(store, "ghost", "observer")
        with pytest.raises(NotFound):
            await store.put_grant("nowhere", "ann", "observer", by="ann", appends=False)
        for thread_id, name in (("t", "ghost"), ("nowhere", "ann")):
            with pytest.raises(NotFound):
                await store.remove_grant(thread_id, name, by="ann")

    @pytest.mark.requirement("PR-5-17", "PR-5-05", "PR-5-09")
    async def test_setting_a_grant_needs_grants_manage(self, store: BubbleStore) -> None:
        await self.make_thread(store, "t", bob="participant", carl="observer")
        await self.enrol(store, "dan", "eve")
        for name, kind in (("bob", Forbidden), ("carl", Forbidden), ("eve", NotFound)):
            with pytest.raises(kind):
                await self.put(store, "dan", "observer", by=name, guarded=True)
            with pytest.raises(kind):
                await store.remove_grant("t", "ann", by=name, guard=await self.guard(store, name))
        assert await self.put(store, "dan", "observer", by="ann", guarded=True)

    @pytest.mark.requirement("PR-5-03")
    async def test_an_observer_may_leave_but_not_rise(self, store: BubbleStore) -> None:
        await self.make_thread(store, "t", carl="observer")
        with pytest.raises(Forbidden):
            await self.put(store, "carl", "participant", by="carl", guarded=True)
        await store.remove_grant("t", "carl", by="carl", guard=await self.guard(store, "carl"))
        assert (await store.get_role("t", "carl"))[0] is None

    @pytest.mark.requirement("PR-5-07")
    async def test_an_admin_manages_the_grants_of_every_thread(self, store: BubbleStore) -> None:
        await self.make_thread(store, "t", bob="participant")
        await self.make_admin(store, "root")
        assert await self.put(store, "root", "owner", by="root", guarded=True)
        await store.remove_grant("t", "bob", by="root", guard=await self.guard(store, "root"))

    @pytest.mark.requirement("PR-5-23", "EV-36", "PR-5-26")
    async def test_a_revocation_and_its_event_are_told_under_the_new_grant_version(self, store: BubbleStore) -> None:
        await self.make_thread(store, "t", bob="participant")
        before, notices = await store.position("t"), Notices()
        store.listen(notices)
        await store.remove_grant("t", "bob", by="ann")
        after = await store.position("t")
        assert after.head == before.head + 1
        assert after.grant_version > before.grant_version
        changed, committed = notices.all
        assert isinstance(changed, GrantChanged)
        assert (changed.change, changed.grant.principal_id, changed.grant.role) == ("revoked", "bob", "participant")
        assert isinstance(committed, Committed)
        assert (committed.head, committed.grant_version) == (after.head, after.grant_version)
        assert list(committed.events) == (await self.texts(store, "t"))[-1:]

    @pytest.mark.parametrize("role", ["observer", "participant"])
    async def test_each_change_is_told_as_what_it_is(self, store: BubbleStore, role: str) -> None:
        await self.make_thread(store, "t")
        await self.enrol(store, "bob")
        notices = Notices()
        store.listen(notices)
        await self.put(store, "bob", role)
        await self.put(store, "bob", "owner")
        await store.remove_grant("t", "bob", by="ann")
        assert [(one.change, one.grant.role) for one in notices.of(GrantChanged)] == [
            ("granted", role),
            ("updated", "owner"),
            ("revoked", "owner"),
        ]
        versions = [one.grant_version for one in notices.of(Committed)]
        assert versions == sorted(set(versions))
        assert len(versions) == 3

    async def test_roles_and_position_are_read_together(self, store: BubbleStore) -> None:
        await self.make_thread(store, "t", bob="observer")
        roles, position = await store.get_roles("t")
        assert roles == {"ann": "owner", "bob": "observer"}
        assert position == await store.position("t")
        assert await store.get_role("t", "ann") == ("owner", "invite")
        assert await store.get_role("t", "ghost") == (None, "invite")
        with pytest.raises(NotFound):
            await store.get_role("nowhere", "ann")
        with pytest.raises(NotFound):
            await store.get_roles("nowhere")

    @pytest.mark.requirement("PR-6-39")
    async def test_grants_are_paged_by_principal_and_by_thread_each_once(self, store: BubbleStore) -> None:
        names = [f"user{number:02}" for number in range(7)]
        await self.make_thread(store, "t00", **dict.fromkeys(names, "observer"))
        for number in range(1, 5):
            await self.make_thread(store, f"t{number:02}", owner="user03")
        listed: list[str] = []
        after: str | None = None
        while True:
            page = await store.list_grants("t00", after=after, limit=3)
            listed += [grant.principal_id for grant in page.grants]
            after = page.next_after
            if after is None:
                break
        assert listed == ["ann", *names]
        held = []
        while True:
            page = await store.list_grants_of("user03", after=after, limit=2)
            held += [(grant.thread_id, grant.role) for grant in page.grants]
            after = page.next_after
            if after is None:
                break
        assert held == [("t00", "observer"), *((f"t{number:02}", "owner") for number in range(1, 5))]
        assert (await store.list_grants_of("ghost")).grants == []
        with pytest.raises(NotFound):
            await store.list_grants("nowhere")

    async def test_a_cursor_that_is_none_and_a_limit_below_1_are_refused(self, store: BubbleStore) -> None:
        await self.make_thread(store, "t")
        for refused in (
            *(store.list_grants("t", after="!"), store.list_grants("t", limit=0)),
            *(store.list_grants_of("ann", after="!"), store.list_grants_of("ann", limit=0)),
        ):
            with pytest.raises(InvalidRequest):
                await refused


@pytest.mark.anyio
class OpenThreadPromises(StoreCase):
    """What `joinPolicy` lets people do by themselves."""

    async def open_thread(self, store: BubbleStore) -> None:
        """An open thread `t` of `ann`, and `bob` who is not on it."""
        await self.make_thread(store, "t")
        await store.update_thread("t", ThreadChanges(join_policy="open"), by="ann")
        await self.enrol(store, "bob", "carl")

    async def join(self, store: BubbleStore, name: str, role: str, *, by: str = "bob") -> None:
        """`by` gives a grant on `t`, with its own rights."""
        guard = await self.guard(store, by)
        await store.put_grant("t", name, role, by=by, appends=POLICY.role_appends(role), guard=guard)

    @pytest.mark.requirement("PR-5-15", "EV-38")
    @pytest.mark.parametrize("role", ["observer", "participant"])
    async def test_on_an_open_thread_anybody_joins_by_themselves(self, store: BubbleStore, role: str) -> None:
        await self.open_thread(store)
        await self.join(store, "bob", role)
        assert await store.get_role("t", "bob") == (role, "open")
        if role == "participant":
            assert (await self.log(store, "t"))[-1]["byPrincipalId"] == "bob"
            await store.append("t", a_start("run-1", "bob"), guard=await self.guard(store, "bob"))

    @pytest.mark.requirement("PR-5-16")
    async def test_on_an_open_thread_nobody_takes_more_or_gives_to_others(self, store: BubbleStore) -> None:
        await self.open_thread(store)
        for name, role in (("bob", "owner"), ("carl", "observer"), ("carl", "participant")):
            with pytest.raises(Forbidden):
                await self.join(store, name, role)
        await self.join(store, "bob", "participant")
        with pytest.raises(Forbidden):
            await self.join(store, "bob", "owner")

    @pytest.mark.requirement("PR-5-14", "PR-5-09")
    async def test_on_an_invite_only_thread_nobody_lets_themselves_in(self, store: BubbleStore) -> None:
        await self.make_thread(store, "t")
        await self.enrol(store, "bob")
        with pytest.raises(NotFound):
            await self.join(store, "bob", "observer")

    async def test_on_an_open_thread_an_outsider_does_not_append(self, store: BubbleStore) -> None:
        await self.open_thread(store)
        with pytest.raises(Forbidden):
            await store.append("t", a_start("run-1", "bob"), guard=await self.guard(store, "bob"))

    async def test_the_last_owner_does_not_demote_itself_by_joining(self, store: BubbleStore) -> None:
        await self.open_thread(store)
        with pytest.raises(Conflict):
            await self.join(store, "ann", "participant", by="ann")

    async def test_a_bearer_that_is_narrowed_does_not_join(self, store: BubbleStore) -> None:
        await self.open_thread(store)
        guard = await self.guard(store, "bob", capabilities=["thread.read"])
        with pytest.raises(BubbleError):
            await store.put_grant("t", "bob", "observer", by="bob", appends=False, guard=guard)

    async def test_closing_a_thread_raises_its_grant_version_and_lets_nobody_else_in(self, store: BubbleStore) -> None:
        await self.open_thread(store)
        before = await store.position("t")
        await store.update_thread("t", ThreadChanges(join_policy="invite"), by="ann")
        assert (await store.position("t")).grant_version > before.grant_version
        with pytest.raises(NotFound):
            await self.join(store, "bob", "observer")
