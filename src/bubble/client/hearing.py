"""What others say to one run: to stop, decisions on its tool calls, results of tools that run elsewhere. No I/O."""

from __future__ import annotations

import asyncio
import re
from typing import TypeVar, cast

from bubble.protocol.errors import Conflict
from bubble.protocol.events import (
    RunFinished,
    RunInterruptRequested,
    SequencedEvent,
    ToolCallApproval,
    ToolCallResult,
)

__all__ = ["Hearing", "RunInterrupted", "may_concern_a_run"]

Answer = TypeVar("Answer", ToolCallApproval, ToolCallResult)

_MARK = re.compile(rb'"type":"(?:run_interrupt_requested|run_finished|tool_call_approval|tool_call_result)"')


def may_concern_a_run(text: bytes) -> bool:
    """Whether a stored event may be one that `Hearing.hear` takes in: a look at the text, so that streams of parts are not decoded."""
    return _MARK.search(text) is not None


class RunInterrupted(Exception):
    """Somebody asked the run to stop while it waited for somebody else (spec 1, "Cooperative Stop").

    It leaves the block of its run, which ends as `interrupted`, and goes no further.
    """

    def __init__(self, run_id: str) -> None:
        super().__init__(f"Run {run_id} was asked to stop.")
        self.run_id = run_id


class _Interrupted(asyncio.Event):
    """Public, so anybody may set it; whoever waits for an answer learns of it too."""

    def __init__(self, news: asyncio.Event) -> None:
        super().__init__()
        self._news = news

    def set(self) -> None:
        super().set()
        self._news.set()


class Hearing:
    """What one run has heard. Events may come twice and out of order: of several answers to a call the one with the lowest seq counts."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.error: BaseException | None = None
        self._news = asyncio.Event()
        self._answers: dict[tuple[type, str], tuple[int, ToolCallApproval | ToolCallResult]] = {}
        self._has_finished = False
        self.interrupted: asyncio.Event = _Interrupted(self._news)

    def hear(self, stored: SequencedEvent) -> None:
        """Takes an event in, if it speaks to this run."""
        event = stored.event
        if not isinstance(event, RunInterruptRequested | RunFinished | ToolCallApproval | ToolCallResult):
            return
        if event.run_id != self.run_id:
            return
        if isinstance(event, RunInterruptRequested):
            self.interrupted.set()
        elif isinstance(event, RunFinished):
            self._has_finished = True
        else:
            self._keep(stored.seq, event)
        self._news.set()

    def fail(self, error: BaseException) -> None:
        """Nothing more will be heard: whoever waits is told why."""
        self.error = error
        self._news.set()

    async def answer(self, kind: type[Answer], tool_call_id: str) -> Answer:
        """The first answer of this kind to a call, waiting for it.

        Raises `RunInterrupted`, `Conflict` if somebody finished the run meanwhile, and what the hearing failed with.
        """
        while (found := self._answers.get((kind, tool_call_id))) is None or self.interrupted.is_set():
            self._refuse_to_wait()
            self._news.clear()
            await self._news.wait()
        return cast("Answer", found[1])

    def _keep(self, seq: int, event: ToolCallApproval | ToolCallResult) -> None:
        key = (type(event), event.tool_call_id)
        if key not in self._answers or seq < self._answers[key][0]:
            self._answers[key] = (seq, event)

    def _refuse_to_wait(self) -> None:
        if self.interrupted.is_set():
            raise RunInterrupted(self.run_id)
        if self._has_finished:
            raise Conflict("The run has finished.", details={"runId": self.run_id, "state": "finished"})
        if self.error is not None:
            raise self.error
