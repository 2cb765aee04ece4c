"""The reducer against npm `ai` itself, side by side on random chunks, texts and shapes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from random import Random
from typing import Any

import pytest

from bubble.assembler.chunks import validate_chunk
from bubble.assembler.partial_json import parse_partial_json
from bubble.assembler.reducer import MessageReducer, ReducerError
from bubble.protocol.errors import InvalidRequest
from tests.assembler.vectors import canonical, decoded
from tests.interop.ai_sdk.oracle import MISSING, Oracle, PackagesMissing, running_oracle
from tests.interop.ai_sdk.scripts import (
    PIECES,
    Message,
    RandomChunk,
    random_chunk,
    random_chunks,
    random_message,
    random_text,
    random_value,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(MISSING is not None, reason=f"missing: {MISSING}"),
]

# `BUBBLE_SEED` has a run again; `BUBBLE_SCRIPTS` asks for more of them.
SEED = int(os.environ.get("BUBBLE_SEED") or time.time_ns() % 2**32)
SCRIPTS = int(os.environ.get("BUBBLE_SCRIPTS") or 2_000)


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Oracle]:
    with ExitStack() as stack:
        try:
            running = stack.enter_context(running_oracle(tmp_path_factory.mktemp("ai-sdk")))
        except PackagesMissing as error:
            pytest.skip(f"missing: npm's packages: {error}")
        yield running


def folded(chunks: list[RandomChunk], message: Message | None) -> dict[str, Any]:
    """What the reducer makes of the chunks, up to the first that fails, told as the oracle tells it.

    It is the same whether somebody looks at every snapshot or only at the last.
    """
    reducer, unseen = MessageReducer(message), MessageReducer(message)
    snapshots: list[Any] = []
    errors: list[Any] = []
    for index, chunk in enumerate(chunks):
        if chunk["type"] == "error":
            errors.append((index, None, None))
        try:
            if reducer.apply(chunk):
                snapshots.append([index, reducer.snapshot()])
        except ReducerError as error:
            errors.append((index, error.chunk_type, error.chunk_id))
            break
        unseen.apply(chunk)
    assert unseen.snapshot() == reducer.snapshot()
    return {"snapshots": snapshots, "errors": errors}


def errors_of(answer: dict[str, Any], chunks: list[Any]) -> list[Any]:
    """The oracle's errors, likewise; a TypeError has no type of its own, here it is the chunk's."""
    return [
        (
            error["chunk"],
            error.get("chunkType", chunks[error["chunk"]]["type"] if error["name"] == "TypeError" else None),
            error.get("chunkId"),
        )
        for error in answer["errors"]
    ]


@pytest.mark.requirement("TA-R-01", "TA-R-02", "TA-R-03", "TA-R-07")
def test_random_chunks_give_the_same_snapshots_and_errors(oracle: Oracle) -> None:
    print(f"BUBBLE_SEED={SEED}")  # noqa: T201 - to have a failure again
    random = Random(SEED)  # noqa: S311 - a test's dice
    message: Message | None = None
    for script in range(SCRIPTS):
        chunks = random_chunks(random, random.randrange(1, 40), message=message)
        theirs = oracle.fold(chunks, message)
        ours = folded(chunks, message)
        told = f"script {script}: {chunks!r} on {message!r}"
        assert ours["errors"] == errors_of(theirs, chunks), told
        assert [index for index, _ in ours["snapshots"]] == [index for index, _ in theirs["snapshots"]], told
        for (_, mine), (index, other) in zip(ours["snapshots"], theirs["snapshots"], strict=True):
            assert canonical(mine) == canonical(decoded(other)), f"after chunk {index}, {told}"
        last = theirs["snapshots"][-1][1] if theirs["snapshots"] else None
        can_be_said = decoded(last) == last  # in JSON, so that the original can go on with it
        message = random_message(random, last) if last and can_be_said and random.random() < 0.3 else None


@pytest.mark.requirement("TA-R-04", "TA-R-05")
def test_random_texts_are_repaired_and_read_alike(oracle: Oracle) -> None:
    print(f"BUBBLE_SEED={SEED}")  # noqa: T201 - to have a failure again
    random = Random(SEED)  # noqa: S311 - a test's dice
    for _ in range(SCRIPTS // 100):
        texts = [random_text(random) for _ in range(500)]
        texts += ["".join(random.choice(PIECES) for _ in range(random.randrange(12))) for _ in range(500)]
        for text, theirs in zip(texts, oracle.parse(texts), strict=True):
            ours = parse_partial_json(text)
            assert ours.state == theirs["state"], repr(text)
            assert ours.has_value == ("value" in theirs), repr(text)
            if ours.has_value:
                assert canonical(ours.value) == canonical(decoded(theirs["value"])), repr(text)


@pytest.mark.requirement("TA-R-08")
def test_chunks_of_random_shapes_are_accepted_and_refused_alike(oracle: Oracle) -> None:
    print(f"BUBBLE_SEED={SEED}")  # noqa: T201 - to have a failure again
    random = Random(SEED)  # noqa: S311 - a test's dice
    for _ in range(SCRIPTS // 100):
        chunks = [spoiled(random, random_chunk(random, {})) for _ in range(1_000)]
        for chunk, is_valid in zip(chunks, oracle.are_valid(chunks), strict=True):
            assert accepts(chunk) == is_valid, repr(chunk)


def spoiled(random: Random, chunk: RandomChunk) -> RandomChunk:
    """Perhaps with another value in a field, or without it."""
    if random.random() < 0.5:
        name = random.choice(list(chunk))
        chunk = (
            chunk | {name: random_value(random)}
            if random.random() < 0.7
            else {k: v for k, v in chunk.items() if k != name}
        )
    return chunk


def accepts(chunk: object) -> bool:
    try:
        validate_chunk(chunk)
    except InvalidRequest:
        return False
    return True
