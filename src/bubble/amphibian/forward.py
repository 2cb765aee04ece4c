"""One call of the agent, and the run that it answers in: begun, perhaps aborted, and ended in any case.

*Theory of operation.* The agent runs in a task of its own, which `abort` cancels at once, from wherever it is called. The call then waits
half a second for it to leave and ends the run whether it has left or not: what people see does not depend on an agent's manners.

How a forward ends decides two things. The run's outcome: `success`, or what the agent concluded; `interrupted` if somebody asked it to
stop; `failed`, with the reason as an `error` chunk, for everything else. And whether the question is settled: not if the connector stopped,
lost its grant or could not reach the server, for then nobody was answered, and it is asked again after the next start.

An agent that waits for somebody within its run hears by itself that it is to stop, that somebody else has finished the run, or that the bot
was removed, and may hear it before the relay does. Which of them is first decides nothing: such a failure is taken for what it tells of.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Literal

import anyio

from bubble.amphibian.agents import AgentFailed
from bubble.amphibian.reply import Reply
from bubble.client import Run
from bubble.protocol.errors import BubbleError, Conflict, Forbidden, InvalidRequest, NotFound, PayloadTooLarge
from bubble.protocol.events import Outcome, SequencedEvent

__all__ = ["AbortReason", "Forward", "TellDirectly"]

AbortReason = Literal["interrupted", "stopped", "revoked", "lost", "finished_elsewhere"]
"""`lost`: the server finished the run, as it does when its principal may no longer speak. `finished_elsewhere`: somebody else did."""

TellDirectly = Callable[[str, str], Awaitable[object]]
"""Appends an error, given run and text, past everything that the run itself has said."""

_NOBODY_ANSWERED: Final = frozenset[AbortReason]({"revoked", "lost"})
_UNWINDING_SECONDS: Final = 0.5
_HASTE_SECONDS: Final = 2.0
_STOPPED: Final = (
    "The connector was stopped before this reply was complete. It is taken up again when the connector is back."
)
_UNEXPECTED: Final = "The agent failed unexpectedly; the connector's log says why."
_GAVE_UP: Final = "The agent gave up."

_logger = logging.getLogger("bubble.amphibian")


@dataclass(frozen=True, slots=True)
class _Ending:
    """How to end: the run's outcome (None: what it said itself), the error to tell, and whether the question is settled."""

    outcome: Outcome | None
    error: str | None
    settled: bool


class Forward:
    """`await carry_out()` in a task; `abort` it from anywhere.

    `has_fled` says that the agent left with a failure because of what `aborted` says, perhaps without having been told to.
    `outcome` is how it ended, None where nothing but what the run said itself decides.
    """

    def __init__(self, reply: Reply, call: Callable[[Reply], Awaitable[None]], *, tell_directly: TellDirectly) -> None:
        self.reply = reply
        self.aborted: AbortReason | None = None
        self.agent_task: asyncio.Task[None] | None = None
        self.has_fled = False
        self.outcome: Outcome | None = None
        self._call = call
        self._tell_directly = tell_directly
        self._abort = asyncio.Event()

    def abort(self, reason: AbortReason) -> bool:
        """Makes the agent leave, now. False if it was told so before, or there is none that was called."""
        if self.aborted is not None:
            return False
        self.aborted = reason
        self._abort.set()
        return self.agent_task is not None and self.agent_task.cancel()

    def hear(self, stored: SequencedEvent) -> None:
        """Lets the run hear what somebody said to it."""
        if self.reply.has_started:
            self.reply.run.observe(stored)

    async def carry_out(self, *, starts: bool) -> bool:
        """Calls the agent and ends the run; whether the question is settled. `starts`: the run begins before the agent is called.

        Raises the `BubbleError` with which the server could not be told: `Unavailable` and the like, `Unauthenticated`, and `NotFound` or
        `Forbidden` where the bot may no longer speak.
        """
        try:
            if starts:
                await self.reply.start()
            failure = await self._attempt()
            await self._learn_why(failure)
            return await self._end(failure)
        except asyncio.CancelledError:
            await self._end_in_haste()
            raise
        finally:
            await self.reply.close()

    # --- the agent --------------------------------------------------------------------------------------------------------------

    async def _attempt(self) -> BaseException | None:
        """Calls the agent until it leaves or is left behind; what it failed with."""
        if self._abort.is_set():
            return None
        task = self.agent_task = asyncio.create_task(self._run_agent())
        aborting = asyncio.create_task(self._abort.wait())
        try:
            await asyncio.wait({task, aborting}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                await asyncio.wait({task}, timeout=_UNWINDING_SECONDS)
        finally:
            aborting.cancel()
            task.cancel()
        if not task.done():
            _logger.warning("The agent does not leave thread %s although it was cancelled.", self.reply.thread_id)
            return None
        if task.cancelled():
            return None if self._abort.is_set() else AgentFailed(_GAVE_UP)
        return task.exception()

    async def _run_agent(self) -> None:
        await self._call(self.reply)

    async def _learn_why(self, failure: BaseException | None) -> None:
        """What the agent may have heard before the relay told of it."""
        if self.aborted is None and self.reply.has_started and self.reply.run.interrupted.is_set():
            self.aborted = "interrupted"
        elif self.aborted is None and _may_be_the_threads(failure):  # or the agent's own, and then nothing comes
            with anyio.move_on_after(_UNWINDING_SECONDS):
                await self._abort.wait()
        self.has_fled = failure is not None and self.aborted is not None

    # --- the end ----------------------------------------------------------------------------------------------------------------

    async def _end(self, failure: BaseException | None) -> bool:
        ending = self._ending_after(failure)
        self.outcome = ending.outcome
        if not self.reply.has_started:
            if ending.error is None or self.aborted is not None:
                return ending.settled
            await self.reply.start()  # to tell
        try:
            await self._finish(self.reply.run, ending)
        except Conflict:
            self.has_fled = self.has_fled or failure is not None
            self.aborted = self.aborted or "finished_elsewhere"
            return self.aborted not in _NOBODY_ANSWERED
        except (NotFound, Forbidden):
            if self.aborted not in _NOBODY_ANSWERED:
                raise
        return ending.settled

    def _ending_after(self, failure: BaseException | None) -> _Ending:
        if self.aborted == "interrupted":
            return _Ending("interrupted", None, settled=True)
        if self.aborted is not None:
            is_stopped = self.aborted == "stopped"
            return _Ending("failed", _STOPPED if is_stopped else None, settled=self.aborted == "finished_elsewhere")
        if failure is not None:
            return _Ending("failed", self._explained(failure), settled=True)
        return _Ending(self.reply.outcome, None, settled=True)

    def _explained(self, failure: BaseException) -> str:
        if isinstance(failure, AgentFailed | BubbleError):
            return failure.message
        _logger.error("The agent failed on thread %s.", self.reply.thread_id, exc_info=failure)
        return _UNEXPECTED

    async def _finish(self, run: Run, ending: _Ending) -> None:
        try:
            if ending.error is not None:
                await run.error(ending.error)
            await run.flush()
            await run.finish(outcome=ending.outcome)
        except (InvalidRequest, PayloadTooLarge) as refusal:
            # The server refused something that was on its way, and with it the rest of what the run had said.
            await self._tell_directly(run.run_id, ending.error or refusal.message)
            with suppress(InvalidRequest, PayloadTooLarge):
                await run.finish(outcome="failed")
        except BubbleError:
            # Left to itself, the run might yet end as if all had gone well.
            with suppress(BubbleError):
                await run.finish(outcome="failed")
            raise

    async def _end_in_haste(self) -> None:
        with anyio.move_on_after(_HASTE_SECONDS, shield=True), suppress(BubbleError):
            if self.reply.has_started:
                await self.reply.run.finish(outcome="failed")


def _may_be_the_threads(failure: BaseException | None) -> bool:
    """Whether it may tell of the end of the run or of the bot's place on the thread."""
    if isinstance(failure, BaseExceptionGroup):  # of an agent that waits in several tasks
        return any(_may_be_the_threads(each) for each in failure.exceptions)
    return isinstance(failure, Conflict | NotFound | Forbidden)
