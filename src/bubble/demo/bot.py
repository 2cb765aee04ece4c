"""Echo, the bot of the play: gives recorded replies, asks before it gives money away, and stops when it is asked to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from msgspec import Raw

from bubble.client import BubbleConnection, Run
from bubble.demo.recordings import recording
from bubble.demo.script import BOT, COUNT, LONG_REPLY, REFUND, SCRIPT, Line, run_of_reply
from bubble.protocol.events import RunFinished, SequencedEvent

__all__ = ["COUNTS_TO", "HOLDS_AT", "Echo"]

# Up to here, as a part of the long reply, the bot waits for nobody; the rest is kept until it `may_go_on`, however fast it all goes.
HOLDS_AT: Final = 0.7
# Here it waits to be stopped, so that nobody has to be quick.
COUNTS_TO: Final = 30
_INPUT: Final = ('{"amount":', '20,"curr', 'ency":"EUR"}')


class Echo:
    """Follows the thread like everybody else and acts upon each finished run of a person, in the order of the script.

    `pace` scales its pauses; `may_go_on` returns when the rest of the long reply may come.
    """

    def __init__(
        self, bubble: BubbleConnection, thread_id: str, *, pace: float, may_go_on: Callable[[], Awaitable[None]]
    ) -> None:
        self._bubble = bubble
        self._thread_id = thread_id
        self._pace = pace
        self._may_go_on = may_go_on

    async def perform(self) -> None:
        """To the end of the script."""
        lines = iter(SCRIPT)
        async with self._bubble.subscribe_thread(self._thread_id) as events:
            async for stored in events:
                event = stored.event
                if isinstance(event, RunFinished) and event.principal_id != BOT.principal_id:
                    line = next(lines)
                    await self._act_upon(line, stored)
                    if line is SCRIPT[-1]:
                        return

    async def _act_upon(self, line: Line, asked: SequencedEvent) -> None:
        for name in line.replies:
            async with self._run(run_of_reply(name), asked) as run:
                await self._reply(run, name, line)
        if line.act == "refund":
            async with self._run(REFUND, asked) as run:
                await self._refund(run, line)
        elif line.act == "count":
            async with self._run(COUNT, asked) as run:
                await self._count(run, line)

    def _run(self, run_id: str, asked: SequencedEvent) -> Run:
        return self._bubble.run(
            self._thread_id, run_id=run_id, kind="agent_work", snapshot_seq=asked.seq, watch_interrupts=run_id == COUNT
        )

    async def _reply(self, run: Run, name: str, line: Line) -> None:
        chunks = recording(name)
        for number, chunk in enumerate(chunks, start=1):
            await run.part(Raw(chunk))
            await self._pause(line)
            if name == LONG_REPLY and number == int(len(chunks) * HOLDS_AT):
                await self._may_go_on()

    async def _refund(self, run: Run, line: Line) -> None:
        for words in ("That is more ", "than I may give ", "without asking."):
            await run.reasoning(words)
            await self._pause(line)
        call = await run.tool_call("refund")
        for piece in _INPUT:
            await call.input_delta(piece)
            await self._pause(line)
        await call.input_available()
        if await call.approval():
            await call.output({"refunded": True})
            await run.text("Done: 20 euros are on their way to you.")
        else:
            await call.denied()
            await run.text("I am not allowed to.")

    async def _count(self, run: Run, line: Line) -> None:
        for number in range(1, COUNTS_TO + 1):
            if run.interrupted.is_set():
                return
            await run.text(f"{number} ")
            await self._pause(line)
        await run.interrupted.wait()

    async def _pause(self, line: Line) -> None:
        await asyncio.sleep(line.pause * self._pace)
