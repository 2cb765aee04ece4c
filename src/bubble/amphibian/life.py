"""One life of a thread's driver: from the checkpoint to whatever ends it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from bubble.amphibian.agents import Agent
from bubble.amphibian.backlog import BacklogPolicy
from bubble.amphibian.forward import AbortReason
from bubble.amphibian.past import Past, PastCall, close_leftovers, error_part, find_beginning, find_call, read_past
from bubble.amphibian.relay import ThreadRelay
from bubble.amphibian.sessions import Session
from bubble.amphibian.settlement import SettlementTracker
from bubble.amphibian.store import AmphibianStore, Remembered, ThreadKey
from bubble.assembler import Assembler
from bubble.client import Backoff, BubbleConnection, Run
from bubble.protocol.events import RunKind, SequencedEvent

__all__ = ["DriverServices", "Life"]

# How long replies that are under way may take to end, and how late a checkpoint may be while nothing is worked off, in seconds.
_UNWINDING_SECONDS: Final = 5.0
_CHECKPOINT_SECONDS: Final = 0.5

_logger = logging.getLogger("bubble.amphibian")


def _no_receipt(thread_id: str, seq: int) -> None:
    del thread_id, seq


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverServices:
    """What the drivers of one connector share. `booting` bounds how many begin a life at the same time."""

    bubble: BubbleConnection
    store: AmphibianStore
    agent: Agent
    own_id: str
    assembler: Assembler
    policy: BacklogPolicy = field(default_factory=BacklogPolicy)
    max_bot_turns: int = 8
    backoff: Backoff = field(default_factory=Backoff)
    booting: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(16))
    receipt: Callable[[str, int], None] = _no_receipt


class Life:
    """`await run()` in a task while nothing is in `failed`, then `close`. It sets `live` once it follows. It is a `ThreadPort`."""

    def __init__(self, key: ThreadKey, services: DriverServices, *, live: asyncio.Event) -> None:
        self.relay: ThreadRelay | None = None
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._live = live
        self._key = key
        self._thread_id = key.thread_id
        self._services = services
        self._tracker = SettlementTracker()
        self._timer: asyncio.TimerHandle | None = None
        self._stops_at_join = True

    async def run(self) -> None:
        """Replays what is to be replayed, and follows. Raises what ends the subscription, or what reading the past raised."""
        async with self._services.booting:
            remembered = await self._services.store.read(self._key)
            self._stops_at_join = self._services.policy.stops_at_join(remembered.checkpoint)
            past = await self._read_past(remembered)
            await close_leftovers(self._services.bubble, self._thread_id, own_id=self._services.own_id)
        relay = self._begin(remembered, past)
        for stored in past.events:
            self._hand_over(relay, stored)
        relay.release()
        await self._follow(relay, from_seq=past.window.head + 1)

    async def close(self, reason: AbortReason) -> None:
        """Unwinds what is under way and notes how far it came."""
        if self.relay is not None:
            await self.relay.close(reason, within=_UNWINDING_SECONDS)
            self.checkpoint(soon=True)

    async def _read_past(self, remembered: Remembered) -> Past:
        return await read_past(
            self._services.bubble,
            self._thread_id,
            policy=self._services.policy,
            checkpoint=remembered.checkpoint,
            own_id=self._services.own_id,
        )

    def _begin(self, remembered: Remembered, past: Past) -> ThreadRelay:
        window = past.window
        if window.skipped:
            _logger.info(
                "Skipped %d event(s) of thread %s, up to %d.", window.skipped, self._thread_id, window.from_seq - 1
            )
        if remembered.checkpoint is not None and remembered.checkpoint > window.head:
            _logger.warning("Thread %s was set back to event %d; going on from there.", self._thread_id, window.head)
        beyond = [each for each in remembered.beyond if each[1] <= window.head]
        self._tracker = SettlementTracker(window.from_seq - 1, beyond=beyond)
        self.checkpoint(soon=True)
        services = self._services
        self.relay = ThreadRelay(
            thread_id=self._thread_id,
            own_id=services.own_id,
            agent=services.agent,
            session=Session(
                self._thread_id, text=remembered.session, save=partial(services.store.keep_session, self._key)
            ),
            tracker=self._tracker,
            port=self,
            assembler=services.assembler,
            max_bot_turns=services.max_bot_turns,
            failed=self.failed,
        )
        self.relay.begin()
        return self.relay

    async def _follow(self, relay: ThreadRelay, *, from_seq: int) -> None:
        bubble = self._services.bubble
        async with bubble.subscribe_thread(self._thread_id, from_seq=from_seq, unknown="keep") as events:
            self._live.set()
            async for stored in events:
                self._hand_over(relay, stored)

    def _hand_over(self, relay: ThreadRelay, stored: SequencedEvent) -> None:
        relay.handle_event(stored)
        self._services.receipt(self._thread_id, stored.seq)

    # --- what the relay needs -----------------------------------------------------------------------------------------------------

    def open_run(self, *, kind: RunKind, snapshot_seq: int | None = None) -> Run:
        """A run of the bot's, not yet entered."""
        return self._services.bubble.run(self._thread_id, kind=kind, snapshot_seq=snapshot_seq)

    async def tell_directly(self, run_id: str, text: str) -> SequencedEvent:
        """Appends an error to a run."""
        part = error_part(self._services.own_id, run_id, text)
        return await self._services.bubble.append_event(self._thread_id, part)

    async def find_call(self, run_id: str, tool_call_id: str, *, before: int) -> PastCall | None:
        """A call in an own run of the past."""
        return await find_call(
            self._services.bubble,
            self._thread_id,
            run_id=run_id,
            tool_call_id=tool_call_id,
            before=before,
            own_id=self._services.own_id,
        )

    async def find_beginning(self, run_id: str, *, before: int) -> Sequence[SequencedEvent]:
        """What was said in somebody's run before."""
        return await find_beginning(
            self._services.bubble,
            self._thread_id,
            run_id=run_id,
            before=before,
            own_id=self._services.own_id,
            stops_at_join=self._stops_at_join,
        )

    def checkpoint(self, *, soon: bool) -> None:
        """Has the tracker's state kept, now or within half a second."""
        if soon:
            self._keep()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_CHECKPOINT_SECONDS, self._keep)

    def _keep(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._services.store.note_checkpoint(self._key, self._tracker)
