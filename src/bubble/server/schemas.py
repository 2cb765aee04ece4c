"""JSON schemas of what travels, for the documents that describe the server: made from the structs, completed where a struct cannot tell."""

from __future__ import annotations

import copy
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

import msgspec

from bubble.assembler import BubbleMessage
from bubble.protocol.events import (
    MessagePart,
    ParticipantJoined,
    ParticipantLeft,
    RunFinished,
    RunInterruptRequested,
    RunStarted,
    ThreadTitleUpdated,
    ToolCallApproval,
    ToolCallResult,
)
from bubble.protocol.identifiers import MAX_SEQ

__all__ = ["REFERENCE", "Schemas", "event_components", "message_components", "reference", "struct_components"]

Schemas: TypeAlias = dict[str, object]

REFERENCE: Final = "#/components/schemas/{name}"

_APPENDABLE: Final = (RunStarted, RunFinished, MessagePart, ToolCallApproval, ToolCallResult, RunInterruptRequested)
_SERVER_EMITTED: Final = (ParticipantJoined, ParticipantLeft, ThreadTitleUpdated)
_ENVELOPE: Final[Mapping[str, object]] = {
    "seq": {"type": "integer", "minimum": 1, "maximum": MAX_SEQ},
    "createdAt": {"type": "string", "format": "date-time"},
}
_ANYTHING: Final = "any JSON value; kept to the byte"


def reference(name: str) -> Schemas:
    """A reference to a component."""
    return {"$ref": REFERENCE.format(name=name)}


def schema_of(content: object) -> Schemas:
    """The schema of an annotation: a struct, or a union of structs."""
    if isinstance(content, types.UnionType):
        return {"anyOf": [schema_of(each) for each in typing.get_args(content)]}
    if isinstance(content, type) and issubclass(content, msgspec.Struct):
        return reference(content.__name__)
    return {"type": "object"}


def struct_components(structs: Iterable[type[msgspec.Struct]]) -> Schemas:
    """The schemas of structs and of everything in them, by name."""
    _, components = msgspec.json.schema_components(list(structs), ref_template=REFERENCE)
    return typing.cast("Schemas", components)


def event_components() -> Schemas:
    """The nine events: `AppendableEvent`, what a client may append, and `StoredEvent`, what every reader gets."""
    components = struct_components([*_APPENDABLE, *_SERVER_EMITTED])
    _complete(components)
    stored = {f"Stored{name}": _stored(schema) for name, schema in list(components.items())}
    components.update(stored)
    for kind in _SERVER_EMITTED:  # they exist as stored events only
        del components[kind.__name__]
    components["AppendableEvent"] = _choice([kind.__name__ for kind in _APPENDABLE], components)
    components["StoredEvent"] = _choice(
        [f"Stored{kind.__name__}" for kind in (*_APPENDABLE, *_SERVER_EMITTED)], components
    )
    return components


def message_components() -> Schemas:
    """`BubbleMessage`, as the assembler makes it, and what it consists of."""
    _, components = msgspec.json.schema_components([BubbleMessage], ref_template=REFERENCE)
    completed = typing.cast("Schemas", components)
    part = {"type": "object", "properties": {"type": {"type": "string"}}, "required": ["type"]}
    message = typing.cast("Schemas", completed["BubbleMessage"])
    message["description"] = (
        "One message. Its parts are the AI SDK's UI parts; those called `data-bubble-…` are Bubble's own."
    )
    _properties(message)["parts"] = {"type": "array", "items": part}
    return completed


def _complete(components: Schemas) -> None:
    part = _properties(components["MessagePart"])
    part["part"] = {"type": "object", "description": "one chunk, kept to the byte"}
    typing.cast("Schemas", components["MessagePart"])["anyOf"] = [
        _vocabulary("ai-sdk-v6", "type"),
        _vocabulary("bubble-v1", "kind"),
    ]
    typing.cast("Schemas", components["ToolCallApproval"])["not"] = {
        "properties": {"approved": {"const": True}},
        "required": ["approved", "reason"],
    }
    result = _properties(components["ToolCallResult"])
    result["input"] = result["output"] = {"description": _ANYTHING}


def _vocabulary(version: str, discriminator: str) -> Schemas:
    part = {"type": "object", "properties": {discriminator: {"type": "string"}}, "required": [discriminator]}
    return {"properties": {"version": {"const": version}, "part": part}}


def _properties(schema: object) -> Schemas:
    return typing.cast("dict[str, Schemas]", schema)["properties"]


def _stored(schema: object) -> Schemas:
    copied = typing.cast("dict[str, typing.Any]", copy.deepcopy(schema))
    copied["title"] = f"Stored{copied['title']}"
    copied["properties"] = {**_ENVELOPE, **copied["properties"]}
    copied["required"] = [*_ENVELOPE, *copied["required"]]
    return copied


def _choice(names: list[str], components: Schemas) -> Schemas:
    tags = {_tag(components[name]): reference(name)["$ref"] for name in names}
    return {
        "oneOf": [reference(name) for name in names],
        "discriminator": {"propertyName": "type", "mapping": tags},
    }


def _tag(schema: object) -> str:
    kind = typing.cast("Schemas", _properties(schema)["type"])
    values = typing.cast("list[str]", kind["enum"])
    return values[0]
