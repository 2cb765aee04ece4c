"""What there was of a message when a bot cleared its session, so that only what comes after is shown of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from bubble.assembler import BubbleMessage, MessagePart
from bubble.server.messages.portion import Portion, View, first_seq, last_seq, run_of

__all__ = ["Before", "BeforeClear"]

#: By the id of a message, the parts that it had.
Before: TypeAlias = Mapping[str, Sequence[MessagePart]]


class BeforeClear:
    """Looks it up in the log, once for each run that goes on after a clear. The last clear alone is remembered."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._cleared_seq = 0
        self._runs: dict[str, Before] = {}

    async def find(self, messages: Iterable[BubbleMessage], *, cleared_seq: int) -> Before:
        """Of those messages that changed after the event `cleared_seq` (0 for none) and were there before: what they were then.

        Raises what the store raises.
        """
        found: dict[str, Sequence[MessagePart]] = {}
        for message in messages:
            run_id = run_of(message)
            if (
                run_id is not None
                and message["id"] not in found
                and first_seq(message) <= cleared_seq < last_seq(message)
            ):
                found |= await self._run(run_id, cleared_seq)
        return found

    async def _run(self, run_id: str, cleared_seq: int) -> Before:
        if cleared_seq != self._cleared_seq:
            self._cleared_seq, self._runs = cleared_seq, {}
        runs = self._runs
        if run_id not in runs:
            run = (await self._view.log.runs([run_id])).get(run_id)
            if run is not None and run.last_seq <= cleared_seq:  # somebody reacts to it; it may go on yet
                return {}
            runs[run_id] = await self._read(run_id, cleared_seq)
        return runs[run_id]

    async def _read(self, run_id: str, seq: int) -> Before:
        portion = await Portion.fold(self._view, first=seq + 1, last=seq, runs=[run_id])
        messages = (await portion.snapshot()).messages
        return {message["id"]: message["parts"] for message in messages if run_of(message) == run_id}
