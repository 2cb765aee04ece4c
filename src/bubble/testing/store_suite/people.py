"""Principals, linked identities and credentials (protocol, section 4)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from hashlib import sha256
from typing import Literal

import pytest
from msgspec import UNSET

from bubble.protocol.errors import Conflict, InvalidRequest, NotFound
from bubble.protocol.timestamps import format_ms
from bubble.store.base import BubbleStore
from bubble.store.notices import CredentialsChanged
from bubble.store.records import Credential, CredentialKind, NewPrincipal, PrincipalChanges
from bubble.testing.store_suite.base import FIRST_MS, ManualClock, Notices, StoreCase

__all__ = ["CredentialPromises", "PrincipalPromises"]


def a_credential(
    name: str,
    *,
    kind: CredentialKind = "token",
    principal_id: str = "ann",
    parent: str | None = None,
    expires_ms: int | None = None,
    created_ms: int = FIRST_MS,
) -> Credential:
    """A credential whose secret is its name."""
    return Credential(
        credential_id=name,
        kind=kind,
        secret_hash=sha256(name.encode()).digest(),
        principal_id=principal_id,
        created_ms=created_ms,
        expires_ms=expires_ms,
        parent_id=parent,
    )


def hash_of(name: str) -> bytes:
    """The hash of the secret of `a_credential(name)`."""
    return sha256(name.encode()).digest()


@pytest.mark.anyio
class PrincipalPromises(StoreCase):
    """What the methods about principals promise."""

    @pytest.mark.requirement("PR-4-01", "PR-4-02")
    async def test_a_principal_is_kept_as_it_was_registered(self, store: BubbleStore, clock: ManualClock) -> None:
        await self.enrol(store, "ann")
        clock.advance(5)
        bot = await store.create_principal(
            NewPrincipal(
                principal_id="bot",
                kind="bot",
                display_name="Bøt 🤖",
                owner_principal_id="ann",
                metadata={"model": "x", "n": [1, None]},
            )
        )
        assert (bot.kind, bot.display_name, bot.owner_principal_id, bot.metadata, bot.created_at) == (
            *("bot", "Bøt 🤖", "ann", {"model": "x", "n": [1, None]}),
            format_ms(FIRST_MS + 5),
        )
        assert (bot.disabled_at, bot.deployment_role) == (UNSET, "user")
        assert await store.get_principal("bot") == bot

    @pytest.mark.parametrize("kind", ["user", "system"])
    async def test_users_and_parts_of_the_system_have_no_owner(
        self, store: BubbleStore, kind: Literal["user", "system"]
    ) -> None:
        one = await store.create_principal(NewPrincipal(principal_id="one", kind=kind, display_name="One"))
        assert (one.owner_principal_id, one.metadata) == (UNSET, UNSET)

    @pytest.mark.requirement("PR-4-02")
    @pytest.mark.parametrize(
        ("new", "error"),
        [
            (NewPrincipal(principal_id="ann", kind="user", display_name="x"), Conflict),
            (NewPrincipal(principal_id="x", kind="bot", display_name="x"), InvalidRequest),
            (NewPrincipal(principal_id="x", kind="bot", display_name="x", owner_principal_id="ghost"), NotFound),
            (NewPrincipal(principal_id="x", kind="bot", display_name="x", owner_principal_id="bot"), InvalidRequest),
            (NewPrincipal(principal_id="x", kind="user", display_name="x", owner_principal_id="ann"), InvalidRequest),
            (NewPrincipal(principal_id="", kind="user", display_name="x"), InvalidRequest),
        ],
        ids=["taken", "no owner", "unknown owner", "owner is a bot", "owned user", "id"],
    )
    async def test_a_principal_that_cannot_be_is_refused(
        self, store: BubbleStore, new: NewPrincipal, error: type[Exception]
    ) -> None:
        await self.enrol(store, "ann")
        await self.enrol(store, "bot", kind="bot")
        before = await store.list_principals()
        with pytest.raises(error):
            await store.create_principal(new)
        assert await store.list_principals() == before

    async def test_an_update_changes_what_it_names_and_nothing_else(self, store: BubbleStore) -> None:
        await self.enrol(store, "ann")
        before = await store.get_principal("ann")
        assert await store.update_principal("ann", PrincipalChanges()) == before
        renamed = await store.update_principal("ann", PrincipalChanges(display_name="Anne", metadata={"a": 1}))
        assert (renamed.display_name, renamed.metadata, renamed.created_at) == ("Anne", {"a": 1}, before.created_at)
        cleared = await store.update_principal("ann", PrincipalChanges(metadata=None))
        assert (cleared.display_name, cleared.metadata) == ("Anne", UNSET)
        assert await store.get_principal("ann") == cleared
        with pytest.raises(NotFound):
            await store.update_principal("ghost", PrincipalChanges(display_name="x"))
        with pytest.raises(NotFound):
            await store.get_principal("ghost")

    @pytest.mark.requirement("PR-8-21", "PR-4-43")
    async def test_disabling_and_enabling_are_dated_and_told(self, store: BubbleStore, clock: ManualClock) -> None:
        await self.enrol(store, "ann")
        notices = Notices()
        store.listen(notices)
        clock.advance(5)
        disabled = await store.update_principal("ann", PrincipalChanges(disabled=True))
        assert disabled.disabled_at == format_ms(FIRST_MS + 5)
        clock.advance(5)
        again = await store.update_principal("ann", PrincipalChanges(disabled=True))
        assert again.disabled_at == disabled.disabled_at
        assert notices.all == [CredentialsChanged("ann")]
        assert (await store.update_principal("ann", PrincipalChanges(disabled=False))).disabled_at is UNSET
        assert notices.all == [CredentialsChanged("ann")] * 2

    @pytest.mark.requirement("PR-5-07")
    async def test_another_deployment_role_is_told(self, store: BubbleStore) -> None:
        await self.make_admin(store, "root")
        notices = Notices()
        store.listen(notices)
        assert (
            await store.update_principal("root", PrincipalChanges(deployment_role="user"))
        ).deployment_role == "user"
        await store.update_principal("root", PrincipalChanges(display_name="x"))
        assert notices.all == [CredentialsChanged("root")]

    @pytest.mark.requirement("PR-6-40")
    async def test_principals_are_paged_by_id_and_kept_by_owner(self, store: BubbleStore) -> None:
        await self.enrol(store, "zoe", "keeper", "ann")
        await self.enrol(store, "bot-2", "bot-1", kind="bot")
        for owner, expected in (
            (None, ["ann", "bot-1", "bot-2", "keeper", "zoe"]),
            ("keeper", ["bot-1", "bot-2"]),
            ("zoe", []),
        ):
            found: list[str] = []
            after: str | None = None
            while True:
                page = await store.list_principals(owner=owner, after=after, limit=2)
                found += [one.principal_id for one in page.principals]
                after = page.next_after
                if after is None:
                    break
            assert found == expected
        with pytest.raises(InvalidRequest):
            await store.list_principals(after="!")
        with pytest.raises(InvalidRequest):
            await store.list_principals(limit=0)

    @pytest.mark.requirement("PR-4-18")
    async def test_an_external_identity_is_linked_to_one_principal(self, store: BubbleStore) -> None:
        await self.enrol(store, "ann", "bob")
        assert await store.find_identity("https://issuer", "sub") is None
        for _ in range(2):
            await store.link_identity("https://issuer", "sub", "ann")
        await store.link_identity("https://issuer", "sub2", "ann")
        await store.link_identity("https://other", "sub", "bob")
        with pytest.raises(Conflict):
            await store.link_identity("https://issuer", "sub", "bob")
        with pytest.raises(NotFound):
            await store.link_identity("https://issuer", "sub3", "ghost")
        found = [await store.find_identity(*one) for one in (("https://issuer", "sub"), ("https://other", "sub"))]
        assert [one and one.principal_id for one in found] == ["ann", "bob"]


@pytest.mark.anyio
class CredentialPromises(StoreCase):
    """What the methods about credentials promise. Only hashes of secrets come near a store."""

    async def states(self, store: BubbleStore, *names: str) -> list[str | None]:
        """The states of credentials, None for one that does not exist."""
        states = await store.credential_states(names)
        return [states.get(name) for name in names]

    @pytest.mark.parametrize("kind", ["token", "session", "ticket", "login"])
    async def test_a_credential_is_found_by_kind_and_hash_as_it_was_kept(
        self, store: BubbleStore, kind: CredentialKind
    ) -> None:
        await self.enrol(store, "ann")
        await store.add_credential(a_credential("parent"))
        kept = replace(
            a_credential("one", kind=kind, parent="parent", expires_ms=FIRST_MS + 9),
            name="laptop",
            capabilities=("thread.read", "events.subscribe"),
            threads=("t",),
        )
        await store.add_credential(kept)
        assert await store.find_credential(kind, hash_of("one")) == (kept, await store.get_principal("ann"))
        assert await store.find_credential(kind, hash_of("two")) is None
        others: list[CredentialKind] = ["token", "session", "ticket", "login"]
        for other in others:
            if other != kind:
                assert await store.find_credential(other, hash_of("one")) is None

    async def test_a_narrowing_to_nothing_is_kept_apart_from_none(self, store: BubbleStore) -> None:
        await self.enrol(store, "ann")
        await store.add_credential(replace(a_credential("one"), capabilities=(), threads=()))
        found = await store.find_credential("token", hash_of("one"))
        assert found is not None
        assert (found[0].capabilities, found[0].threads) == ((), ())

    async def test_a_credential_needs_a_principal_a_parent_and_a_hash_of_its_own(self, store: BubbleStore) -> None:
        await self.enrol(store, "ann")
        await store.add_credential(a_credential("one"))
        for refused, error in (
            (a_credential("two", principal_id="ghost"), NotFound),
            (a_credential("two", parent="ghost"), NotFound),
            (replace(a_credential("two"), credential_id="one"), Conflict),
            (replace(a_credential("two"), secret_hash=hash_of("one")), Conflict),
        ):
            with pytest.raises(error):
                await store.add_credential(refused)
        assert await self.states(store, "one", "two") == ["valid", None]

    @pytest.mark.requirement("PR-6-41")
    async def test_credentials_are_listed_newest_first_by_principal_and_kind(self, store: BubbleStore) -> None:
        await self.enrol(store, "ann", "bob")
        for number, name in enumerate(("a", "b", "c")):
            await store.add_credential(a_credential(name, created_ms=FIRST_MS + number))
        await store.add_credential(a_credential("d", kind="session"))
        await store.add_credential(a_credential("e", principal_id="bob"))
        await store.revoke_credential("ann", "b")
        assert [one.credential_id for one in await store.list_credentials("ann", "token")] == ["c", "b", "a"]
        assert [one.credential_id for one in await store.list_credentials("bob", "token")] == ["e"]
        assert list(await store.list_credentials("bob", "session")) == []

    @pytest.mark.requirement("PR-4-08")
    async def test_a_credential_ends_at_its_expiry(self, store: BubbleStore, clock: ManualClock) -> None:
        await self.enrol(store, "ann")
        await store.add_credential(a_credential("one", expires_ms=FIRST_MS + 1_000))
        clock.advance(999)
        assert await self.states(store, "one") == ["valid"]
        clock.advance(1)
        assert await self.states(store, "one") == ["expired"]

    @pytest.mark.requirement("PR-4-10", "PR-4-35")
    async def test_a_revocation_ends_everything_made_from_it_and_is_told(
        self, store: BubbleStore, clock: ManualClock
    ) -> None:
        await self.enrol(store, "ann", "bob")
        for credential in (
            a_credential("root"),
            a_credential("child", parent="root", principal_id="bob"),
            a_credential("grandchild", parent="child", kind="session"),
            a_credential("sibling"),
        ):
            await store.add_credential(credential)
        notices = Notices()
        store.listen(notices)
        clock.advance(5)
        await store.revoke_credential("ann", "root")
        assert await self.states(store, "root", "child", "grandchild", "sibling") == ["revoked"] * 3 + ["valid"]
        assert {one.principal_id for one in notices.of(CredentialsChanged)} == {"ann", "bob"}
        clock.advance(5)
        await store.revoke_credential("ann", "root")
        found = await store.find_credential("token", hash_of("root"))
        assert found is not None
        assert found[0].revoked_ms == FIRST_MS + 5

    @pytest.mark.requirement("PR-6-41")
    async def test_only_a_principals_own_credential_is_revoked_under_it(self, store: BubbleStore) -> None:
        await self.enrol(store, "ann", "bob")
        await store.add_credential(a_credential("one"))
        for principal_id, name in (("bob", "one"), ("ann", "two"), ("ghost", "one")):
            with pytest.raises(NotFound):
                await store.revoke_credential(principal_id, name)
        assert await self.states(store, "one") == ["valid"]

    @pytest.mark.requirement("PR-4-35")
    async def test_a_credential_lives_no_longer_than_what_it_was_made_from(
        self, store: BubbleStore, clock: ManualClock
    ) -> None:
        await self.enrol(store, "ann")
        await store.add_credential(a_credential("root", expires_ms=FIRST_MS + 1_000))
        await store.add_credential(a_credential("child", parent="root", expires_ms=FIRST_MS + 9_000))
        clock.advance(1_000)
        assert await self.states(store, "root", "child") == ["expired", "expired"]

    @pytest.mark.requirement("PR-8-21")
    async def test_a_disabled_principal_has_no_valid_credential_and_neither_has_what_it_made(
        self, store: BubbleStore
    ) -> None:
        await self.enrol(store, "ann", "bob")
        await store.add_credential(a_credential("root"))
        await store.add_credential(a_credential("child", parent="root", principal_id="bob"))
        await store.add_credential(a_credential("other", principal_id="bob"))
        await store.update_principal("ann", PrincipalChanges(disabled=True))
        assert await self.states(store, "root", "child", "other") == ["disabled", "disabled", "valid"]
        await store.update_principal("ann", PrincipalChanges(disabled=False))
        assert await self.states(store, "root", "child", "other") == ["valid"] * 3

    @pytest.mark.requirement("PR-4-26", "PR-4-32")
    @pytest.mark.parametrize("kind", ["ticket", "login"])
    async def test_of_many_who_consume_one_gets_it(self, store: BubbleStore, kind: Literal["ticket", "login"]) -> None:
        await self.enrol(store, "ann")
        kept = a_credential("one", kind=kind, expires_ms=FIRST_MS + 30_000)
        await store.add_credential(kept)
        results = await asyncio.gather(*(store.consume_credential(kind, hash_of("one")) for _ in range(20)))
        assert [result for result in results if result is not None] == [(kept, await store.get_principal("ann"))]
        assert await self.states(store, "one") == ["spent"]
        assert await store.consume_credential(kind, hash_of("ghost")) is None

    async def test_only_the_right_kind_is_consumed(self, store: BubbleStore) -> None:
        await self.enrol(store, "ann")
        await store.add_credential(a_credential("one", kind="ticket"))
        await store.add_credential(a_credential("two", kind="token"))
        assert await store.consume_credential("login", hash_of("one")) is None
        assert await store.consume_credential("ticket", hash_of("two")) is None
        assert await self.states(store, "one", "two") == ["valid", "valid"]

    async def test_what_was_made_from_a_one_use_credential_outlives_it_but_not_its_revocation(
        self, store: BubbleStore, clock: ManualClock
    ) -> None:
        await self.enrol(store, "ann")
        await store.add_credential(a_credential("token"))
        await store.add_credential(a_credential("login", kind="login", parent="token", expires_ms=FIRST_MS + 1_000))
        await store.consume_credential("login", hash_of("login"))
        await store.add_credential(a_credential("session", kind="session", parent="login"))
        clock.advance(60_000)
        await store.purge(idempotency_ms=0)
        assert await self.states(store, "session") == ["valid"]
        await store.revoke_credential("ann", "token")
        assert await self.states(store, "session") == ["revoked"]

    async def test_a_purge_forgets_one_use_credentials_that_are_done_with_and_no_others(
        self, store: BubbleStore, clock: ManualClock
    ) -> None:
        await self.enrol(store, "ann")
        for name, kind, expires_ms in (
            ("spent", "ticket", None),
            ("late", "login", FIRST_MS + 10),
            ("fresh", "ticket", FIRST_MS + 99_000),
            ("token", "token", FIRST_MS + 10),
            ("session", "session", FIRST_MS + 10),
        ):
            kinds: dict[str, CredentialKind] = {"ticket": "ticket", "login": "login", "token": "token"}
            await store.add_credential(a_credential(name, kind=kinds.get(kind, "session"), expires_ms=expires_ms))
        await store.consume_credential("ticket", hash_of("spent"))
        clock.advance(1_000)
        await store.purge(idempotency_ms=0)
        assert await self.states(store, "spent", "late", "fresh", "token", "session") == [
            *(None, None, "valid", "expired", "expired")
        ]

    @pytest.mark.requirement("PR-4-09")
    async def test_the_last_use_is_noted_and_never_earlier(self, store: BubbleStore) -> None:
        await self.enrol(store, "ann")
        await store.add_credential(a_credential("one"))
        for ms in (FIRST_MS + 7, FIRST_MS + 3):
            await store.touch_credentials({"one": ms, "ghost": ms})
        found = await store.find_credential("token", hash_of("one"))
        assert found is not None
        assert found[0].last_used_ms == FIRST_MS + 7
