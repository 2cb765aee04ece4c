"""Random threads: several people and bots at once in each other's runs, with everything that can be said."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import TypeAlias

from hypothesis import strategies as st

from bubble.protocol.errors import Conflict
from bubble.protocol.jsontext import JSONValue
from bubble.store.base import BubbleStore

__all__ = ["Move", "Writer", "filled", "moves"]

Json: TypeAlias = dict[str, JSONValue]
#: Who, in which of the runs that go on, what, and a number for the details.
Move: TypeAlias = tuple[str, int, str, int]

PEOPLE = ("ann", "bob", "bot")
RUNS = 4


def _chunk(**part: JSONValue) -> Json:
    return {"type": "message_part", "version": "ai-sdk-v6", "part": part}


def _native(**part: JSONValue) -> Json:
    return {"type": "message_part", "version": "bubble-v1", "part": part}


def _reaction(number: int, head: int) -> Json:
    target = max(1, head - (number * number) % (head + 1))
    return _native(
        kind="reaction", targetSeq=target, emoji="🎉👍"[number % 2], op="remove" if number % 5 == 0 else "add"
    )


def _approval(number: int) -> Json:
    return {"type": "tool_call_approval", "toolCallId": f"c{number % 3}", "approved": True}


def _result(number: int) -> Json:
    return {"type": "tool_call_result", "toolCallId": f"c{number % 3}", "input": {}, "output": number}


_SAID: dict[str, Callable[[int], Json]] = {
    "begin text": lambda n: _chunk(type="text-start", id=str(n % 2)),
    "text": lambda n: _chunk(type="text-delta", id=str(n % 2), delta=f"{n} "),
    "more text": lambda n: _chunk(type="text-delta", id=str(n % 2), delta=f"{n}… "),
    "no text": lambda n: _chunk(type="text-delta", id=str(n % 2), delta=""),
    "end text": lambda n: _chunk(type="text-end", id=str(n % 2)),
    "begin reasoning": lambda n: _chunk(type="reasoning-start", id=str(n % 2)),
    "reasoning": lambda n: _chunk(type="reasoning-delta", id=str(n % 2), delta=f"{n}? "),
    "input": lambda n: _chunk(type="tool-input-available", toolCallId=f"c{n % 3}", toolName="look", input={"n": n}),
    "ask": lambda n: _chunk(type="tool-approval-request", approvalId=f"a{n}", toolCallId=f"c{n % 3}"),
    "output": lambda n: _chunk(type="tool-output-available", toolCallId=f"c{n % 3}", output=n),
    "file": lambda n: _chunk(type="file", url=f"data:,{n}", mediaType="text/plain"),
    "data": lambda n: _chunk(type="data-x", id=str(n % 2), data=n),
    "start": lambda n: _chunk(type="start", messageId=f"m{n}"),
    "metadata": lambda n: _chunk(type="message-metadata", messageMetadata={"n": n}),
    "step": lambda _: _chunk(type="start-step"),
    "end step": lambda _: _chunk(type="finish-step"),
    "error": lambda n: _chunk(type="error", errorText=f"oh {n}"),
    "agent event": lambda n: _native(kind="agent_event", name="seen", id=str(n % 2)),
    "unknown kind": lambda n: _native(kind="x", n=n),
    "approve": _approval,
    "result": _result,
    "interrupt": lambda _: {"type": "run_interrupt_requested"},
}
_RARE = ("begin run", "end run", "join", "title", "react")
#: What is said often comes more than once.
_KINDS = (
    *_SAID,
    *_RARE,
    *(6 * ("begin run",)),
    *(2 * ("end run", "react")),
    *(3 * ("begin text", "text", "more text")),
)


def moves(*, most: int) -> st.SearchStrategy[list[Move]]:
    """What happens in a thread: a few moves of hypothesis' own choice, or `most` at random."""
    move = st.tuples(st.sampled_from(PEOPLE), st.integers(0, RUNS - 1), st.sampled_from(_KINDS), st.integers(0, 40))
    return st.lists(move, min_size=1, max_size=most) | st.integers(0, 2**32).map(lambda seed: _at_random(seed, most))


def _at_random(seed: int, count: int) -> list[Move]:
    chance = Random(seed)  # noqa: S311 - repeatable
    return [
        (chance.choice(PEOPLE), chance.randrange(RUNS), chance.choice(_KINDS), chance.randrange(41))
        for _ in range(count)
    ]


class Writer:
    """Writes what moves say into a thread, as far as the lifecycle of runs allows. `head` is the seq of what was written last."""

    def __init__(self, store: BubbleStore, thread_id: str) -> None:
        self.head = 0
        self._store = store
        self._thread_id = thread_id
        self._lives = [0] * RUNS

    async def write(self, made: Iterable[Move]) -> int:
        """The head afterwards."""
        for who, place, kind, number in made:
            event = _event(who, f"r{place}.{self._lives[place]}", kind, number, self.head)
            try:
                self.head = (await self._store.append(self._thread_id, event)).seq
            except Conflict:
                continue
            if kind == "end run":
                self._lives[place] += 1
        return self.head

    async def say(self, run_id: str) -> int:
        """A message of its own, with the id `run_id`; the head afterwards."""
        of_run: Json = {"principalId": "ann", "runId": run_id}
        said = ({"type": "run_started"}, _SAID["begin text"](0), _SAID["text"](0), {"type": "run_finished"})
        self.head = (await self._store.append_many(self._thread_id, [{**event, **of_run} for event in said]))[-1].seq
        return self.head


async def filled(store: BubbleStore, thread_id: str, made: Iterable[Move]) -> int:
    """Writes what the moves say; the head."""
    return await Writer(store, thread_id).write(made)


def _event(who: str, run_id: str, kind: str, number: int, head: int) -> Json:
    of_run: Json = {"principalId": who, "runId": run_id}
    if kind == "begin run":
        return {"type": "run_started", **of_run, "kind": ("user_input", "agent_work", "system_work")[number % 3]}
    if kind == "end run":
        return {"type": "run_finished", **of_run, "outcome": "success"}
    if kind == "join":
        return {"type": "participant_joined", "principalId": who, "byPrincipalId": "ann"}
    if kind == "title":
        return {"type": "thread_title_updated", "byPrincipalId": who, "title": str(number)}
    return of_run | (_reaction(number, head) if kind == "react" else _SAID[kind](number))
