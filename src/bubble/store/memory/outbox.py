"""Group commit without a disk: what happened within one turn of the event loop is told together, in order, in the next.

Decisions are made at once and nothing is told from within the call that made them, so a caller sees the same order of things as on a
backend that waits for a disk: first the listeners, then the outcomes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from bubble.protocol.errors import BubbleError
from bubble.store.commands import AppendCommand, AppendResult
from bubble.store.memory.state import ThreadState
from bubble.store.notices import Committed, Listener, Notice
from bubble.store.records import StoreStatistics

__all__ = ["Outbox"]


class Outbox:
    """Notices and outcomes on their way to those who wait for them."""

    def __init__(self) -> None:
        self._listeners: dict[object, Listener] = {}
        self._notices: list[Notice] = []
        self._latest: dict[
            str, tuple[int, int, list[bytes]]
        ] = {}  # by thread: place among the notices, grant version, events
        self._outcomes: list[Callable[[], None]] = []
        self._commands = 0
        self._is_scheduled = False
        self._appends = self._refused = self._commits = self._largest = 0

    def listen(self, listener: Listener) -> Callable[[], None]:
        """As `BubbleStore.listen`."""
        key = object()
        self._listeners[key] = listener

        def unlisten() -> None:
            self._listeners.pop(key, None)

        return unlisten

    def committed(self, thread: ThreadState, texts: Sequence[bytes] = ()) -> None:
        """Tells where a thread stands now and which events brought it there."""
        place, version, events = self._latest.get(thread.thread_id, (len(self._notices), 0, []))
        if version != thread.grant_version:
            place, events = len(self._notices), []
        events.extend(texts)
        self._latest[thread.thread_id] = (place, thread.grant_version, events)
        self._notices[place : place + 1] = [Committed(thread.thread_id, thread.head, thread.grant_version, events)]
        self._schedule()

    def tell(self, notice: Notice) -> None:
        """Tells anything else."""
        self._notices.append(notice)
        self._schedule()

    def finish(self, command: AppendCommand, result: AppendResult) -> None:
        """Hands the outcome of an append to whoever waits for it, once the listeners have been told."""
        self._commands += 1
        done = command.done
        if isinstance(result, BubbleError):
            self._refused += 1
        elif not result.replayed:
            self._appends += len(result.events)
        if done is not None and (isinstance(result, BubbleError) or not command.failures_only):
            self._outcomes.append(lambda: done(result))
        self._schedule()

    async def told(self) -> None:
        """Returns once everything that happened until now has been told."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._outcomes.append(lambda: None if turn.done() else turn.set_result(None))
        self._schedule()
        await turn

    def forget_listeners(self) -> None:
        """Nobody is told anything from now on."""
        self._listeners.clear()

    def statistics(self) -> StoreStatistics:
        """Counters since the beginning."""
        return StoreStatistics(
            appends=self._appends,
            refused=self._refused,
            commits=self._commits,
            largest_batch=self._largest,
            commit_seconds=0.0,
            queued=self._commands,
        )

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        # Each is a callback of its own, so that one that fails takes no other with it and the loop reports it.
        loop = asyncio.get_running_loop()
        notices, outcomes = self._notices, self._outcomes
        self._largest = max(self._largest, self._commands)
        self._commits += 1 if notices else 0
        self._notices, self._outcomes, self._latest, self._commands = [], [], {}, 0
        self._is_scheduled = False
        if notices:
            for key in self._listeners:
                loop.call_soon(self._tell, key, notices)
        for outcome in outcomes:
            loop.call_soon(outcome)

    def _tell(self, key: object, notices: Sequence[Notice]) -> None:
        listener = self._listeners.get(key)
        if listener is not None:
            listener(notices)
