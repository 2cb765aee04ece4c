"""What chunks cost, in steps of the interpreter instead of seconds: the same on every machine, however busy."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from types import FrameType

import pytest

from bubble.assembler.reducer import MessageReducer

Chunk = Mapping[str, object]


def text(count: int) -> list[Chunk]:
    return [
        {"type": "text-start", "id": "t"},
        *({"type": "text-delta", "id": "t", "delta": " word"} for _ in range(count)),
    ]


def blocks(count: int) -> list[Chunk]:
    """Reasoning in thousands of short blocks."""
    fields = ({"type": "reasoning-start"}, {"type": "reasoning-delta", "delta": "hm"}, {"type": "reasoning-end"})
    return [{**field, "id": str(number)} for number in range(count // 3) for field in fields]


def tool_input(pieces: Sequence[str], encoding: str = "json") -> list[Chunk]:
    start = {"type": "tool-input-start", "toolCallId": "c", "toolName": "edit", "inputEncoding": encoding}
    return [start, *({"type": "tool-input-delta", "toolCallId": "c", "inputTextDelta": piece} for piece in pieces)]


def string(count: int) -> list[Chunk]:
    return tool_input(['{"content":"', *("line \\n" for _ in range(count))])


def array(count: int) -> list[Chunk]:
    return tool_input(["[0", *(f",{number}" for number in range(count))])


def objects(count: int) -> list[Chunk]:
    return tool_input(['{"edits":[{}', *(f',{{"line":{number},"keep":[true,null]}}' for number in range(count))])


def quirks(count: int) -> list[Chunk]:
    """An escaped quote in a name and signs in exponents: what the repair of the original reads in its own way."""
    return tool_input(['{"a\\"b":[{}', *(f',{{"n":{number}e+1}}' for number in range(count))])


def broken(count: int) -> list[Chunk]:
    return tool_input(['{"a":1 2,"b":"', *("more" for _ in range(count))])


def plain_text(count: int) -> list[Chunk]:
    return tool_input([" word" for _ in range(count)], encoding="text")


def digits(count: int) -> list[Chunk]:
    return tool_input(["7" for _ in range(count)])


def calls(count: int) -> list[Chunk]:
    """Many calls in one step, each with its output."""
    available = {"type": "tool-input-available", "toolName": "get", "input": {"city": "Oslo"}}
    fields = (
        {"type": "tool-input-start", "toolName": "get"},
        available,
        {"type": "tool-output-available", "output": 7},
    )
    return [{**field, "toolCallId": str(number)} for number in range(count // 3) for field in fields]


def data(count: int) -> list[Chunk]:
    return [{"type": "data-x", "id": str(number // 2), "data": number} for number in range(count)]


def outputs(count: int) -> list[Chunk]:
    """Ever other outputs of a call whose input was still streaming in."""
    begun = tool_input(['{"a":[', "1,"])
    return [
        *begun,
        *({"type": "tool-output-available", "toolCallId": begun[0]["toolCallId"], "output": n} for n in range(count)),
    ]


def files(count: int) -> list[Chunk]:
    return [{"type": "file", "url": "data:,x", "mediaType": "text/plain"} for _ in range(count)]


def members(count: int) -> list[Chunk]:
    """An object that is open, and gets a member each time."""
    return tool_input(["{", *(f'"key-{number:05}":1000,' for number in range(count))])


def keys(count: int) -> list[Chunk]:
    return [{"type": "message-metadata", "messageMetadata": {f"key-{number:05}": 1}} for number in range(count)]


def steps(chunks: Sequence[Chunk], *, looks: bool) -> int:
    """How many functions are called, those of the interpreter included."""
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:  # noqa: ARG001 - what `sys.setprofile` calls
        nonlocal count
        count += event in {"call", "c_call"}

    reducer = MessageReducer()
    sys.setprofile(note)
    try:
        for chunk in chunks:
            reducer.apply(chunk)
            if looks:
                reducer.snapshot()
        reducer.snapshot()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.requirement("TA-R-06")
@pytest.mark.parametrize("looks", [False, True], ids=["at the end", "after each"])
@pytest.mark.parametrize(
    "chunks",
    [
        text,
        blocks,
        string,
        array,
        objects,
        quirks,
        broken,
        plain_text,
        digits,
        calls,
        data,
        outputs,
        files,
        members,
        keys,
    ],
    ids=lambda chunks: chunks.__name__,
)
def test_twice_as_many_chunks_take_twice_the_steps(chunks: Callable[[int], list[Chunk]], *, looks: bool) -> None:
    assert steps(chunks(1_200), looks=looks) <= 2.02 * steps(chunks(600), looks=looks)


def bytes_of_a_look(chunks: Sequence[Chunk]) -> int:
    """How many bytes it takes to apply one of the last few chunks and to look; what grows in leaps had no need to in that one."""
    reducer, last = MessageReducer(), len(chunks) - 8
    for chunk in chunks[:last]:
        reducer.apply(chunk)
    reducer.snapshot()
    taken = []
    tracemalloc.start()
    try:
        for chunk in chunks[last:]:
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            reducer.apply(chunk)
            reducer.snapshot()
            taken.append(tracemalloc.get_traced_memory()[1] - before)
    finally:
        tracemalloc.stop()
    return min(taken)


@pytest.mark.requirement("TA-R-06", "TA-R-09")
@pytest.mark.parametrize(
    ("chunks", "copied"),
    [
        (text, ["word " * 3_000]),
        (string, ["line \n" * 3_000, "line \\n" * 3_000]),
        (array, [[None] * 3_000, ",1000" * 3_000]),
        (objects, [[None] * 3_000, ',{"line":1000,"keep":[true,null]}' * 3_000]),
        (blocks, [[None] * 1_000]),
        (calls, [[None] * 1_000]),
        (data, [[None] * 1_500]),
        (files, [[None] * 3_000]),
        (members, [dict.fromkeys(range(3_000)), '"key-00000":1000,' * 3_000]),
        (keys, [dict.fromkeys(range(3_000))]),
    ],
    ids=["text", "string", "array", "objects", "blocks", "calls", "data", "files", "members", "keys"],
)
def test_a_snapshot_copies_the_text_or_the_places_of_what_grows_and_nothing_twice(
    chunks: Callable[[int], list[Chunk]], copied: list[object]
) -> None:
    assert bytes_of_a_look(chunks(3_000)) < sum(map(sys.getsizeof, copied)) + 2_000
