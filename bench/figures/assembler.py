"""What it costs to reduce chunks into a message.

Speed is measured as somebody who shows the message has it: a snapshot after each chunk that gives one. The original does the same on the
same chunks, in its own process, in the same round. Growth is measured without looking in between: twice the chunks, how many times the
time. It is measured with looking as well, for information: there a snapshot copies the text that grows, and pointers to what does not.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from typing import Final

from bench.figure import Bar, Bench, Figure, Measure, Parties, Round, Row, Sample
from bench.load.chunks import CASES, Chunks
from bench.servers.ai_sdk import Original, original_reducer
from bubble.assembler.reducer import MessageReducer

__all__ = ["REDUCER"]

_TRIES: Final = 3
_CHUNKS: Final = 5_000
_LONG: Final[Mapping[str, int]] = {
    "text": 50_000,
    "tool input": 50_000,
    "array": 10_000,
    "many tools": 3_000,  # chunks; twice that are 2,000 calls
    "reasoning": 6_000,
}
_TIMES_FASTER: Final[Mapping[str, float]] = {"text": 1, "tool input": 10, "array": 1, "many tools": 10, "reasoning": 1}


def _open(bench: Bench, stack: ExitStack) -> Parties:
    original = stack.enter_context(original_reducer(bench.directory))
    parties: dict[str, Measure] = {}
    for name, case in CASES.items():
        count, long = bench.scale.count(_CHUNKS), bench.scale.count(_LONG[name])
        chunks = case(count)
        parties[name] = partial(_reduce, chunks, looks=True)
        parties[f"{name}, twice as long, seen"] = partial(_reduce, case(2 * count), looks=True)
        parties[f"{name}, long"] = partial(_reduce, case(long), looks=False)
        parties[f"{name}, twice as long"] = partial(_reduce, case(2 * long), looks=False)
        if original is not None:
            parties[f"{name}, npm ai"] = partial(_original, original, chunks, snapshots=_snapshots(chunks))
    return parties


def _reduce(chunks: Chunks, *, looks: bool) -> Sample:
    """The best of a few times: chunks a second by the clock, and the processor's milliseconds."""
    rate, busy = 0.0, float("inf")
    for _ in range(_TRIES):
        gc.collect()
        begin, begin_busy = time.perf_counter(), time.process_time()
        _fold(chunks, looks=looks)
        busy = min(busy, time.process_time() - begin_busy)
        rate = max(rate, len(chunks) / (time.perf_counter() - begin))
    return {"rate": rate, "ms": busy * 1_000}


def _fold(chunks: Chunks, *, looks: bool) -> None:
    reducer = MessageReducer()
    for chunk in chunks:
        if reducer.apply(chunk) and looks:
            reducer.snapshot()
    reducer.snapshot()


def _original(original: Original, chunks: Chunks, *, snapshots: int) -> Sample:
    return {"rate": len(chunks) / original.reduce(chunks, snapshots=snapshots)}


def _snapshots(chunks: Chunks) -> int:
    reducer = MessageReducer()
    return sum(reducer.apply(chunk) for chunk in chunks)


def _rate(measured: Round, party: str) -> float:
    return measured[party]["rate"]


def _ms(measured: Round, party: str) -> float:
    return measured[party]["ms"]


def _speed(name: str) -> Row:
    theirs = f"{name}, npm ai"
    return Row(
        title=f"chunks reduced, {name}, a snapshot each",
        unit="/s",
        parties=(name, theirs),
        ours=partial(_rate, party=name),
        reference=partial(_rate, party=theirs),
        against="npm ai",
        bar=Bar(at_least=_TIMES_FASTER[name]),
    )


def _growth(name: str, *, twice: str, once: str, count: int, looks: str = "", bar: Bar | None = None) -> Row:
    return Row(
        title=f"time to reduce {count:,} chunks, {name}{looks}",
        unit="ms",
        parties=(twice, once),
        ours=partial(_ms, party=twice),
        reference=partial(_ms, party=once),
        against="half as many",
        bar=bar,
    )


def _unseen(name: str) -> Row:
    twice, once = f"{name}, twice as long", f"{name}, long"
    return _growth(name, twice=twice, once=once, count=2 * _LONG[name], bar=Bar(at_most=2.2))


def _seen(name: str) -> Row:
    twice = f"{name}, twice as long, seen"
    return _growth(name, twice=twice, once=name, count=2 * _CHUNKS, looks=", a snapshot each")


REDUCER: Final = Figure(
    name="reducer",
    open=_open,
    rows=(*map(_speed, CASES), *map(_unseen, CASES), *map(_seen, CASES)),
)
