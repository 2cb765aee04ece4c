"""What every area of the suite starts from: a store of the backend, a clock that the test sets, people, short ways to say things."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from typing import Final, TypeVar

import pytest

from bubble.auth.identity import Identity
from bubble.auth.policy import Policy
from bubble.protocol.errors import BubbleError
from bubble.protocol.events import SequencedEvent, encoded
from bubble.protocol.jsontext import JSONValue
from bubble.protocol.resources import DeploymentRole, PrincipalKind
from bubble.protocol.timestamps import Clock
from bubble.store.admission import RunIntegrity
from bubble.store.base import BubbleStore
from bubble.store.commands import AppendCommand, Appended, AppendResult, Guard, IdempotencyKey
from bubble.store.notices import Notice
from bubble.store.records import NewPrincipal, NewThread, Participant

__all__ = [
    "FIRST_MS",
    "Event",
    "ManualClock",
    "Notices",
    "StoreCase",
    "a_call",
    "a_finish",
    "a_part",
    "a_start",
    "an_approval",
    "outcome_of",
    "patience",
    "submitted",
    "typed",
    "until",
]

Event = dict[str, JSONValue]
T = TypeVar("T")

FIRST_MS: Final = 1_778_070_896_789  # 2026-05-06T12:34:56.789Z
PATIENCE_SECONDS: Final = 30.0

POLICY: Final = Policy()


class ManualClock:
    """A clock that stands still until it is told otherwise (milliseconds since 1970)."""

    def __init__(self, now_ms: int = FIRST_MS) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms

    def advance(self, ms: int) -> None:
        """Moves on by `ms`; backwards where it is negative."""
        self.now_ms += ms


class Notices:
    """A listener that remembers. `groups` are what each call brought, `all` everything in order."""

    def __init__(self) -> None:
        self.groups: list[Sequence[Notice]] = []

    def __call__(self, notices: Sequence[Notice]) -> None:
        self.groups.append(list(notices))

    @property
    def all(self) -> list[Notice]:
        """Every notice so far."""
        return [notice for group in self.groups for notice in group]

    def of(self, kind: type[T]) -> list[T]:
        """The notices of one kind so far."""
        return [notice for notice in self.all if isinstance(notice, kind)]


class StoreCase(ABC):
    """Subclass an area of the suite (or all of it, `StoreSuite`), name the class `Test...`, and give `create_store`.

    Each test gets its own instance, so an autouse fixture of the subclass may put on `self` what `create_store` needs, for instance a
    folder.
    """

    @abstractmethod
    async def create_store(self, *, clock: Clock, run_integrity: RunIntegrity) -> BubbleStore:
        """An open, empty store of the backend under test. The suite closes it."""

    @pytest.fixture
    def anyio_backend(self) -> str:
        """The event loop of the suite."""
        return "asyncio"

    @pytest.fixture
    def clock(self) -> ManualClock:
        """The store's clock."""
        return ManualClock()

    @pytest.fixture
    async def store(self, clock: ManualClock) -> AsyncIterator[BubbleStore]:
        """An empty store that holds runs to their lifecycle."""
        async with await self.create_store(clock=clock, run_integrity="strict") as store:
            yield store

    @pytest.fixture
    async def lax_store(self, clock: ManualClock) -> AsyncIterator[BubbleStore]:
        """An empty store with `run_integrity` off."""
        async with await self.create_store(clock=clock, run_integrity="off") as store:
            yield store

    # --- people ---------------------------------------------------------------------------------------------------------------

    async def enrol(self, store: BubbleStore, *names: str, kind: PrincipalKind = "user") -> None:
        """Registers principals; bots belong to the user `keeper`, who is registered with the first."""
        for name in names:
            owner = "keeper" if kind == "bot" else None
            if owner is not None and "keeper" not in await self.everybody(store):
                await self.enrol(store, "keeper")
            new = NewPrincipal(principal_id=name, kind=kind, display_name=name.title(), owner_principal_id=owner)
            await store.create_principal(new)

    async def everybody(self, store: BubbleStore) -> set[str]:
        """The ids of all principals."""
        return {one.principal_id for one in (await store.list_principals(limit=1000)).principals}

    async def guard(
        self,
        store: BubbleStore,
        principal_id: str,
        *,
        capabilities: Sequence[str] | None = None,
        threads: Sequence[str] | None = None,
    ) -> Guard:
        """The rights of a registered principal, narrowed where asked."""
        return POLICY.guard(
            Identity(
                principal=await store.get_principal(principal_id),
                source="token",
                capabilities=None if capabilities is None else frozenset(capabilities),
                threads=None if threads is None else frozenset(threads),
            )
        )

    async def make_thread(self, store: BubbleStore, thread_id: str, *, owner: str = "ann", **roles: str) -> None:
        """A thread of `owner` with further principals in their roles, all of them registered here unless they are already."""
        known = await self.everybody(store)
        await self.enrol(store, *({owner, *roles} - known))
        participants = [
            Participant(principal_id=name, role=role, appends=POLICY.role_appends(role)) for name, role in roles.items()
        ]
        await store.create_thread(NewThread(thread_id=thread_id, creator=owner, participants=participants))

    async def make_admin(self, store: BubbleStore, name: str, *, role: DeploymentRole = "admin") -> None:
        """Registers a deployment admin."""
        await store.create_principal(
            NewPrincipal(principal_id=name, kind="user", display_name=name.title(), deployment_role=role)
        )

    # --- reading --------------------------------------------------------------------------------------------------------------

    async def texts(self, store: BubbleStore, thread_id: str) -> Sequence[bytes]:
        """The whole thread as it is stored."""
        return await store.read(thread_id, from_seq=1, to_seq=2**53 - 1, limit=10**9, max_bytes=2**40)

    async def log(self, store: BubbleStore, thread_id: str) -> list[Event]:
        """The whole thread as plain data."""
        return [SequencedEvent.from_stored(text).to_dict() for text in await self.texts(store, thread_id)]

    async def types(self, store: BubbleStore, thread_id: str) -> list[JSONValue]:
        """The types of the thread's events."""
        return [event["type"] for event in await self.log(store, thread_id)]


# --- events -----------------------------------------------------------------------------------------------------------------------


def a_start(run_id: str = "run-1", principal_id: str = "ann", **members: JSONValue) -> Event:
    """A `run_started`."""
    return {"type": "run_started", "principalId": principal_id, "runId": run_id, **members}


def a_part(run_id: str = "run-1", principal_id: str = "ann", delta: JSONValue = "x") -> Event:
    """A `message_part`."""
    part: Event = {"type": "text-delta", "id": "t", "delta": delta}
    return {"type": "message_part", "principalId": principal_id, "runId": run_id, "part": part, "version": "ai-sdk-v6"}


def a_finish(run_id: str = "run-1", principal_id: str = "ann", **members: JSONValue) -> Event:
    """A `run_finished`."""
    return {"type": "run_finished", "principalId": principal_id, "runId": run_id, **members}


def a_call(kind: str, run_id: str = "run-1", principal_id: str = "bob", call_id: str = "call-1") -> Event:
    """A `tool_call_result` or a `run_interrupt_requested`."""
    event: Event = {"type": kind, "principalId": principal_id, "runId": run_id}
    if kind == "tool_call_result":
        event |= {"toolCallId": call_id, "input": {}, "output": 7}
    return event


def an_approval(
    run_id: str = "run-1", principal_id: str = "bob", call_id: str = "call-1", *, approved: bool = True
) -> Event:
    """A `tool_call_approval`."""
    return {
        "type": "tool_call_approval",
        "principalId": principal_id,
        "runId": run_id,
        "toolCallId": call_id,
        "approved": approved,
    }


def typed(event: object) -> str:
    """The type of an event in wire form, for test ids."""
    return str(event["type"]) if isinstance(event, dict) else str(event)


# --- waiting ----------------------------------------------------------------------------------------------------------------------


def patience() -> asyncio.Timeout:
    """Around what is certain to happen: a `TimeoutError` tells that it did not."""
    return asyncio.timeout(PATIENCE_SECONDS)


async def until(happened: asyncio.Event) -> None:
    """Waits for something that is certain to happen."""
    async with patience():
        await happened.wait()


def submitted(
    store: BubbleStore,
    thread_id: str,
    *events: Event,
    guard: Guard | None = None,
    idempotency: IdempotencyKey | None = None,
    expected_head: int | None = None,
    create: bool = True,
    failures_only: bool = False,
) -> asyncio.Future[AppendResult]:
    """Submits an append without waiting; the future has its outcome."""
    outcome: asyncio.Future[AppendResult] = asyncio.get_running_loop().create_future()
    store.submit(
        AppendCommand(
            thread_id=thread_id,
            events=[encoded(event) for event in events],
            done=outcome.set_result,
            guard=guard,
            idempotency=idempotency,
            expected_head=expected_head,
            create=create,
            failures_only=failures_only,
        )
    )
    return outcome


async def outcome_of(future: asyncio.Future[AppendResult]) -> Appended:
    """What was stored; raises what the append was refused with."""
    async with patience():
        result = await future
    if isinstance(result, BubbleError):
        raise result
    return result
