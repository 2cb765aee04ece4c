"""Everything that a relay has under way: its forwards, its small tasks, and what the agent is still being told beside them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Final

from bubble.amphibian.agents import Agent, Cancellable, Resumable
from bubble.amphibian.forward import AbortReason, Forward
from bubble.amphibian.sessions import Session
from bubble.protocol.errors import BubbleError
from bubble.protocol.events import SequencedEvent

__all__ = ["Forwards"]

_TELLING_SECONDS: Final = 5.0

_logger = logging.getLogger("bubble.amphibian")


class Forwards:
    """Owns tasks. The first that fails is told to `on_failure`; `close` ends them all."""

    def __init__(self, agent: Agent, session: Session, *, on_failure: Callable[[BaseException], None]) -> None:
        self.is_closed = False
        self._agent = agent
        self._session = session
        self._on_failure = on_failure
        self._tasks: set[asyncio.Task[None]] = set()
        self._in_hand: set[Forward] = set()
        self._told: set[Forward] = set()
        self._tellings: set[asyncio.Task[None]] = set()
        self._resuming: asyncio.Task[None] | None = None

    def resume(self) -> None:
        """Lets the agent look after what its session holds. Whatever is forwarded waits for it, by `agent_was_told`."""
        if isinstance(self._agent, Resumable):
            self._resuming = self._start_to_tell(self._agent.resume)

    def spawn(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        """A task that is waited for by `close`."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def carry_out(self, forward: Forward, *, starts: bool) -> bool:
        """As `Forward.carry_out`, while it can be aborted here."""
        self._in_hand.add(forward)
        try:
            return await forward.carry_out(starts=starts)
        except BubbleError:  # nobody gets to read what the agent says now, whether or not it has noticed itself
            if forward.agent_task is not None:
                self._tell_of_end(forward)
            raise
        finally:
            if forward.has_fled:
                self._tell_of_end(forward)
            self._in_hand.discard(forward)
            self._told.discard(forward)

    def abort_run(self, run_id: str, reason: AbortReason) -> None:
        """Aborts the forward that answers in this run, if there is one."""
        for forward in self._of_run(run_id):
            self._abort(forward, reason)

    def hear(self, run_id: str, stored: SequencedEvent) -> None:
        """Lets a run hear an event."""
        for forward in self._of_run(run_id):
            forward.hear(stored)

    async def agent_was_told(self) -> None:
        """Returns when the agent has heard of the beginning and of every abort so far, or has not listened for five seconds."""
        if self._tellings:
            await asyncio.wait(self._tellings)

    async def close(self, reason: AbortReason, *, within: float) -> None:
        """Aborts everything; what has not ended after `within` seconds is cancelled."""
        self.is_closed = True
        for forward in tuple(self._in_hand):
            self._abort(forward, reason)
        if self._resuming is not None:  # it can be done as well at the next beginning
            self._resuming.cancel()
        clock = asyncio.get_running_loop().time
        deadline = clock() + within
        while self._tasks and clock() < deadline:  # what ends may leave the agent to be told
            await asyncio.wait(self._tasks, timeout=deadline - clock())
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _of_run(self, run_id: str) -> list[Forward]:
        return [forward for forward in self._in_hand if forward.reply.run_id == run_id]

    def _abort(self, forward: Forward, reason: AbortReason) -> None:
        if forward.abort(reason):
            self._tell_of_end(forward)

    def _tell_of_end(self, forward: Forward) -> None:
        forward.reply.comes_again = forward.aborted in (None, "stopped")  # None: the server is out of reach
        if isinstance(self._agent, Cancellable) and forward not in self._told:
            self._told.add(forward)
            self._start_to_tell(self._agent.cancel)

    def _start_to_tell(self, call: Callable[[str, Session], Awaitable[None]]) -> asyncio.Task[None]:
        telling = self.spawn(self._tell(call))
        self._tellings.add(telling)
        telling.add_done_callback(self._tellings.discard)
        return telling

    async def _tell(self, call: Callable[[str, Session], Awaitable[None]]) -> None:
        try:
            async with asyncio.timeout(_TELLING_SECONDS):
                await call(self._session.thread_id, self._session)
        except Exception:  # whatever an agent fails with here changes nothing for the thread
            _logger.warning("The agent was not told what becomes of thread %s.", self._session.thread_id, exc_info=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None and not self.is_closed:
            self._on_failure(error)
