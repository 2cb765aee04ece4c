"""What threads cost, in steps of the interpreter and in bytes: the same on every machine, however busy."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable, Sequence
from types import FrameType

import pytest

from bubble.assembler import Grouping, ThreadAssembler
from bubble.protocol.events import SequencedEvent
from tests.assembler.logs import (
    Event,
    approval,
    chunk,
    delta,
    finished,
    interrupt,
    native,
    numbered,
    reaction,
    result,
    said,
    shown,
    start,
    started,
    tool,
)
from tests.assembler.threads import ASSEMBLER, run


def one_text(count: int) -> list[Event]:
    return [started(), start(), *(delta(" word") for _ in range(count))]


def many_runs(count: int) -> list[Event]:
    runs = [[started(f"r{n}"), *said("hello", run=f"r{n}"), finished(f"r{n}")] for n in range(count // 5)]
    return [event for each in runs for event in each]


def two_voices(count: int) -> list[Event]:
    """Every delta opens a continuation."""
    return [start(), start(who="ann"), *(delta(" word", who=("bot", "ann")[n % 2]) for n in range(count))]


def two_runs(count: int) -> list[Event]:
    return [start(), start("s"), *(delta(" word", ("r", "s")[n % 2]) for n in range(count))]


def calls(count: int) -> list[Event]:
    return [
        event
        for n in range(count // 3)
        for event in (tool(str(n)), approval(str(n)), chunk("tool-output-available", toolCallId=str(n), output=n))
    ]


def early_decisions(count: int) -> list[Event]:
    return [*(approval(str(n)) for n in range(count // 2)), *(tool(str(n)) for n in range(count // 2))]


def facts(count: int) -> list[Event]:
    return [event for n in range(count // 2) for event in (chunk("data-x", id="1", data=n), interrupt())]


def reactions(count: int) -> list[Event]:
    """On a thread of many interleaved runs, to all of it."""
    half = count // 2
    return [*two_runs(half), *(reaction(3 + n, who=f"p{n}") for n in range(half))]


def artifacts(count: int) -> list[Event]:
    return [native("artifact", artifactId="a", op="append", text="x") for _ in range(count)]


def metadata(count: int) -> list[Event]:
    return [chunk("message-metadata", messageMetadata={"tokens": n}) for n in range(count)]


def refused_openings(count: int) -> list[Event]:
    """Much that waits for a message, and as much that cannot open one."""
    third = count // 3
    return [
        *(chunk("message-metadata", messageMetadata={"tokens": n}) for n in range(third)),
        *(chunk("start-step") for _ in range(third)),
        *(chunk("text-start") for _ in range(third)),
    ]


def ends_upon_ends(count: int) -> list[Event]:
    """A run with many voices, finished as often."""
    half = count // 2
    return [*(start(who=f"p{n}") for n in range(half)), *(finished() for _ in range(half))]


def steps(operation: Callable[[], object]) -> int:
    """How many functions are called, those of the interpreter included."""
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:  # noqa: ARG001 - what `sys.setprofile` calls
        nonlocal count
        count += event in {"call", "c_call"}

    sys.setprofile(note)
    try:
        operation()
    finally:
        sys.setprofile(None)
    return count


def assembled(log: Sequence[SequencedEvent], grouping: Grouping) -> ThreadAssembler:
    thread = ASSEMBLER.open(grouping=grouping)
    run(thread.apply(log))
    run(thread.snapshot())
    return thread


LOGS = [
    one_text,
    many_runs,
    two_voices,
    two_runs,
    calls,
    early_decisions,
    facts,
    reactions,
    artifacts,
    metadata,
    refused_openings,
    ends_upon_ends,
]


@pytest.mark.requirement("TA-96", "TA-40")
@pytest.mark.parametrize("grouping", ["speaker", "run"])
@pytest.mark.parametrize("make", LOGS, ids=lambda make: make.__name__)
def test_twice_as_many_events_take_twice_the_steps(make: Callable[[int], list[Event]], grouping: Grouping) -> None:
    some, more = numbered(make(600)), numbered(make(1_200))
    assert steps(lambda: assembled(more, grouping)) <= 2.05 * steps(lambda: assembled(some, grouping))


@pytest.mark.requirement("TA-40", "TA-96")
def test_an_event_at_the_end_of_a_long_thread_costs_what_it_costs_at_the_beginning() -> None:
    def cost_after(count: int) -> int:
        thread = assembled(numbered(one_text(count)), "speaker")
        [event] = numbered([delta(" word")], first=count + 3)
        return steps(lambda: run(thread.apply([event])))

    assert cost_after(2_000) == cost_after(20)


@pytest.mark.requirement("TA-96")
def test_a_reaction_to_a_long_message_that_is_over_costs_what_it_costs_on_a_short_one() -> None:
    def cost_with(count: int) -> int:
        blocks = [event for n in range(count) for event in said("a", block=str(n))]
        thread = assembled(numbered([started(), *blocks, start(block="left open"), finished()]), "speaker")
        run(thread.apply(numbered([reaction(2, who="ann")], first=3 * count + 4)))
        run(thread.snapshot())
        [event] = numbered([reaction(2, who="bob")], first=3 * count + 5)

        def react() -> None:
            run(thread.apply([event]))
            run(thread.snapshot())

        return steps(react)

    assert cost_with(1_000) == cost_with(10)


@pytest.mark.requirement("TA-96", "TA-18")
@pytest.mark.parametrize("make", [one_text, many_runs, two_runs], ids=lambda make: make.__name__)
def test_windows_that_are_read_and_cleared_as_a_thread_grows_take_twice_the_steps_for_twice_the_events(
    make: Callable[[int], list[Event]],
) -> None:
    def drain(log: list[SequencedEvent]) -> None:
        thread = ASSEMBLER.open()
        for first in range(0, len(log), 50):
            run(thread.apply(log[first : first + 50]))
            window = run(thread.window())
            run(thread.clear_window(window.through_seq))

    some, more = numbered(make(1_000)), numbered(make(2_000))
    assert steps(lambda: drain(more)) <= 2.05 * steps(lambda: drain(some))


def long_artifact(count: int) -> list[Event]:
    return [native("artifact", artifactId="a", op="append", text="x" * 100) for _ in range(count)]


def ever_more_metadata(count: int) -> list[Event]:
    """A key each time, beside the others and within what is there."""
    keys = ({f"key-{n}": n, "usage": {f"key-{n}": n}} for n in range(count))
    return [start(), delta("a"), *(chunk("message-metadata", messageMetadata=metadata) for metadata in keys)]


def streamed_input(count: int) -> list[Event]:
    pieces = (chunk("tool-input-delta", toolCallId="c", inputTextDelta="x" * 20) for _ in range(count))
    return [
        chunk("tool-input-start", toolCallId="c", toolName="write"),
        chunk("tool-input-delta", toolCallId="c", inputTextDelta='{"text":"'),
        *pieces,
    ]


def streamed_input_of_a_call_that_is_decided_on(count: int) -> list[Event]:
    return [approval(), result(), *streamed_input(count)]


def streamed_input_with_questions(count: int) -> list[Event]:
    """Each piece followed by what makes something else of the call."""
    between = [
        chunk("tool-approval-request", toolCallId="c", approvalId="q"),
        chunk("tool-output-available", toolCallId="c", output=1, preliminary=True),
        chunk("tool-output-error", toolCallId="c", errorText="e"),
        chunk("tool-output-denied", toolCallId="c"),
    ]
    log = streamed_input(count // 2)
    return [*log[:2], *(event for n, piece in enumerate(log[2:]) for event in (piece, between[n % 4]))]


def streamed_input_in_later_steps(count: int) -> list[Event]:
    log = streamed_input(count // 2)
    late = chunk("tool-input-delta", toolCallId="c", inputTextDelta="x")
    return [*log, *(event for _ in range(count // 4) for event in (chunk("start-step"), late))]


def bytes_taken(log: list[SequencedEvent]) -> int:
    """How many bytes applying the events takes, one after the other; those count that are given back at once."""
    thread, taken = ASSEMBLER.open(), 0
    tracemalloc.start()
    try:
        for event in log:
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            run(thread.apply([event]))
            _, peak = tracemalloc.get_traced_memory()
            taken += peak - before
    finally:
        tracemalloc.stop()
    return taken


@pytest.mark.requirement("TA-96", "TA-40")
@pytest.mark.parametrize(
    "make",
    [
        one_text,
        long_artifact,
        ever_more_metadata,
        streamed_input,
        streamed_input_of_a_call_that_is_decided_on,
        streamed_input_with_questions,
        streamed_input_in_later_steps,
    ],
    ids=lambda make: make.__name__,
)
def test_what_is_there_is_not_copied_for_what_is_added(make: Callable[[int], list[Event]]) -> None:
    some, more = numbered(make(600)), numbered(make(1_200))
    assert bytes_taken(more) <= 2.1 * bytes_taken(some)


def memory(log: list[SequencedEvent]) -> float:
    """Bytes that a thread holds, per byte of its events' texts."""
    tracemalloc.start()
    try:
        thread = assembled(
            [SequencedEvent(event.seq, event.created_at, bytes(bytearray(event.text))) for event in log], "speaker"
        )
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert run(thread.snapshot()).head_seq == len(log)
    return used / sum(len(event.text) for event in log)


@pytest.mark.slow
@pytest.mark.requirement("TA-96")
@pytest.mark.parametrize(("make", "most"), [(one_text, 2), (many_runs, 10)], ids=["one text", "many messages"])
def test_a_thread_of_a_hundred_thousand_events_takes_a_small_multiple_of_its_text(
    make: Callable[[int], list[Event]], most: float
) -> None:
    log = numbered(make(100_000))
    assert memory(log) < most


@pytest.mark.slow
@pytest.mark.requirement("TA-96")
def test_a_hundred_thousand_deltas_are_one_text() -> None:
    thread = assembled(numbered(one_text(100_000)), "speaker")
    assert shown(run(thread.snapshot()).messages) == [("r", " word" * 100_000)]
