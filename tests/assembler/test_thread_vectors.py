"""A thread of one author against the reducer, and so against the original: nothing but what the reference names is different."""

from __future__ import annotations

from typing import Any

import pytest

from bubble.assembler import Grouping
from bubble.assembler.reducer import MessageReducer, ReducerError
from tests.assembler.logs import Event, started
from tests.assembler.threads import assembled
from tests.assembler.vectors import canonical, decoded, read_vectors

VECTORS = [
    vector for vector in read_vectors("vectors") if "message" not in vector and vector["category"] != "unvalidated"
]


def said(chunk: Event) -> Event:
    return {"type": "message_part", "principalId": "bot", "runId": "r", "version": "ai-sdk-v6", "part": chunk}


def parts_alone(chunks: list[Event]) -> list[Any]:
    """The parts that the reducer makes of the chunks, a `start` without its `messageId`, those that fail left out."""
    reducer = MessageReducer()
    for chunk in chunks:
        is_start = chunk.get("type") == "start"
        try:
            reducer.apply({name: value for name, value in chunk.items() if not (is_start and name == "messageId")})
        except ReducerError:
            continue
    return list(reducer.parts())


@pytest.mark.requirement("TA-R-01")
@pytest.mark.parametrize("grouping", ["speaker", "run"])
@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: str(vector["name"]))
def test_a_thread_of_one_author_shows_what_the_chunks_make_alone(vector: dict[str, Any], grouping: Grouping) -> None:
    chunks = [decoded(chunk) for chunk in vector["chunks"]]
    expected = parts_alone(chunks)
    messages = assembled([started(), *map(said, chunks)], grouping)
    if not messages:  # starts of steps alone are none
        assert all(part["type"] == "step-start" for part in expected)
        return
    shown = [dict(part) for message in messages for part in message["parts"]]
    for part in shown:
        if part["type"] == "file":  # the one member that a thread keeps and the original drops
            part.pop("filename", None)
    assert canonical(shown) == canonical(expected)
