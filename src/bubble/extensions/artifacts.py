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

from bubble.assembler import GrowingData, MessagePart, NativePart
from bubble.assembler.text import GrowingText, joined
from bubble.extensions import Extension
from bubble.protocol.errors import InvalidRequest
from bubble.protocol.jsontext import JSONValue

__all__ = ["ARTIFACT", "EXTENSION", "ArtifactHandler"]

ARTIFACT: Final = "data-bubble-artifact"

_LABELS: Final = ("name", "mediaType")
_CONTENTS: Final = ("text", "data", "url")
_OPS: Final = frozenset({"create", "append", "replace", "delete"})


class _Artifact:
    """One artifact. Adding to its text costs what is added."""

    def __init__(self, shown: JSONValue) -> None:
        known = shown if isinstance(shown, Mapping) else {}
        self._id = known.get("artifactId")
        self._is_deleted = "deleted" in known
        self._labels = {} if self._is_deleted else _picked(known, _LABELS)
        self._content = {} if self._is_deleted else _picked(known, _CONTENTS)
        self._text: GrowingText | None = None  # what there is instead of `_content`, once something was appended

    def add(self, part: NativePart, /) -> None:
        """What `part` does to it."""
        op = part["op"]
        if self._is_deleted or op in ("create", "delete"):
            self._labels = {}
        if self._is_deleted or op != "append":
            self._content, self._text = {}, None
        self._id, self._is_deleted = part["artifactId"], op == "delete"
        self._labels |= _picked(part, _LABELS)
        if op == "append":
            self._append(str(part["text"]))
        else:
            self._content = _picked(part, _CONTENTS)

    def _append(self, text: str) -> None:
        if self._text is None:
            self._text = GrowingText()
            self._text.append(joined(_text(self._content)))
        self._text.append(joined(text))

    def value(self) -> JSONValue:
        """The `data` of its part."""
        if self._is_deleted:
            return {"artifactId": self._id, "deleted": True}
        content: dict[str, JSONValue] = self._content if self._text is None else {"text": self._text.text()}
        return {"artifactId": self._id, **_picked(self._labels, _LABELS), **content}


class ArtifactHandler:
    """The part handler of the kind `artifact`."""

    kind: Final = "artifact"

    def to_chunks(self, part: NativePart, /) -> list[dict[str, JSONValue]] | None:
        """The one data chunk of this artifact; None for what is no artifact part."""
        if not _is_artifact(part):
            return None
        return [{"type": ARTIFACT, "id": part["artifactId"], "data": None}]

    def grow(self, current: JSONValue, /) -> GrowingData:
        """The artifact that `current` shows, to be gone on with."""
        return _Artifact(current)

    def from_ui_part(self, part: MessagePart, /) -> NativePart | None:
        """The native part that gives the artifact whole; `InvalidRequest` for a part of its type that shows no artifact."""
        data = part.get("data")
        if part.get("type") != ARTIFACT or not isinstance(data, Mapping):
            return None
        native = _whole(data)
        if native is None or not _is_artifact(native):
            raise InvalidRequest(
                "the `data` of an artifact needs an `artifactId`, and has beside it `deleted: true`, or else a `name`, a `mediaType` "
                "and one of `text`, `data` and `url`, as far as there are any"
            )
        if part.get("id") not in (None, data["artifactId"]):
            raise InvalidRequest("the `id` of an artifact's part is its `artifactId`")
        return native


def _whole(data: Mapping[str, JSONValue]) -> dict[str, JSONValue] | None:
    """The part that gives the artifact as `data` shows it; None where there is more in `data` than that can say."""
    about, rest = {"kind": ArtifactHandler.kind, **_picked(data, ("artifactId",))}, data.keys() - {"artifactId"}
    if data.get("deleted") is True:
        return {**about, "op": "delete"} if rest == {"deleted"} else None
    names = (*_LABELS, *_CONTENTS)
    return {**about, "op": "create", **_picked(data, names)} if rest <= set(names) else None


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
