"""Artifacts: things that an agent makes beside its message, a file or a document that grows and is revised (assembler, section 6).

A native part says what happens to one:

    {"kind": "artifact", "artifactId": "…", "op": "create" | "append" | "replace" | "delete",
     "name"?: "…", "mediaType"?: "…", "text"? | "data"? | "url"?: …}

All parts of one author's run about one artifact are one `data-bubble-artifact` part of the message, which always shows what there is now:

- `create` and `replace` give the artifact whole: `{artifactId, name?, mediaType?, text? | data? | url?}`. A `name` or `mediaType` that
  `replace` does not mention stays.
- `append` adds its `text` to the text that is there, and may set `name` and `mediaType`. Where there was something else than text, or
  nothing, the text begins with it.
- `delete` leaves `{artifactId, deleted: true}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bubble.assembler import MessagePart, NativePart
from bubble.extensions import Extension
from bubble.protocol.errors import InvalidRequest
from bubble.protocol.jsontext import JSONValue

__all__ = ["ARTIFACT", "EXTENSION", "ArtifactHandler"]

ARTIFACT: Final = "data-bubble-artifact"

_LABELS: Final = ("name", "mediaType")
_CONTENTS: Final = ("text", "data", "url")
_OPS: Final = frozenset({"create", "append", "replace", "delete"})


class ArtifactHandler:
    """The part handler of the kind `artifact`."""

    kind: Final = "artifact"

    def to_chunks(self, part: NativePart, /) -> list[dict[str, JSONValue]] | None:
        """The one data chunk of this artifact; None for what is no artifact part."""
        if not _is_artifact(part):
            return None
        return [{"type": ARTIFACT, "id": part["artifactId"], "data": self.fold(part, None)}]

    def fold(self, part: NativePart, current: JSONValue, /) -> JSONValue:
        """The artifact after `part`, given what it was."""
        artifact_id, op = part["artifactId"], part["op"]
        if op == "delete":
            return {"artifactId": artifact_id, "deleted": True}
        known = current if isinstance(current, Mapping) and "deleted" not in current else {}
        labels = {} if op == "create" else _picked(known, _LABELS)
        if op == "append":
            content: dict[str, JSONValue] = {"text": _text(known) + _text(part)}
        else:
            content = _picked(part, _CONTENTS)
        return {"artifactId": artifact_id, **labels, **_picked(part, _LABELS), **content}

    def from_ui_part(self, part: MessagePart, /) -> NativePart | None:
        """The native part that gives the artifact whole; `InvalidRequest` for a part of its type that shows no artifact."""
        data = part.get("data")
        if part.get("type") != ARTIFACT or not isinstance(data, Mapping):
            return None
        native = _whole(data)
        if not _is_artifact(native):
            raise InvalidRequest(
                "the `data` of an artifact needs an `artifactId` and at most one of `text`, `data` and `url`"
            )
        return native


def _whole(data: Mapping[str, JSONValue]) -> dict[str, JSONValue]:
    about = {"kind": ArtifactHandler.kind, **_picked(data, ("artifactId",))}
    if data.get("deleted") is True:
        return {**about, "op": "delete"}
    return {**about, "op": "create", **_picked(data, (*_LABELS, *_CONTENTS))}


def _is_artifact(part: NativePart) -> bool:
    strings = (
        part.get("artifactId"),
        part.get("op"),
        *(part[name] for name in (*_LABELS, "text", "url") if name in part),
    )
    if not all(isinstance(value, str) for value in strings) or part["op"] not in _OPS:
        return False
    contents = [name for name in _CONTENTS if name in part]
    return contents == ["text"] if part["op"] == "append" else len(contents) <= 1


def _text(data: Mapping[str, JSONValue]) -> str:
    text = data.get("text")
    return text if isinstance(text, str) else ""


def _picked(data: Mapping[str, JSONValue], names: tuple[str, ...]) -> dict[str, JSONValue]:
    return {name: data[name] for name in names if name in data}


EXTENSION: Final = Extension(name="artifacts", version=1, part_handlers=(ArtifactHandler(),))
