"""What there was of a message when a bot cleared its session, so that only what comes after is shown of it.

*Theory of operation.* A run that goes on over a clear is folded up to there, once; that tells what there was. From there on it is folded by
itself, without what only makes its texts longer. Who talks in between does not matter to that: a part that is there stays where it is, and
the assembler keeps the object for as long as nothing is said in it. So what was said again is known, though it may be the same.

What is left out that way is missing at the next clear. So each clear amid a run folds that run from its beginning, which is linear in the
run for a clear, and worth it as long as there are few in one: a session is cleared between answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from bubble.assembler import BubbleMessage, MessagePart
from bubble.server.messages.portion import Portion, View, first_seq, last_seq, run_of
from bubble.server.watching.rows import TEXTS

__all__ = ["Before", "BeforeClear"]

#: By the id of a message, the parts that it had; None for one that was said again and is no text.
Before: TypeAlias = Mapping[str, Sequence[MessagePart | None]]

_DELTA: Final = b'-delta"'
_DELTAS: Final = frozenset({"text-delta", "reasoning-delta", "tool-input-delta"})


class _Chunk(msgspec.Struct):
    type: str


class _Saying(msgspec.Struct):
    version: str
    part: _Chunk


_decode: Final = msgspec.json.Decoder(_Saying).decode


class BeforeClear:
    """Looks it up in the log. The last clear alone is remembered."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._cleared_seq = 0
        self._runs: dict[str, _Run] = {}
        self._lock = asyncio.Lock()

    async def find(self, messages: Iterable[BubbleMessage], *, cleared_seq: int, head: int) -> Before:
        """Of those messages that changed after the event `cleared_seq` (0 for none) and were there before: what they were then.

        `head` is the event up to which they are told. Raises what the store raises.
        """
        astride = [message for message in messages if first_seq(message) <= cleared_seq < last_seq(message)]
        found: dict[str, Sequence[MessagePart | None]] = {}
        async with self._lock:
            for run_id in dict.fromkeys(map(run_of, astride)):
                if run_id is not None:
                    found |= await self._of_run(run_id, cleared_seq, head)
        return found

    async def _of_run(self, run_id: str, cleared_seq: int, head: int) -> Before:
        if cleared_seq != self._cleared_seq:
            self._cleared_seq, self._runs = cleared_seq, {}
        if run_id not in self._runs:
            known = (await self._view.log.runs([run_id])).get(run_id)
            if known is not None and known.last_seq <= cleared_seq:  # somebody reacts to it; it may go on yet
                return {}
            self._runs[run_id] = await _Run.at(self._view, run_id, cleared_seq)
        return await self._runs[run_id].before(head)


class _Run:
    """One that goes on. Made by `at`."""

    def __init__(
        self, view: View, run_id: str, portion: Portion, messages: Mapping[str, BubbleMessage], seq: int
    ) -> None:
        self._view = view
        self._run_id = run_id
        self._portion = portion
        self._messages = messages
        self._seq = seq

    @classmethod
    async def at(cls, view: View, run_id: str, seq: int) -> _Run:
        """As it was at the event `seq`."""
        portion = await Portion.fold(view, first=seq + 1, last=seq, runs=[run_id])
        return cls(view, run_id, portion, await _messages(portion, run_id), seq)

    async def before(self, head: int) -> Before:
        """What there was, knowing what was said up to `head`."""
        if self._seq < head:
            async for texts in self._view.log.of_runs([self._run_id], self._seq + 1, head):
                await self._portion.add([text for text in texts if not _only_grows(text)])
            self._seq = head
        now = await _messages(self._portion, self._run_id)
        return {id: list(map(_before, then["parts"], now[id]["parts"])) for id, then in self._messages.items()}


def _only_grows(text: bytes) -> bool:
    """Whether the event does nothing but make longer what is there. One that cannot be read so is folded, which does no harm."""
    if _DELTA not in text:
        return False
    try:
        event = _decode(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return event.version == "ai-sdk-v6" and event.part.type in _DELTAS


def _before(then: MessagePart, now: MessagePart) -> MessagePart | None:
    return then if then is now or then["type"] in TEXTS else None


async def _messages(portion: Portion, run_id: str) -> Mapping[str, BubbleMessage]:
    messages = (await portion.snapshot()).messages
    return {message["id"]: message for message in messages if run_of(message) == run_id}
