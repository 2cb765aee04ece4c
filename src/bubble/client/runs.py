"""A run as a block of code: it starts when the block is entered and is finished however the block is left."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from msgspec import UNSET, Raw, UnsetType

from bubble.client.events import AnyEvent, EventLog
from bubble.client.hearing import Hearing, RunInterrupted
from bubble.client.listening import Listening
from bubble.client.outbox import Outbox
from bubble.client.sizes import Sizes
from bubble.client.sockets import Sockets
from bubble.client.speech import Speech
from bubble.client.supervision import beside, finish_despite_cancellation
from bubble.client.tool_calls import CallServices
from bubble.protocol.errors import BubbleError, Conflict, InvalidRequest, Unavailable
from bubble.protocol.events import (
    EncodedEvent,
    MessagePart,
    Outcome,
    PartVersion,
    RunFinished,
    RunKind,
    RunStarted,
    SequencedEvent,
    ToolCallApproval,
    ToolCallResult,
    encoded,
    raw,
)
from bubble.protocol.identifiers import new_id

__all__ = ["Run", "RunServices"]

# The server takes a run for lost when it has been silent for long and its principal holds no connection. A run that is silent for so many
# seconds therefore opens one.
_HOLD_AFTER = 60.0
# How much longer a run that is being cancelled may take to say that it ended, in seconds.
_GRACE = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunServices:
    """What a run needs of the client."""

    principal_id: Callable[[], Awaitable[str]]
    events: EventLog
    sockets: Sockets
    listening: Listening
    sizes: Sizes


class Run(Speech):
    """One run (spec 1, "Run Lifecycle"). Made by `BubbleConnection.run`; use as `async with`.

    What is said goes out in order, in the background, each event exactly once; `flush` waits until it is durable, and so does leaving the
    block. The outcome is `success`, `failed` if an exception leaves the block or an error was said, `interrupted` if it is cancelled or
    `interrupted` is set. `RunInterrupted` leaves the block and goes no further.
    """

    def __init__(
        self,
        services: RunServices,
        *,
        thread_id: str,
        run_id: str | None = None,
        kind: RunKind | None = None,
        snapshot_seq: int | None = None,
        watch_interrupts: bool = False,
    ) -> None:
        super().__init__(sizes=services.sizes)
        self.thread_id = thread_id
        self.run_id = new_id() if run_id is None else run_id
        self._hearing = Hearing(self.run_id)
        self.interrupted = self._hearing.interrupted
        self._services = services
        self._kind: RunKind | UnsetType = UNSET if kind is None else kind
        self._snapshot_seq: int | UnsetType = UNSET if snapshot_seq is None else snapshot_seq
        self._watches_interrupts = watch_interrupts
        self._outbox = Outbox(self._send)
        self._principal_id = ""
        self._started_seq = 0
        self._finished = False
        self._listens = False
        self._beginning_to_listen = asyncio.Lock()
        self._stack = AsyncExitStack()
        self._silence: asyncio.TimerHandle | None = None

    @property
    def started_seq(self) -> int:
        """The seq of its `run_started`; 0 before it was entered."""
        return self._started_seq

    # --- what is said -----------------------------------------------------------------------------------------------------------

    async def flush(self) -> None:
        """Returns once everything said so far is durable. Raises whatever appending raised."""
        await self._outbox.drain()

    async def finish(self, *, outcome: Outcome | None = None) -> None:
        """Ends the run now, durably. Leaving the block afterwards does nothing more. Without `outcome` it is `success`, or `failed` if
        an error was said.
        """
        if self._finished:
            return
        end = RunFinished(principal_id=self._principal_id, run_id=self.run_id, outcome=outcome or self._said_outcome())
        try:
            await self.end_block()
            await self._outbox.put(encoded(end))
            await self._outbox.drain()
        except Exception as failure:
            # Something before it could not be appended; the run has to end all the same.
            try:
                await self._append(end)
            except BubbleError as another:
                failure.add_note(f"The run could not be finished either: {another}")
            raise
        finally:
            self._finished = True

    async def _say(self, chunk: Mapping[str, object] | Raw, *, version: PartVersion = "ai-sdk-v6") -> None:
        if self._finished:
            raise Conflict("The run has finished.", details={"runId": self.run_id, "state": "finished"})
        event = MessagePart(principal_id=self._principal_id, run_id=self.run_id, part=_raw(chunk), version=version)
        ready = encoded(event)
        await self._sizes.check_event(ready.text, what=_name_of(chunk))
        await self._outbox.put(ready)

    def _said_outcome(self) -> Outcome:
        return "failed" if self._said_error else "success"

    # --- what is heard ----------------------------------------------------------------------------------------------------------

    def observe(self, event: SequencedEvent) -> None:
        """Takes in what an event says to this run, a request to stop above all: for those who follow the thread anyway."""
        self._hearing.hear(event)

    def _call_services(self) -> CallServices:
        return CallServices(say=self._say, approval=self._approval, result=self._result)

    async def _approval(self, tool_call_id: str) -> ToolCallApproval:
        await self._listen()
        return await self._hearing.answer(ToolCallApproval, tool_call_id)

    async def _result(self, tool_call_id: str) -> ToolCallResult:
        await self._listen()
        return await self._hearing.answer(ToolCallResult, tool_call_id)

    async def _listen(self) -> None:
        # Nobody can answer what did not arrive: if it cannot, that is said here, where otherwise the wait would never end.
        await self.flush()
        async with self._beginning_to_listen:
            if not self._listens or self._hearing.error is not None:
                self._listens = False
                await self._services.listening.begin(self.thread_id, self._hearing, since=self._started_seq)
                self._listens = True

    # --- life -------------------------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        if self._principal_id:
            raise RuntimeError("A run is entered once.")
        async with self._stack as stack:
            stack.push_async_callback(self._services.listening.end, self.thread_id, self._hearing)
            if self._watches_interrupts:
                await self._services.listening.begin(self.thread_id, self._hearing)
                self._listens = True
            await stack.enter_async_context(beside(self._outbox.run()))
            await self._begin()
            stack.callback(self._stop_listening)
            self._spoke()
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        async with self._stack:
            try:
                await finish_despite_cancellation(self._finish_after(error), grace=_GRACE)
            except BubbleError as failure:
                if error is None:
                    raise
                error.add_note(f"The run could not be finished: {failure}")
                return False
        return self._is_only_interrupted(error)

    async def _begin(self) -> None:
        # If the caller is cancelled while the answer is on its way, the run may have started: then it has to end as well.
        self._principal_id = await self._services.principal_id()
        try:
            await finish_despite_cancellation(self._append_start(), grace=_GRACE)
        except asyncio.CancelledError:
            if self._started_seq:
                await finish_despite_cancellation(self.finish(outcome="interrupted"), grace=_GRACE)
            raise

    async def _finish_after(self, error: BaseException | None) -> None:
        try:
            async with asyncio.timeout(_GRACE if _is_cancellation(error) else None):
                await self.finish(outcome=self._outcome_of(error))
        except TimeoutError:
            raise Unavailable(f"The server did not answer within {_GRACE:g} s.") from None

    def _outcome_of(self, error: BaseException | None) -> Outcome:
        if self.interrupted.is_set() or _is_cancellation(error):
            return "interrupted"
        return self._said_outcome() if error is None else "failed"

    def _is_only_interrupted(self, error: BaseException | None) -> bool:
        if isinstance(error, BaseExceptionGroup):  # from tasks of a group that waited within the run
            return all(self._is_only_interrupted(each) for each in error.exceptions)
        return isinstance(error, RunInterrupted) and error.run_id == self.run_id

    async def _append_start(self) -> None:
        event = RunStarted(
            principal_id=self._principal_id, run_id=self.run_id, kind=self._kind, snapshot_seq=self._snapshot_seq
        )
        self._started_seq = (await self._append(event)).seq

    async def _append(self, event: AnyEvent) -> SequencedEvent:
        return await self._services.events.append(self.thread_id, event)

    async def _send(self, batch: Sequence[EncodedEvent]) -> Sequence[SequencedEvent]:
        self._spoke()
        if len(batch) == 1:
            return [await self._append(batch[0])]
        return await self._services.events.append_many(self.thread_id, batch)

    def _spoke(self) -> None:
        self._stop_listening()
        self._silence = asyncio.get_running_loop().call_later(_HOLD_AFTER, self._services.sockets.hold, self)

    def _stop_listening(self) -> None:
        if self._silence is not None:
            self._silence.cancel()
            self._silence = None
        self._services.sockets.release(self)


def _raw(chunk: Mapping[str, object] | Raw) -> Raw:
    try:
        return chunk if isinstance(chunk, Raw) else raw(chunk)
    except ValueError as error:
        raise InvalidRequest(f"`part` is not JSON: {error}.") from None


def _name_of(chunk: Mapping[str, object] | Raw) -> str:
    return "The chunk" if isinstance(chunk, Raw) else f"The part {chunk.get('type') or chunk.get('kind')}"


def _is_cancellation(error: BaseException | None) -> bool:
    return isinstance(error, asyncio.CancelledError | GeneratorExit)
