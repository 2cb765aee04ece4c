"""Reading the fields of a chunk: what is used as a name or appended must be a string, everything else is carried as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from bubble.assembler.failure import ReducerError
from bubble.protocol.jsontext import JSONValue

__all__ = ["DATA", "Chunk", "Part", "is_truthy", "optional_string", "present", "string"]

Chunk: TypeAlias = Mapping[str, JSONValue]
Part: TypeAlias = dict[str, JSONValue]

DATA: Final = "data-"


def string(chunk: Chunk, name: str) -> str:
    """The field `name`; `ReducerError` where it is not a string."""
    value = chunk.get(name)
    if isinstance(value, str):
        return value
    raise _malformed(chunk, name)


def optional_string(chunk: Chunk, name: str) -> str | None:
    """The field `name`, None where it is absent or null; `ReducerError` for anything else than a string."""
    value = chunk.get(name)
    if value is None or isinstance(value, str):
        return value
    raise _malformed(chunk, name)


def present(chunk: Chunk, *names: str) -> Part:
    """Those of the fields that the chunk has, null included."""
    return {name: chunk[name] for name in names if name in chunk}


def is_truthy(value: object) -> bool:
    """Whether JavaScript would take `value` for true: containers always are, even when empty."""
    return isinstance(value, (dict, list)) or bool(value)


def _malformed(chunk: Chunk, name: str) -> ReducerError:
    return ReducerError(f"`{name}` of a {chunk['type']} chunk must be a string.", chunk_type=str(chunk["type"]))
