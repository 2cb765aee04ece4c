"""One run of the bot's own, in an agent's hands."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack

from bubble.amphibian.sessions import Session
from bubble.client import Run
from bubble.protocol.events import Outcome

__all__ = ["Reply"]


class Reply:
    """What an agent answers through. The runtime starts its run where it must and finishes it in any case.

    `session` is the thread's. What is said goes through `run`: text, reasoning, tool calls, files, parts (`bubble.client.Run`).
    `comes_again` tells, once the call is cut off, that it will be made again, after the next start.
    """

    def __init__(self, *, thread_id: str, session: Session, open_run: Callable[[], Run]) -> None:
        self.thread_id = thread_id
        self.session = session
        self.outcome: Outcome | None = None
        self.comes_again = False
        self._open_run = open_run
        self._run: Run | None = None
        self._stack = AsyncExitStack()

    @property
    def run(self) -> Run:
        """The run; `RuntimeError` before `start`. In `Agent.respond` it has started."""
        if self._run is None or not self._run.started_seq:
            raise RuntimeError("The reply's run has not started.")
        return self._run

    @property
    def has_started(self) -> bool:
        """Whether there is a run."""
        return self._run is not None and self._run.started_seq > 0

    @property
    def run_id(self) -> str | None:
        """The run's id, also while it is about to start."""
        return None if self._run is None else self._run.run_id

    async def start(self) -> Run:
        """The run, started now (durably) if it was not before. Raises what appending raises."""
        if self._run is None:
            self._run = self._open_run()
            try:
                await self._stack.enter_async_context(self._run)
            except BaseException:
                self._run = None
                raise
        return self.run

    async def fail(self, text: str) -> None:
        """Tells the people what went wrong, as an `error` chunk, and lets the run end as `failed`. It starts where it has not."""
        self.outcome = "failed"
        await (await self.start()).error(text)

    def conclude(self, outcome: Outcome) -> None:
        """How the run will end, where it is not simply `success`; an interrupt or a failure still counts for more."""
        self.outcome = outcome

    async def close(self) -> None:
        """Leaves the run. For the runtime."""
        await self._stack.aclose()
