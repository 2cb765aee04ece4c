"""Between one thread and the agent: two loops that never wait for each other (spec 5, "The relay's two loops").

*Theory of operation.* The first loop is the driver's: it reads events and hands each to `handle_event`, which only ever changes what is in
memory and starts work, so that the next event is read at once, a request to stop above all. The second one is the work queue: one thing
after the other, and nothing in it waits for the agent either.

    event ──▶ handle_event ─┬─ by the bot itself: noted, else passed over
                            ├─ of somebody's run: waits with the others of its run
                            ├─ the end of such a run: drain, by the work queue
                            ├─ run_interrupt_requested for a run in hand: abort
                            └─ tool_call_result for an own call: a forward of its own, now; if the call has one that was taken: a notice

A **drain** takes every run of others that is over, as one question, and begins a forward; while one is under way it does nothing, and the
forward's end drains again. So however many speak at once, one question is being answered and one gathers.

A run that is over and whose beginning did not go by (it lies below the window) is **mended** first: the work queue fetches what is missing,
and nothing is drained before. A run that cannot be had as a whole is passed over as a whole, never put as half a question.

An event is **settled** when nothing more will come of it: at once where it is passed over, with the forward where it is part of a question.
Whatever fails for want of the server or of rights is not settled: it ends the relay, and the driver begins anew from the checkpoint.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from bubble.amphibian.agents import Agent, TakesToolResults, ToolResult, Turn
from bubble.amphibian.bot_turns import BotTurns
from bubble.amphibian.forward import AbortReason, Forward
from bubble.amphibian.forwards import Forwards
from bubble.amphibian.known import known_event
from bubble.amphibian.past import PastCall
from bubble.amphibian.pending import Call, OwnRuns, PendingRun, PendingRuns, ResultsInTheLog, in_order
from bubble.amphibian.reply import Reply
from bubble.amphibian.sessions import Session
from bubble.amphibian.settlement import SettlementTracker
from bubble.assembler import Assembler, DrainPayload, extract_drain_payload
from bubble.client import Run
from bubble.protocol.events import (
    BubbleEvent,
    MessagePart,
    ParticipantJoined,
    ParticipantLeft,
    RunFinished,
    RunInterruptRequested,
    RunKind,
    RunStarted,
    SequencedEvent,
    ThreadTitleUpdated,
    ToolCallApproval,
    ToolCallResult,
)
from bubble.protocol.jsontext import load_json

__all__ = ["RelayStatistics", "ThreadPort", "ThreadRelay"]

_RESULTS_AT_ONCE: Final = 16
_HAS_A_RESULT: Final = "This result is not passed on: its call has been given one already."

_logger = logging.getLogger("bubble.amphibian")


class ThreadPort(Protocol):
    """What a relay needs of the thread."""

    def open_run(self, *, kind: RunKind, snapshot_seq: int | None = None) -> Run:
        """A run of the bot's, not yet entered."""

    async def tell_directly(self, run_id: str, text: str) -> object:
        """Appends an error to a run."""

    async def find_call(self, run_id: str, tool_call_id: str, *, before: int) -> PastCall | None:
        """A call of an own run of the past, as it was below the seq `before`; None if there is no such call."""

    async def find_beginning(self, run_id: str, *, before: int) -> Sequence[SequencedEvent]:
        """What was said in somebody's run below the seq `before`, from its `run_started` on; empty where that is not to be had."""

    def checkpoint(self, *, soon: bool) -> None:
        """Has the tracker's state kept: soon where work is done, otherwise when it is convenient."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayStatistics:
    """Counts: `forwards` begun, tool results among them as `results`; runs of others that `wait` for a drain or are `open`."""

    forwards: int
    results: int
    waiting: int
    open: int


class ThreadRelay:
    """One thread's relay. `failed` gets the first exception of its work, which ends it; `close` it in any case."""

    def __init__(
        self,
        *,
        thread_id: str,
        own_id: str,
        agent: Agent,
        session: Session,
        tracker: SettlementTracker,
        port: ThreadPort,
        assembler: Assembler,
        failed: asyncio.Future[None],
        max_bot_turns: int = 8,
    ) -> None:
        self._failed = failed
        self._thread_id = thread_id
        self._own_id = own_id
        self._agent = agent
        self._session = session
        self._tracker = tracker
        self._port = port
        self._assembler = assembler
        self._pending = PendingRuns()
        self._own = OwnRuns()
        self._log = ResultsInTheLog()  # of the backlog alone; what is given from now on tells more exactly
        self._giving: dict[Call, asyncio.Task[None]] = {}
        self._turns = BotTurns(max_bot_turns)
        self._forwards = Forwards(agent, session, on_failure=self._fail)
        self._active: Forward | None = None
        self._is_held = True
        self._queue: deque[Callable[[], Awaitable[None]]] = deque()
        self._is_working = False
        self._results = asyncio.Semaphore(_RESULTS_AT_ONCE)
        self._counts = {"forwards": 0, "results": 0}
        self._routes: Mapping[type[object], Callable[..., None]] = {
            RunStarted: self._pending.start,
            MessagePart: self._take_part,
            RunFinished: self._take_finish,
            RunInterruptRequested: self._take_interrupt,
            ToolCallApproval: self._take_approval,
            ToolCallResult: self._take_result,
        }

    def statistics(self) -> RelayStatistics:
        """Counts since the beginning, and of now."""
        return RelayStatistics(
            **self._counts, waiting=len(self._pending.finished) + len(self._pending.torn), open=len(self._pending.open)
        )

    def begin(self) -> None:
        """Lets the agent look after what it keeps about the thread. Call it once, before any event."""
        self._forwards.resume()

    # --- the first loop ---------------------------------------------------------------------------------------------------------

    def handle_event(self, stored: SequencedEvent) -> None:
        """Takes the thread's next event in. It never waits."""
        event = known_event(stored)
        if event is None or isinstance(event, ParticipantJoined | ParticipantLeft | ThreadTitleUpdated):
            self._skip(stored)
        elif event.principal_id == self._own_id:
            self._note_own(event)
            self._skip(stored)
        elif not self._tracker.has(stored.seq):
            self._routes[type(event)](stored, event)
        elif isinstance(event, ToolCallResult):  # given before a restart, and still the first
            self._own.take_result(event)
            self._log.take_result(event)

    def release(self) -> None:
        """The backlog has been handled: from now on there are drains. Before, each run of it would have been a question of its own."""
        self._is_held = False
        self._enqueue(self._drain)

    def _note_own(self, event: BubbleEvent) -> None:
        if isinstance(event, RunStarted):
            self._own.start(event)
            if self._is_held:
                self._log.start(event)
        elif isinstance(event, MessagePart):
            self._own.add(event)
        elif isinstance(event, RunFinished):
            self._note_own_end(event)
        elif isinstance(event, ToolCallResult):
            self._own.take_result(event)

    def _note_own_end(self, event: RunFinished) -> None:
        if (call := self._log.finish(event)) is not None and call not in self._giving:
            self._own.give_back(call)
        snapshot_seq = self._own.finish(event)
        if snapshot_seq is not None:  # what was answered before a restart, if the checkpoint did not get to say so
            self._settle(self._pending.take_answered(snapshot_seq))

    def _take_part(self, stored: SequencedEvent, event: MessagePart) -> None:
        if self._own.is_open(event.run_id):
            self._skip(stored)
        else:
            self._pending.add(stored, event)

    def _take_finish(self, stored: SequencedEvent, event: RunFinished) -> None:
        if self._own.is_open(event.run_id):
            self._note_own_end(event)
            self._forwards.abort_run(event.run_id, "lost" if event.outcome == "lost" else "finished_elsewhere")
            self._skip(stored)
            return
        run = self._pending.finish(stored, event)
        if not run.is_whole:
            self._enqueue(partial(self._mend, run))
        self._enqueue(self._drain)

    def _take_interrupt(self, stored: SequencedEvent, event: RunInterruptRequested) -> None:
        self._own.interrupt(event.run_id)
        self._forwards.hear(event.run_id, stored)
        self._forwards.abort_run(event.run_id, "interrupted")
        self._skip(stored)

    def _take_approval(self, stored: SequencedEvent, event: ToolCallApproval) -> None:
        self._forwards.hear(event.run_id, stored)
        self._skip(stored)

    def _take_result(self, stored: SequencedEvent, event: ToolCallResult) -> None:
        self._forwards.hear(event.run_id, stored)
        is_first = self._own.take_result(event)
        if self._is_held:
            self._log.take_result(event)
        if not isinstance(self._agent, TakesToolResults):
            self._skip(stored)
            return
        call = (event.run_id, event.tool_call_id)
        before = None if is_first else self._giving.get(call)
        work = self._forward_result(self._agent, stored, event, is_first=is_first, before=before)
        self._giving[call] = task = self._forwards.spawn(work)
        task.add_done_callback(partial(self._note_given, call))

    def _note_given(self, call: Call, task: asyncio.Task[None]) -> None:
        if self._giving.get(call) is task:
            del self._giving[call]

    # --- the second loop --------------------------------------------------------------------------------------------------------

    def _enqueue(self, work: Callable[[], Awaitable[None]]) -> None:
        if self._forwards.is_closed:
            return
        self._queue.append(work)
        if not self._is_working:
            self._is_working = True
            self._forwards.spawn(self._work())

    async def _work(self) -> None:
        try:
            while self._queue:
                await self._queue.popleft()()
        finally:
            self._is_working = False

    async def _drain(self) -> None:
        if self._active is not None or self._is_held or self._forwards.is_closed:
            return
        if self._pending.torn or not self._pending.finished:  # a torn run is being mended, and drained after that
            return
        runs = self._pending.take_finished()
        if self._turns.keeps_waiting(runs):
            self._keep_back(runs)
            return
        payload = await extract_drain_payload(in_order(runs), own_principal_id=self._own_id, assembler=self._assembler)
        if not payload.text and not payload.files:
            self._settle(runs)
        elif self._turns.allow(runs):
            self._begin(payload, runs)
        else:
            self._keep_back(runs)
            self._forwards.spawn(self._say_that_it_pauses())

    async def _mend(self, run: PendingRun) -> None:
        if self._forwards.is_closed or run not in self._pending.torn:  # answered, as turned out since
            return
        beginning = await self._port.find_beginning(run.run_id, before=run.begins_at)
        if run not in self._pending.torn:
            return
        if beginning:
            self._pending.mend(run, beginning)
        else:
            self._pending.drop(run)
            for stored in run.events:
                self._skip(stored)

    def _keep_back(self, runs: Sequence[PendingRun]) -> None:
        # They are settled, so that a restart does not set the bots talking again, and part of the next question of a person.
        self._settle(runs)
        self._pending.keep_back(self._turns.those_to_keep(runs))

    async def _say_that_it_pauses(self) -> None:
        async with self._port.open_run(kind="system_work") as run:
            await run.text(self._turns.notice)

    def _begin(self, payload: DrainPayload, runs: Sequence[PendingRun]) -> None:
        turn = _turn_of(self._thread_id, payload, runs)
        reply = self._reply(snapshot_seq=turn.through_seq)
        self._active = Forward(reply, partial(self._respond, turn), tell_directly=self._port.tell_directly)
        self._counts["forwards"] += 1
        self._forwards.spawn(self._carry_out(self._active, runs))

    async def _respond(self, turn: Turn, reply: Reply) -> None:
        await self._forwards.agent_was_told()
        await self._agent.respond(turn, reply)

    async def _carry_out(self, forward: Forward, runs: Sequence[PendingRun]) -> None:
        try:
            if await self._forwards.carry_out(forward, starts=True):
                self._settle(runs)
        finally:
            self._active = None
        self._enqueue(self._drain)

    async def _forward_result(
        self,
        agent: TakesToolResults,
        stored: SequencedEvent,
        event: ToolCallResult,
        *,
        is_first: bool,
        before: asyncio.Task[None] | None,
    ) -> None:
        """Gives a call its result, unless it has one. Whether it has is known once the one `before` was taken or not."""
        if before is not None:
            await asyncio.wait({before})
            if self._forwards.is_closed:
                return
            is_first = self._own.take_result(event)
        async with self._results:
            await (self._pass_on(agent, stored, event) if is_first else self._refuse_result(stored, event))

    async def _pass_on(self, agent: TakesToolResults, stored: SequencedEvent, event: ToolCallResult) -> None:
        call = await self._call_of(stored, event)
        if call is not None and call.has_result:
            await self._drop_result(stored)
            return
        if call is not None:
            result = _result_of(self._thread_id, stored, event, call.name)
            give = partial(self._give_result, agent, result)
            forward = Forward(self._reply(), give, tell_directly=self._port.tell_directly)
            self._counts["results"] += 1
            if not await self._forwards.carry_out(forward, starts=False):
                return
            if forward.outcome == "failed":
                self._own.give_back((event.run_id, event.tool_call_id))
        self._skip(stored, soon=True)

    async def _refuse_result(self, stored: SequencedEvent, event: ToolCallResult) -> None:
        if await self._call_of(stored, event) is None:  # nobody's, or somebody else's
            self._skip(stored)
        else:
            await self._drop_result(stored)

    async def _drop_result(self, stored: SequencedEvent) -> None:
        _logger.info("The result %d on thread %s is dropped: its call has one.", stored.seq, self._thread_id)
        async with self._port.open_run(kind="system_work") as run:
            await run.error(_HAS_A_RESULT)
        self._skip(stored, soon=True)

    async def _give_result(self, agent: TakesToolResults, result: ToolResult, reply: Reply) -> None:
        await self._forwards.agent_was_told()
        await agent.tool_result(result, reply)

    async def _call_of(self, stored: SequencedEvent, event: ToolCallResult) -> PastCall | None:
        """The call that a result is for, as it was before the result."""
        if self._own.knows_call(event.run_id, event.tool_call_id):
            return PastCall(name=self._own.tool_name(event.run_id, event.tool_call_id) or "", has_result=False)
        return await self._port.find_call(event.run_id, event.tool_call_id, before=stored.seq)

    def _reply(self, *, snapshot_seq: int | None = None) -> Reply:
        open_run = partial(self._port.open_run, kind="agent_work", snapshot_seq=snapshot_seq)
        return Reply(thread_id=self._thread_id, session=self._session, open_run=open_run)

    # --- settling, and the end --------------------------------------------------------------------------------------------------

    def _skip(self, stored: SequencedEvent, *, soon: bool = False) -> None:
        self._tracker.skip(stored.seq)
        self._port.checkpoint(soon=soon)

    def _settle(self, runs: Iterable[PendingRun]) -> None:
        for stored in in_order(runs):
            self._tracker.settle(stored.seq)
        self._port.checkpoint(soon=True)

    def _fail(self, error: BaseException) -> None:
        if not self._failed.done():
            self._failed.set_exception(error)
            self._failed.exception()  # whoever waits for it hears of it; there may be nobody any more

    async def close(self, reason: AbortReason, *, within: float) -> None:
        """Aborts what is under way and waits for its end, at most about `within` seconds."""
        await self._forwards.close(reason, within=within)


def _turn_of(thread_id: str, payload: DrainPayload, runs: Sequence[PendingRun]) -> Turn:
    authors = {run.run_id: run.author or "" for run in runs}
    return Turn(
        thread_id=thread_id,
        text=payload.text,
        files=payload.files,
        run_ids=payload.run_ids,
        authors=tuple(authors[run_id] for run_id in payload.run_ids),
        through_seq=payload.through_seq,
        events=in_order(runs),
    )


def _result_of(thread_id: str, stored: SequencedEvent, event: ToolCallResult, name: str) -> ToolResult:
    return ToolResult(
        thread_id=thread_id,
        run_id=event.run_id,
        tool_call_id=event.tool_call_id,
        tool_name=name or None,
        principal_id=event.principal_id,
        input=load_json(event.input),
        output=load_json(event.output),
        seq=stored.seq,
    )
