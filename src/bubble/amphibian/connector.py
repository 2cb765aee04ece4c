"""`Connector`: one bot on all of its threads (spec 5, "High-level topology" and "Joining Bubble as a principal")."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Final

import anyio

from bubble.amphibian.agents import Agent
from bubble.amphibian.backlog import BacklogPolicy
from bubble.amphibian.driver import DriverServices, ThreadDriver
from bubble.amphibian.receipts import Receipts
from bubble.amphibian.store import AmphibianStore
from bubble.assembler import Assembler, create_assembler
from bubble.client import BubbleConnection
from bubble.client.supervision import beside
from bubble.protocol.errors import Forbidden
from bubble.protocol.frames import GrantsChanged

__all__ = ["Connector"]

# Within 10 seconds in all: the drivers, which may take about 8, then the last receipts.
_SHUTDOWN_SECONDS: Final = 8.5
_RECEIPTS_SECONDS: Final = 0.5

_logger = logging.getLogger("bubble.amphibian")


@dataclass(frozen=True, slots=True)
class _Seat:
    """Where a driver is at work."""

    driver: ThreadDriver
    task: asyncio.Task[None]


class Connector:
    """Lets `agent` take part in every thread on which `principal_id` holds a grant that is more than an observer's.

    `await run()` lasts until `stop` is set. The connection and the store are the caller's.
    """

    def __init__(
        self,
        agent: Agent,
        *,
        bubble: BubbleConnection,
        principal_id: str,
        store: AmphibianStore,
        policy: BacklogPolicy | None = None,
        max_bot_turns: int = 8,
        assembler: Assembler | None = None,
    ) -> None:
        self._bubble = bubble
        self._principal_id = principal_id
        self._receipts = Receipts(bubble.advance_cursor)
        self._services = DriverServices(
            bubble=bubble,
            store=store,
            agent=agent,
            own_id=principal_id,
            assembler=assembler or create_assembler(),
            policy=policy or BacklogPolicy(),
            max_bot_turns=max_bot_turns,
            receipt=self._receipts.note,
        )
        self._seats: dict[str, _Seat] = {}
        self._news = asyncio.Event()
        self._failure: asyncio.Future[None] | None = None

    @property
    def drivers(self) -> Mapping[str, ThreadDriver]:
        """The drivers at work, by thread."""
        return {thread_id: seat.driver for thread_id, seat in self._seats.items()}

    async def attended(self, thread_id: str) -> ThreadDriver:
        """The driver of a thread, once it follows it."""
        while (seat := self._seats.get(thread_id)) is None:
            self._news.clear()
            await self._news.wait()
        await seat.driver.live.wait()
        return seat.driver

    async def run(self, *, stop: asyncio.Event, on_ready: Callable[[], None] = lambda: None) -> None:
        """Attends to the threads until `stop` is set or the task is cancelled; then everything under way is ended within 10 seconds.

        `on_ready` is called when the grants are known. Raises `Forbidden` where the token is another principal's, `Unauthenticated` where
        it is refused, and what else makes the beginning impossible.
        """
        if not await _done_before(stop, self._check_identity()):
            return
        self._failure = asyncio.get_running_loop().create_future()
        async with beside(self._receipts.run()):
            try:
                await self._attend_until(stop, on_ready)
            finally:
                with anyio.CancelScope(shield=True):
                    await self._shut_down()

    async def _check_identity(self) -> None:
        me = (await self._bubble.who_am_i()).principal_id
        if me != self._principal_id:
            raise Forbidden(
                f'The token is that of principal "{me}", but `bubble.principalId` is "{self._principal_id}".'
            )

    # --- grants -----------------------------------------------------------------------------------------------------------------

    async def _attend_until(self, stop: asyncio.Event, on_ready: Callable[[], None]) -> None:
        assert self._failure is not None  # noqa: S101 - made by the only caller
        stopping = asyncio.create_task(_set(stop))
        following = asyncio.create_task(self._follow_grants(on_ready))
        try:
            await asyncio.wait({stopping, following, self._failure}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            following.cancel()
            await asyncio.wait({stopping, following})
        for ended in (self._failure, following):
            if ended.done() and not ended.cancelled():
                ended.result()

    async def _follow_grants(self, on_ready: Callable[[], None]) -> None:
        async with self._bubble.subscribe_grants() as changes:
            on_ready()
            async for change in changes:
                self._take(change)

    def _take(self, change: GrantsChanged) -> None:
        thread_id = change.grant.thread_id
        takes_part = change.change != "revoked" and change.grant.role != "observer"
        seat = self._seats.get(thread_id)
        is_attended = seat is not None and not seat.driver.has_ended
        if takes_part and not is_attended:
            self._attend(thread_id, after=seat)
        elif not takes_part and seat is not None:
            seat.driver.end("revoked")

    def _attend(self, thread_id: str, *, after: _Seat | None) -> None:
        driver = ThreadDriver(thread_id, self._services)
        task = asyncio.create_task(_drive(driver, None if after is None else after.task))
        self._seats[thread_id] = _Seat(driver, task)
        self._news.set()
        task.add_done_callback(lambda ended: self._ended(thread_id, ended))

    def _ended(self, thread_id: str, task: asyncio.Task[None]) -> None:
        if self._seats[thread_id].task is task:
            del self._seats[thread_id]
        error = None if task.cancelled() else task.exception()
        if error is not None and self._failure is not None and not self._failure.done():
            self._failure.set_exception(error)
            self._failure.exception()  # nobody may be left who waits for it

    # --- the end ----------------------------------------------------------------------------------------------------------------

    async def _shut_down(self) -> None:
        for seat in self._seats.values():
            seat.driver.end("stopped")
        tasks = {seat.task for seat in self._seats.values()}
        if tasks:
            await asyncio.wait(tasks, timeout=_SHUTDOWN_SECONDS)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=0.5)
        with anyio.move_on_after(_RECEIPTS_SECONDS):
            await self._receipts.flush()
        await self._services.store.flush()


async def _set(event: asyncio.Event) -> None:
    await event.wait()


async def _done_before(stop: asyncio.Event, work: Coroutine[object, object, None]) -> bool:
    """Does `work`; False where `stop` is set before it is done, which ends it. Raises what it fails with."""
    stopping = asyncio.create_task(_set(stop))
    working = asyncio.create_task(work)
    try:
        await asyncio.wait({stopping, working}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
        return working.done()
    finally:
        stopping.cancel()
        working.cancel()
        await asyncio.wait({stopping, working})


async def _drive(driver: ThreadDriver, predecessor: asyncio.Task[None] | None) -> None:
    if predecessor is not None:  # whoever was here before ends first: two of them would answer twice
        await asyncio.wait({predecessor})
    await driver.run()
