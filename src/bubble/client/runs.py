"""A run as a block of code: it starts when the block is entered and is finished however the block is left."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from msgspec import UNSET, Raw, UnsetType

from bubble.client.events import AnyEvent, EventLog
from bubble.client.interrupts import InterruptWatch
from bubble.client.outbox import Outbox
from bubble.client.sockets import Sockets
from bubble.client.supervision import beside, finish_despite_cancellation
from bubble.protocol.errors import BubbleError, Conflict, Unavailable
from bubble.protocol.events import (
    EncodedEvent,
    MessagePart,
    Outcome,
    PartVersion,
    RunFinished,
    RunInterruptRequested,
    RunKind,
    RunStarted,
    SequencedEvent,
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
    interrupts: InterruptWatch


class Run:
    """One run (spec 1, "Run Lifecycle"). Made by `BubbleConnection.run`; use as `async with`.

    What is said goes out in order, in the background, each event exactly once; `flush` waits until it is durable, and so does leaving the
    block. The outcome is `success`, `failed` if an exception leaves the block, `interrupted` if it is cancelled or `interrupted` is set.
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
        self.thread_id = thread_id
        self.run_id = new_id() if run_id is None else run_id
        self.interrupted = asyncio.Event()
        self._services = services
        self._kind: RunKind | UnsetType = UNSET if kind is None else kind
        self._snapshot_seq: int | UnsetType = UNSET if snapshot_seq is None else snapshot_seq
        self._watches_interrupts = watch_interrupts
        self._outbox = Outbox(self._send)
        self._principal_id = ""
        self._started_seq = 0
        self._finished = False
        self._texts = 0
        self._open_text: str | None = None
        self._stack = AsyncExitStack()
        self._silence: asyncio.TimerHandle | None = None

    @property
    def started_seq(self) -> int:
        """The seq of its `run_started`; 0 before it was entered."""
        return self._started_seq

    # --- what is said -----------------------------------------------------------------------------------------------------------

    async def text(self, delta: str) -> None:
        """Says a piece of text. Pieces in a row are one text part of the message.

        Waits only while much is on the way. Raises `Conflict` after the end of the run, and whatever appending raised meanwhile.
        """
        if self._open_text is None:
            self._texts += 1
            self._open_text = f"text-{self._texts}"
            await self._say({"type": "text-start", "id": self._open_text})
        await self._say({"type": "text-delta", "id": self._open_text, "delta": delta})

    async def part(self, chunk: Mapping[str, object] | Raw, *, version: PartVersion = "ai-sdk-v6") -> None:
        """Says one chunk of the vocabulary `version`; a `Raw` goes out with the bytes it has. Raises like `text`, and `InvalidRequest`."""
        await self._end_text()
        await self._say(chunk, version=version)

    async def flush(self) -> None:
        """Returns once everything said so far is durable. Raises whatever appending raised."""
        await self._outbox.drain()

    def observe(self, event: SequencedEvent) -> None:
        """Sets `interrupted` if the event asks this run to stop: for those who follow the thread anyway."""
        asked = event.event
        if isinstance(asked, RunInterruptRequested) and asked.run_id == self.run_id:
            self.interrupted.set()

    async def finish(self, *, outcome: Outcome = "success") -> None:
        """Ends the run now, durably. Leaving the block afterwards does nothing more."""
        if self._finished:
            return
        end = RunFinished(principal_id=self._principal_id, run_id=self.run_id, outcome=outcome)
        try:
            await self._end_text()
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

    async def _end_text(self) -> None:
        if self._open_text is not None:
            ended, self._open_text = self._open_text, None
            await self._say({"type": "text-end", "id": ended})

    async def _say(self, chunk: Mapping[str, object] | Raw, *, version: PartVersion = "ai-sdk-v6") -> None:
        if self._finished:
            raise Conflict("The run has finished.", details={"runId": self.run_id, "state": "finished"})
        part = chunk if isinstance(chunk, Raw) else raw(chunk)
        event = MessagePart(principal_id=self._principal_id, run_id=self.run_id, part=part, version=version)
        await self._outbox.put(encoded(event))

    # --- life -------------------------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        if self._principal_id:
            raise RuntimeError("A run is entered once.")
        async with self._stack as stack:
            if self._watches_interrupts:
                await stack.enter_async_context(self._watch())
            await stack.enter_async_context(beside(self._outbox.run()))
            await self._begin()
            stack.callback(self._stop_listening)
            self._spoke()
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        async with self._stack:
            try:
                await finish_despite_cancellation(self._finish_after(error), grace=_GRACE)
            except BubbleError as failure:
                if error is None:
                    raise
                error.add_note(f"The run could not be finished: {failure}")

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
        return "success" if error is None else "failed"

    def _watch(self) -> AbstractAsyncContextManager[None]:
        return self._services.interrupts.watching(self.thread_id, self.run_id, self.interrupted)

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


def _is_cancellation(error: BaseException | None) -> bool:
    return isinstance(error, asyncio.CancelledError | GeneratorExit)
