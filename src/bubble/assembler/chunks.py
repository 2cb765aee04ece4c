"""The shape of every chunk of `ai-sdk-v6`, and the check whether a chunk has it.

The shapes are those that `uiMessageChunkSchema` of npm `ai` 6 accepts: more fields than named may be there, a field that may be left out
may not be null, and a field that takes anything must be there all the same. The reducer is more lenient; this is for producers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from bubble.assembler.fields import DATA
from bubble.protocol.errors import InvalidRequest

__all__ = ["validate_chunk"]

_SKIPPED: Final = "__proto__"  # what stands under this name in metadata is not looked at


@dataclass(frozen=True, slots=True, kw_only=True)
class _Field:
    """What a field may hold; `what` says it to a person."""

    what: str
    fits: Callable[[object], bool]
    is_required: bool = True


_Shape: TypeAlias = Mapping[str, _Field]


def validate_chunk(chunk: object) -> None:
    """Raises `InvalidRequest` that names the field, where `chunk` is not a chunk that may be sent."""
    if not isinstance(chunk, Mapping):
        raise InvalidRequest("A chunk must be an object.")
    kind = chunk.get("type")
    shape = _shape(kind)
    if shape is None:
        raise InvalidRequest(f"`type` of a chunk cannot be {kind!r}.")
    for name, field in shape.items():
        if name not in chunk:
            if field.is_required:
                raise InvalidRequest(f"A {kind} chunk must have `{name}`.")
        elif not field.fits(chunk[name]):
            raise InvalidRequest(f"`{name}` of a {kind} chunk must be {field.what}.")


def _shape(kind: object) -> _Shape | None:
    if not isinstance(kind, str):
        return None
    return _DATA_SHAPE if kind.startswith(DATA) else _SHAPES.get(kind)


def _is_json(value: object) -> bool:
    """Plain JSON data with finite numbers; not by recursion, so that depth does not matter."""
    todo = [value]
    while todo:
        node = todo.pop()
        if isinstance(node, Mapping):
            todo.extend(_looked_at(node))
        elif isinstance(node, list):
            todo.extend(node)
        elif not (node is None or isinstance(node, (str, int)) or (isinstance(node, float) and math.isfinite(node))):
            return False
    return True


def _is_json_object(value: object) -> bool:
    return isinstance(value, Mapping) and _is_json(value)


def _is_provider_metadata(value: object) -> bool:
    return isinstance(value, Mapping) and all(_is_json_object(inner) for inner in _looked_at(value))


def _looked_at(value: Mapping[str, object]) -> Iterable[object]:
    return (inner for name, inner in value.items() if name != _SKIPPED)


def _one_of(*words: str) -> _Field:
    return _Field(what=" or ".join(words), fits=lambda value: isinstance(value, str) and value in words)


def _optional(field: _Field) -> _Field:
    return replace(field, is_required=False)


_STRING: Final = _Field(what="a string", fits=lambda value: isinstance(value, str))
_ANYTHING: Final = _Field(what="anything", fits=lambda value: True)  # noqa: ARG005 - one of the checks
_FLAG: Final = _optional(_Field(what="true or false", fits=lambda value: isinstance(value, bool)))
_TEXT: Final = _optional(_STRING)
_EXTRA: Final = _optional(_ANYTHING)
_PROVIDER: Final = _optional(_Field(what="objects of JSON by provider", fits=_is_provider_metadata))
_TOOL: Final = _optional(_Field(what="an object of JSON", fits=_is_json_object))

_BLOCK: Final[_Shape] = {"id": _STRING, "providerMetadata": _PROVIDER}
_BLOCK_DELTA: Final[_Shape] = {**_BLOCK, "delta": _STRING}
_OUTCOME: Final[_Shape] = {
    "toolCallId": _STRING,
    "providerExecuted": _FLAG,
    "providerMetadata": _PROVIDER,
    "toolMetadata": _TOOL,
    "dynamic": _FLAG,
}
_CALL: Final[_Shape] = {**_OUTCOME, "toolName": _STRING, "title": _TEXT}

_DATA_SHAPE: Final[_Shape] = {"id": _TEXT, "data": _ANYTHING, "transient": _FLAG}
_SHAPES: Final[Mapping[str, _Shape]] = {
    "text-start": _BLOCK,
    "text-delta": _BLOCK_DELTA,
    "text-end": _BLOCK,
    "reasoning-start": _BLOCK,
    "reasoning-delta": _BLOCK_DELTA,
    "reasoning-end": _BLOCK,
    "error": {"errorText": _STRING},
    "tool-input-start": {**_CALL, "inputEncoding": _optional(_one_of("json", "text"))},
    "tool-input-delta": {"toolCallId": _STRING, "inputTextDelta": _STRING},
    "tool-input-available": {**_CALL, "input": _ANYTHING},
    "tool-input-error": {**_CALL, "input": _ANYTHING, "errorText": _STRING},
    "tool-approval-request": {
        "approvalId": _STRING,
        "toolCallId": _STRING,
        "approvalDescriptor": _EXTRA,
        "inputSchemaInput": _EXTRA,
        "signature": _TEXT,
    },
    "tool-output-available": {**_OUTCOME, "output": _ANYTHING, "preliminary": _FLAG},
    "tool-output-error": {**_OUTCOME, "errorText": _STRING},
    "tool-output-denied": {"toolCallId": _STRING},
    "source-url": {"sourceId": _STRING, "url": _STRING, "title": _TEXT, "providerMetadata": _PROVIDER},
    "source-document": {
        "sourceId": _STRING,
        "mediaType": _STRING,
        "title": _STRING,
        "filename": _TEXT,
        "providerMetadata": _PROVIDER,
    },
    "file": {"url": _STRING, "mediaType": _STRING, "providerMetadata": _PROVIDER},
    "start-step": {},
    "finish-step": {},
    "start": {"messageId": _TEXT, "messageMetadata": _EXTRA},
    "finish": {
        "finishReason": _optional(_one_of("stop", "length", "content-filter", "tool-calls", "error", "other")),
        "messageMetadata": _EXTRA,
    },
    "abort": {"reason": _TEXT},
    "message-metadata": {"messageMetadata": _ANYTHING},
}
