"""`Authenticator`: what it answers from memory and for how long, and whom it finds to be no longer valid."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Mapping, Sequence

import pytest

from bubble.auth.authenticator import Authenticator
from bubble.auth.changes import Changes
from bubble.auth.identity import Identity
from bubble.auth.identity_cache import MAX_AGE_MS, IdentityCache
from bubble.auth.last_uses import LastUses
from bubble.protocol.errors import Forbidden, Unauthenticated, Unavailable
from bubble.protocol.resources import Principal
from bubble.store.memory import MemoryStore
from bubble.store.records import Credential, CredentialKind, CredentialState, PrincipalChanges
from tests.auth.actors import NOW, PEOPLE, Clock, House, a_house
from tests.auth.issuers import SigningKey, claims, settings

pytestmark = pytest.mark.anyio

KEY = SigningKey("k1")


class WatchedStore(MemoryStore):
    """Counts looks at credentials, can hold one up on its way back, can be out of reach, can be shared with other servers."""

    def __init__(self, *, clock: Clock) -> None:
        super().__init__(clock=clock)
        self.looks = 0
        self.states_asked = 0
        self.principals_asked = 0
        self.is_down = False
        self.held: asyncio.Event | None = None
        self.holds = asyncio.Event()

    async def find_credential(self, kind: CredentialKind, secret_hash: bytes) -> tuple[Credential, Principal] | None:
        self._check()
        self.looks += 1
        found = await super().find_credential(kind, secret_hash)
        if self.held is not None:
            self.holds.set()
            await self.held.wait()
        return found

    async def credential_states(self, credential_ids: Sequence[str]) -> Mapping[str, CredentialState]:
        self._check()
        self.states_asked += len(credential_ids)
        return await super().credential_states(credential_ids)

    async def get_principal(self, principal_id: str) -> Principal:
        self.principals_asked += 1
        return await super().get_principal(principal_id)

    async def touch_credentials(self, used: Mapping[str, int]) -> None:
        self._check()
        await super().touch_credentials(used)

    def _check(self) -> None:
        if self.is_down:
            raise Unavailable("The store is out of reach.")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def store(clock: Clock) -> WatchedStore:
    it = WatchedStore(clock=clock)
    for person in PEOPLE:
        await it.create_principal(person)
    return it


async def token_of(authenticator: Authenticator, store: WatchedStore, principal_id: str) -> str:
    admin = Identity(principal=await store.get_principal("admin"), source="token")
    return (await authenticator.mint_token(principal_id, by=admin)).token


# --- from memory ----------------------------------------------------------------------------------------------------------------


async def test_a_bearer_is_looked_up_once_a_second(store: WatchedStore, clock: Clock) -> None:
    async with Authenticator(store, clock=clock) as authenticator:
        token = await token_of(authenticator, store, "ann")
        assert authenticator.known(token) is None
        first = await authenticator.authenticate(token)
        clock.pass_ms(MAX_AGE_MS - 1)
        assert authenticator.known(token) is first
        assert await authenticator.authenticate(token) is first
        assert store.looks == 1
        clock.pass_ms(1)
        assert authenticator.known(token) is None
        assert await authenticator.authenticate(token) is not first
        assert store.looks == 2


async def test_a_clock_that_is_set_back_makes_no_answer_last_longer(store: WatchedStore, clock: Clock) -> None:
    async with Authenticator(store, clock=clock) as authenticator:
        token = await token_of(authenticator, store, "ann")
        await authenticator.authenticate(token)
        clock.pass_ms(-1)
        assert authenticator.known(token) is None


async def test_before_the_start_and_after_the_end_nothing_is_answered_from_memory(
    store: WatchedStore, clock: Clock
) -> None:
    authenticator = Authenticator(store, clock=clock)
    token = await token_of(authenticator, store, "ann")
    await authenticator.authenticate(token)
    assert authenticator.known(token) is None
    await authenticator.start()
    assert authenticator.known(token) is None
    await authenticator.authenticate(token)
    assert authenticator.known(token) is not None
    await authenticator.close()
    assert authenticator.known(token) is None


@pytest.mark.requirement("PR-4-10")
@pytest.mark.parametrize("how", ["revoked", "disabled", "demoted"])
async def test_nothing_that_changed_is_answered_from_memory(house: House, how: str) -> None:
    minted = await house.authenticator.mint_token("admin", by=await house.admin())
    await house.authenticator.authenticate(minted.token)
    assert house.authenticator.known(minted.token) is not None
    if how == "revoked":
        await house.store.revoke_credential("admin", minted.token_id)
    elif how == "disabled":
        await house.store.update_principal("admin", PrincipalChanges(disabled=True))
    else:
        await house.store.update_principal("admin", PrincipalChanges(deployment_role="user"))
    await asyncio.sleep(0)  # one turn: the store tells of a commit in the next
    assert house.authenticator.known(minted.token) is None


async def test_an_answer_that_a_revocation_overtook_is_not_kept(store: WatchedStore, clock: Clock) -> None:
    async with Authenticator(store, clock=clock) as authenticator:
        token = await token_of(authenticator, store, "ann")
        (credential,) = await store.list_credentials("ann", "token")
        store.held = asyncio.Event()
        looking = asyncio.create_task(authenticator.authenticate(token))
        async with asyncio.timeout(5):
            await store.holds.wait()
        await store.revoke_credential("ann", credential.credential_id)
        await asyncio.sleep(0)
        store.held.set()
        await looking
        assert authenticator.known(token) is None
        store.held = None
        with pytest.raises(Unauthenticated):
            await authenticator.authenticate(token)


async def test_memory_is_bounded_and_holds_no_secret(clock: Clock, store: WatchedStore) -> None:
    changes = Changes()
    changes.listen(store)
    cache = IdentityCache(changes, clock=clock, max_entries=3)
    ann = Identity(principal=await store.get_principal("ann"), source="token")
    for number in range(10):
        cache.put(f"secret-{number}", ann, changes=changes.count)
    assert len(cache) == 3
    assert [number for number in range(10) if cache.get(f"secret-{number}")] == [7, 8, 9]
    assert "secret" not in repr(vars(cache))
    changes.stop()


async def test_what_is_refused_is_not_remembered(store: WatchedStore, clock: Clock) -> None:
    async with Authenticator(store, clock=clock) as authenticator:
        for _ in range(3):
            with pytest.raises(Unauthenticated):
                await authenticator.authenticate("bubble_user_guess")
        assert store.looks == 3
        counted = authenticator.statistics()
        assert (counted.refused, counted.resolved, counted.cached) == (3, 0, 0)


async def test_a_store_out_of_reach_is_not_taken_for_a_wrong_bearer(store: WatchedStore, clock: Clock) -> None:
    async with Authenticator(store, clock=clock) as authenticator:
        token = await token_of(authenticator, store, "ann")
        store.is_down = True
        with pytest.raises(Unavailable):
            await authenticator.authenticate(token)
        with pytest.raises(Unavailable):
            await authenticator.authenticate_session(token)
        store.is_down = False


async def test_last_uses_that_could_not_be_written_are_written_later(store: WatchedStore, clock: Clock) -> None:
    uses = LastUses(store)
    async with Authenticator(store, clock=clock) as authenticator:
        await token_of(authenticator, store, "ann")
    (credential,) = await store.list_credentials("ann", "token")
    uses.note(credential, now_ms=NOW)
    store.is_down = True
    with pytest.raises(Unavailable):
        await uses.write()
    store.is_down = False
    await uses.write()
    (credential,) = await store.list_credentials("ann", "token")
    assert credential.last_used_ms == NOW


async def test_closing_leaves_no_task_and_can_be_done_twice(store: WatchedStore, clock: Clock) -> None:
    before = asyncio.all_tasks()
    authenticator = Authenticator(store, clock=clock)
    await authenticator.start()
    await authenticator.start()
    assert len(asyncio.all_tasks() - before) == 1
    await authenticator.close()
    await authenticator.close()
    assert asyncio.all_tasks() == before


# --- refresh --------------------------------------------------------------------------------------------------------------------


async def test_a_refresh_by_the_same_principal_gives_the_new_bearers_identity(house: House) -> None:
    old = await house.identity_of("ann", expires_ms=NOW + 60_000)
    new = await house.authenticator.refresh(old, await house.token_of("ann", expires_ms=NOW + 90_000))
    assert new.expires_ms == NOW + 90_000
    assert new.credential_id != old.credential_id


async def test_a_refresh_by_another_principal_is_forbidden(house: House) -> None:
    with pytest.raises(Forbidden):
        await house.authenticator.refresh(await house.identity_of("ann"), await house.token_of("ben"))


async def test_a_refresh_by_an_invalid_token_is_unauthenticated(house: House) -> None:
    ann = await house.identity_of("ann")
    with pytest.raises(Unauthenticated):
        await house.authenticator.refresh(ann, "bubble_user_nobody")
    assert await house.authenticator.find_invalid([ann]) == set()


# --- the sweep ------------------------------------------------------------------------------------------------------------------


async def test_identities_end_by_expiry_by_revocation_and_with_their_principal() -> None:
    async with a_house(jwt=settings(KEY)) as house:
        authenticator = house.authenticator
        minted = await authenticator.mint_token("ann", by=await house.admin())
        lasting = await house.identity_of("ann")
        expiring = await house.identity_of("ann", expires_ms=NOW + 5_000)
        revoked = await authenticator.authenticate(minted.token)
        session = (await authenticator.start_session(by=lasting)).identity
        of_disabled = await house.identity_of("ben")
        jwt = await authenticator.authenticate(KEY.sign(claims("zoe")))
        jwt_of_disabled = await authenticator.authenticate(KEY.sign(claims("zed")))
        everybody = [lasting, expiring, revoked, session, of_disabled, jwt, jwt_of_disabled]
        assert await authenticator.find_invalid(everybody) == set()

        house.clock.pass_ms(4_999)
        await authenticator.revoke_token("ann", minted.token_id, by=await house.admin())
        await authenticator.end_session(session)
        await house.store.update_principal("ben", PrincipalChanges(disabled=True))
        await house.store.update_principal("corp:zed", PrincipalChanges(disabled=True))
        await asyncio.sleep(0)
        assert await authenticator.find_invalid(everybody) == {revoked, session, of_disabled, jwt_of_disabled}

        house.clock.pass_ms(1)
        assert await authenticator.find_invalid([lasting, expiring, jwt]) == {expiring}

        house.clock.now = jwt.expires_ms or 0
        assert await authenticator.find_invalid([lasting, jwt]) == {jwt}


async def test_an_admin_who_is_none_any_more_has_to_come_in_again(house: House) -> None:
    admin, ann = await house.identity_of("admin"), await house.identity_of("ann")
    await house.store.update_principal("admin", PrincipalChanges(deployment_role="user"))
    await house.store.update_principal("ann", PrincipalChanges(deployment_role="admin"))
    await asyncio.sleep(0)
    assert await house.authenticator.find_invalid([admin, ann]) == {admin}


async def test_a_sweep_asks_the_store_only_after_a_change(store: WatchedStore, clock: Clock) -> None:
    async with Authenticator(store, clock=clock) as authenticator:
        identities = [await authenticator.authenticate(await token_of(authenticator, store, "ann")) for _ in range(10)]
        for _ in range(5):
            assert await authenticator.find_invalid(identities) == set()
        assert store.states_asked == 10
        await store.update_principal("ben", PrincipalChanges(disabled=True))
        await asyncio.sleep(0)
        for _ in range(5):
            assert await authenticator.find_invalid(identities) == set()
        assert store.states_asked == 20


async def test_a_sweep_that_a_change_overtakes_is_not_the_last_word(store: WatchedStore, clock: Clock) -> None:
    async with Authenticator(store, clock=clock) as authenticator:
        token = await token_of(authenticator, store, "ann")
        (credential,) = await store.list_credentials("ann", "token")
        store.held = asyncio.Event()
        looking = asyncio.create_task(authenticator.authenticate(token))
        async with asyncio.timeout(5):
            await store.holds.wait()
        await store.revoke_credential("ann", credential.credential_id)
        await asyncio.sleep(0)
        # A sweep in between does not know of the connection that is about to open.
        assert await authenticator.find_invalid([]) == set()
        store.held.set()
        late = await looking
        assert await authenticator.find_invalid([late]) == {late}


async def test_where_other_servers_share_the_data_every_sweep_asks(
    store: WatchedStore, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WatchedStore, "is_shared", True)
    async with Authenticator(store, clock=clock) as authenticator:
        ann = await authenticator.authenticate(await token_of(authenticator, store, "ann"))
        for _ in range(3):
            assert await authenticator.find_invalid([ann]) == set()
        assert store.states_asked == 3


async def test_a_sweep_that_failed_is_made_good_by_the_next(store: WatchedStore, clock: Clock) -> None:
    async with Authenticator(store, clock=clock) as authenticator:
        ann = await authenticator.authenticate(await token_of(authenticator, store, "ann"))
        (credential,) = await store.list_credentials("ann", "token")
        await store.revoke_credential("ann", credential.credential_id)
        await asyncio.sleep(0)
        store.is_down = True
        with pytest.raises(Unavailable):
            await authenticator.find_invalid([ann])
        store.is_down = False
        assert await authenticator.find_invalid([ann]) == {ann}


async def test_a_closed_connections_identity_is_not_held_on_to(store: WatchedStore, clock: Clock) -> None:
    async with Authenticator(store, clock=clock) as authenticator:
        ann = await authenticator.authenticate(await token_of(authenticator, store, "ann"))
        await authenticator.find_invalid([ann])
        assert len(authenticator._revalidation._good_at) == 1
        clock.pass_ms(MAX_AGE_MS)
        del ann
        authenticator.known("anything")
        authenticator._known._entries.clear()
        gc.collect()
        assert len(authenticator._revalidation._good_at) == 0


async def test_an_identity_whose_principal_has_metadata_stands_in_a_set(house: House) -> None:
    await house.store.update_principal("ann", PrincipalChanges(metadata={"team": ["a"]}))
    ann, again = await house.identity_of("ann"), await house.identity_of("ann")
    assert len({ann, again}) == 2
