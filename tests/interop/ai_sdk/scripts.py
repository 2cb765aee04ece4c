"""Random chunks: few ids, so that they meet; every type and trap; only now and then something that fails."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, TypeAlias

from bubble.assembler.reducer import MessageReducer, ReducerError
from bubble.protocol.jsontext import JSONValue

__all__ = [
    "PIECES",
    "Message",
    "RandomChunk",
    "random_chunk",
    "random_chunks",
    "random_message",
    "random_text",
    "random_value",
]

RandomChunk: TypeAlias = dict[str, JSONValue]
Message: TypeAlias = dict[str, JSONValue]

WORDS = [
    "",
    "a",
    "Oslo",
    "naïve",
    "日本",
    "👍🏽",
    "\ud83d",
    "\ude00",
    "\x00",
    'q"\\',
    "__proto__",
    "constructor",
    "prototype",
    "toString",
]
NUMBERS = [0, -1, 7, 2**53 + 1, 12345678901234567890, -0.0, 1.5, 1e-7, 1e21]
PIECES = [
    '"',
    "\\",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "1",
    "-",
    "e+5",
    "9e999",
    ".5",
    "tru",
    "null",
    "\\u00",
    "\\ud83d",
    "\ud83d",
    "\ude00",
    " ",
    "\n",
    "x",
]


def random_value(random: Random, depth: int = 2) -> JSONValue:
    """Any JSON."""
    kind = random.randrange(8 if depth else 5)
    if kind > 4:
        items = [random_value(random, depth - 1) for _ in range(random.randrange(4))]
        return items if kind == 5 else {random.choice(WORDS): item for item in items}
    return [None, True, False, random.choice(NUMBERS), random.choice(WORDS)][kind]


def random_text(random: Random) -> str:
    """JSON that is cut off, or spoiled."""
    text = json.dumps(
        random_value(random, 3), ensure_ascii=random.random() < 0.5, indent=random.choice([None, None, 1])
    )
    while random.random() < 0.3:
        at = random.randrange(len(text) + 1)
        text = text[:at] + random.choice(PIECES) + text[at:]
    return text[: random.randrange(len(text) + 1)] if random.random() < 0.7 else text


def random_chunks(
    random: Random, count: int, *, message: Message | None = None, failing: float = 0.02
) -> list[RandomChunk]:
    """Chunks for a message. Of those that it cannot take only the share `failing` is left: the original stops at the first."""
    guide = MessageReducer(message)
    rest: dict[str, str] = {}  # of the input of each call, what has not been sent
    chunks: list[RandomChunk] = []
    while len(chunks) < count:
        chunk = random_chunk(random, rest)
        try:
            guide.apply(chunk)
        except ReducerError:
            if random.random() >= failing:
                continue
        chunks.append(chunk)
    return chunks


def random_chunk(random: Random, rest: dict[str, str]) -> RandomChunk:
    """One chunk of any type."""
    kind = random.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
    chunk = {"type": kind, **_FIELDS[kind](random, rest)}
    return {name: value for name, value in chunk.items() if value is not _ABSENT}


def random_message(random: Random, snapshot: Message) -> Message:
    """A message to go on with: one that was folded before, perhaps of somebody else."""
    return {**snapshot, "role": random.choice(["assistant", "assistant", "assistant", "user"]), "later": 1}


_ABSENT: Any = object()


def _maybe(random: Random, value: JSONValue, *, often: float = 0.3) -> JSONValue:
    return value if random.random() < often else None if random.random() < 0.1 else _ABSENT


def _provider(random: Random) -> JSONValue:
    return _maybe(random, {random.choice("pq"): {"k": random_value(random, 1)}}, often=0.2)


def _block(random: Random, rest: dict[str, str]) -> RandomChunk:  # noqa: ARG001
    return {"id": random.choice(["1", "1", "2", "__proto__"]), "providerMetadata": _provider(random)}


def _delta(random: Random, rest: dict[str, str]) -> RandomChunk:
    return {**_block(random, rest), "delta": random.choice(WORDS)}


def _call(random: Random, rest: dict[str, str]) -> RandomChunk:  # noqa: ARG001
    return {"toolCallId": random.choice(["c1", "c1", "c2"])}


def _described(random: Random, rest: dict[str, str]) -> RandomChunk:
    return {
        **_call(random, rest),
        "toolName": random.choice(["get", "set-it", ""]),
        "providerExecuted": _maybe(random, random.random() < 0.5),
        "providerMetadata": _provider(random),
        "toolMetadata": _maybe(random, {"m": random_value(random, 1)}),
        "dynamic": _maybe(random, random.random() < 0.7),
        "title": _maybe(random, random.choice(WORDS)),
    }


def _input_start(random: Random, rest: dict[str, str]) -> RandomChunk:
    chunk: RandomChunk = {**_described(random, rest), "inputEncoding": _maybe(random, random.choice(["json", "text"]))}
    rest[str(chunk["toolCallId"])] = (
        json.dumps(random_value(random, 3)) if random.random() < 0.6 else random_text(random)
    )
    return chunk


def _input_delta(random: Random, rest: dict[str, str]) -> RandomChunk:
    chunk = _call(random, rest)
    left = rest.get(str(chunk["toolCallId"]), "")
    at = random.randrange(min(len(left), 12) + 1)
    rest[str(chunk["toolCallId"])] = left[at:]
    return {**chunk, "inputTextDelta": left[:at] if left else random.choice(PIECES)}


def _given(random: Random, rest: dict[str, str]) -> RandomChunk:
    return {**_described(random, rest), "input": random_value(random)}


def _refused(random: Random, rest: dict[str, str]) -> RandomChunk:
    return {**_given(random, rest), "errorText": random.choice(WORDS)}


def _approval(random: Random, rest: dict[str, str]) -> RandomChunk:
    return {
        **_call(random, rest),
        "approvalId": random.choice(["a1", "a2"]),
        "approvalDescriptor": _maybe(random, random_value(random)),
        "inputSchemaInput": _maybe(random, random_value(random)),
        "signature": _maybe(random, "s"),
    }


def _output(random: Random, rest: dict[str, str]) -> RandomChunk:
    chunk = _described(random, rest)
    del chunk["toolName"], chunk["title"]
    return {**chunk, "output": random_value(random), "preliminary": _maybe(random, random.random() < 0.5)}


def _failure(random: Random, rest: dict[str, str]) -> RandomChunk:
    chunk = _output(random, rest)
    del chunk["output"], chunk["preliminary"]
    return {**chunk, "errorText": "no"}


def _source(random: Random, rest: dict[str, str]) -> RandomChunk:  # noqa: ARG001
    return {
        "sourceId": "s",
        "url": "https://example.org",
        "mediaType": "text/plain",
        "title": random.choice(WORDS),
        "filename": _maybe(random, "f.txt"),
        "providerMetadata": _provider(random),
    }


def _data(random: Random, rest: dict[str, str]) -> RandomChunk:  # noqa: ARG001
    return {
        "id": _maybe(random, random.choice(["", "d1", "d2"]), often=0.7),
        "data": random_value(random),
        "transient": _maybe(random, random.random() < 0.5, often=0.2),
        "extra": _maybe(random, 1, often=0.1),
    }


def _start(random: Random, rest: dict[str, str]) -> RandomChunk:
    return {"messageId": _maybe(random, random.choice(["m", "m", "m", "n"])), **_finish(random, rest)}


def _finish(random: Random, rest: dict[str, str]) -> RandomChunk:  # noqa: ARG001
    metadata = {random.choice([*WORDS, "k", "k"]): random_value(random) for _ in range(random.randrange(3))}
    return {"messageMetadata": _maybe(random, metadata if random.random() < 0.9 else random_value(random), often=0.8)}


def _nothing(random: Random, rest: dict[str, str]) -> RandomChunk:  # noqa: ARG001
    return {}


_FIELDS: Mapping[str, Callable[[Random, dict[str, str]], RandomChunk]] = {
    "start": _start,
    "finish": _finish,
    "message-metadata": _finish,
    "start-step": _nothing,
    "finish-step": _nothing,
    "abort": _nothing,
    "x-future": _nothing,
    "error": lambda random, _: {"errorText": random.choice(WORDS)},
    "text-start": _block,
    "text-delta": _delta,
    "text-end": _block,
    "reasoning-start": _block,
    "reasoning-delta": _delta,
    "reasoning-end": _block,
    "source-url": _source,
    "source-document": _source,
    "file": _source,
    "data-x": _data,
    "data-": _data,
    "tool-input-start": _input_start,
    "tool-input-delta": _input_delta,
    "tool-input-available": _given,
    "tool-input-error": _refused,
    "tool-approval-request": _approval,
    "tool-output-available": _output,
    "tool-output-error": _failure,
    "tool-output-denied": _call,
}
_WEIGHTS: Mapping[str, int] = {
    **dict.fromkeys(_FIELDS, 4),
    "tool-input-start": 10,
    "tool-input-delta": 20,
    "text-start": 8,
    "text-delta": 8,
    "reasoning-start": 8,
    "reasoning-delta": 8,
    "start": 2,
    "start-step": 3,
    "finish-step": 1,
}
