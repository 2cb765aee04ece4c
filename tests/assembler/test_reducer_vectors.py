"""The reducer against what the original was seen to do, snapshot by snapshot."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET

from bubble.assembler.reducer import MessageReducer, ReducerError
from bubble.protocol.events import MessagePart, decode_event
from bubble.protocol.jsontext import dump_json, load_json
from tests.assembler.vectors import canonical, decoded, read_vectors
from tests.protocol.shapes import part_event

VECTORS = [vector for vector in read_vectors("vectors") if vector["category"] != "unvalidated"]
UNVALIDATED = [vector for vector in read_vectors("vectors") if vector["category"] == "unvalidated"]
RUNS = [vector for vector in VECTORS if vector["group"] == "random" and "message" not in vector][:50]


class Run:
    """A vector's chunks put through a reducer, up to the first that fails."""

    def __init__(self, vector: dict[str, Any]) -> None:
        self.reducer = MessageReducer(decoded(vector.get("message")))
        self.snapshots: list[Any] = []
        self.emitted: list[int] = []
        self.error: tuple[int, ReducerError] | None = None
        for index, chunk in enumerate(vector["chunks"]):
            try:
                emits = self.reducer.apply(decoded(chunk))
            except ReducerError as error:
                self.error = (index, error)
                break
            if emits:
                self.emitted.append(index)
                self.snapshots.append(self.reducer.snapshot())


def name_of(vector: dict[str, Any]) -> str:
    return str(vector["name"])


@pytest.mark.requirement("TA-R-01", "TA-R-03")
@pytest.mark.parametrize("vector", VECTORS, ids=name_of)
def test_every_emission_is_the_snapshot_of_the_original(vector: dict[str, Any]) -> None:
    run = Run(vector)
    assert run.emitted == vector["snapshotChunk"]
    expected = vector["snapshotSamples"] if vector["snapshots"] is None else enumerate(vector["snapshots"])
    for index, snapshot in expected:
        assert canonical(run.snapshots[index]) == canonical(decoded(snapshot)), f"snapshot {index}"
    assert canonical(run.snapshots[-1] if run.snapshots else None) == canonical(decoded(vector["final"]))


@pytest.mark.requirement("TA-R-01")
@pytest.mark.parametrize("vector", [vector for vector in VECTORS if "stateAtEnd" in vector], ids=name_of)
def test_what_was_not_emitted_at_the_end_is_there(vector: dict[str, Any]) -> None:
    reducer = Run(vector).reducer
    state = decoded(vector["stateAtEnd"])
    assert canonical(list(reducer.parts())) == canonical(state["parts"])
    assert canonical(reducer.metadata) == canonical(state.get("metadata", UNSET))
    if vector["snapshotCount"]:
        assert canonical(reducer.snapshot()) == canonical(state)


@pytest.mark.requirement("TA-R-02")
@pytest.mark.parametrize("vector", VECTORS, ids=name_of)
def test_a_chunk_fails_where_the_original_threw(vector: dict[str, Any]) -> None:
    thrown = [error for error in vector["errors"] if vector["chunks"][error["chunk"]]["type"] != "error"]
    error = Run(vector).error
    assert (error is not None) == bool(thrown)
    if error is None:
        return
    (expected,) = thrown
    index, raised = error
    assert index == expected["chunk"] == vector["consumedChunks"] - 1
    assert raised.chunk_type == expected.get("chunkType", vector["chunks"][index]["type"])
    assert raised.chunk_id == expected.get("chunkId")
    assert raised.message == expected["message"]


@pytest.mark.requirement("TA-R-10")
@pytest.mark.parametrize("vector", UNVALIDATED, ids=name_of)
def test_chunks_that_rely_on_coercion_break_nothing(vector: dict[str, Any]) -> None:
    run = Run(vector)
    first = vector["schemaInvalid"][0]
    assert run.error is None or run.error[0] >= first
    assert canonical(run.snapshots[:first]) == canonical(vector["snapshots"][:first])


@pytest.mark.requirement("EV-23")
@pytest.mark.parametrize("vector", RUNS, ids=name_of)
def test_the_message_parts_of_a_run_give_its_whole_message(vector: dict[str, Any]) -> None:
    """Through the wire and back, as whoever follows the thread has them."""
    reducer = MessageReducer()
    for chunk in vector["chunks"]:
        event = decode_event(part_event(dump_json(chunk), version="ai-sdk-v6")).event
        assert isinstance(event, MessagePart)
        part = load_json(event.part)
        assert isinstance(part, dict)
        reducer.apply(part)
    assert canonical(reducer.snapshot()) == canonical(decoded(vector.get("stateAtEnd", vector["final"])))
