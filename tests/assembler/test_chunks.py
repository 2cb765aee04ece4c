"""The shape of chunks: against what the original's schema was seen to accept."""

from __future__ import annotations

from typing import Any

import pytest

from bubble.assembler.chunks import validate_chunk
from bubble.protocol.errors import InvalidRequest
from bubble.protocol.jsontext import JSONValue
from tests.assembler.vectors import decoded, read_vectors

VECTORS = list(read_vectors("chunk-schema"))
TEXT: dict[str, JSONValue] = {"type": "text-start", "id": "1"}


@pytest.mark.requirement("TA-R-08")
@pytest.mark.parametrize("vector", [vector for vector in VECTORS if vector["valid"]], ids=str)
def test_what_the_original_accepts_is_accepted(vector: dict[str, Any]) -> None:
    validate_chunk(decoded(vector["chunk"]))


@pytest.mark.requirement("TA-R-08")
@pytest.mark.parametrize("vector", [vector for vector in VECTORS if not vector["valid"]], ids=str)
def test_what_the_original_refuses_is_refused(vector: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        validate_chunk(decoded(vector["chunk"]))


@pytest.mark.requirement("TA-R-08")
@pytest.mark.parametrize(
    ("chunk", "says"),
    [
        ({"type": "text-delta", "id": "1"}, "A text-delta chunk must have `delta`."),
        ({"type": "text-delta", "id": "1", "delta": 5}, "`delta` of a text-delta chunk must be a string."),
        ({"type": "start", "messageId": None}, "`messageId` of a start chunk must be a string."),
        ({"type": "data-x", "data": 1, "transient": 1}, "`transient` of a data-x chunk must be true or false."),
        ({"type": "finish", "finishReason": "tired"}, "`finishReason` of a finish chunk must be stop or length or"),
        ({**TEXT, "providerMetadata": {"a": 1}}, "`providerMetadata` of a text-start chunk must be objects of JSON"),
        ({"type": "text"}, "`type` of a chunk cannot be 'text'."),
        ({}, "`type` of a chunk cannot be None."),
        ({"type": ["text-start"]}, "`type` of a chunk cannot be"),
        (None, "A chunk must be an object."),
        ([], "A chunk must be an object."),
    ],
)
def test_the_field_that_is_wrong_is_named(chunk: object, says: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        validate_chunk(chunk)
    assert refused.value.message.startswith(says)


@pytest.mark.requirement("TA-R-08")
def test_metadata_must_be_what_json_can_say() -> None:
    for odd in (float("inf"), float("nan"), {1, 2}, object()):
        with pytest.raises(InvalidRequest):
            validate_chunk({**TEXT, "providerMetadata": {"p": {"k": [odd]}}})
    deep: list[object] = []
    for _ in range(50_000):
        deep = [deep]
    validate_chunk({**TEXT, "providerMetadata": {"p": {"k": deep, "__proto__": object()}}})
