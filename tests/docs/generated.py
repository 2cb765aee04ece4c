"""The parts of the reference that are made from the code. `python -m tests.docs.generated` writes them; a test compares."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Raw, UnsetType
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from bubble.auth.policy import BUILTIN_ROLES, CAPABILITIES, DEPLOYMENT_CAPABILITIES
from bubble.protocol import events, frames
from bubble.protocol.errors import ERROR_CODES, error_from_code
from bubble.server.durations import duration_text, is_duration
from bubble.server.operations import Operation
from bubble.server.routes import OPERATIONS
from bubble.server.settings import Settings
from tests.docs.generated_messages import MESSAGES
from tests.docs.generated_reef import REEF
from tests.docs.generated_watch import watch_events
from tests.docs.markdown import ROOT, regions, with_region
from tests.docs.tables import code, table

__all__ = ["REGIONS", "written"]

Struct = type[msgspec.Struct]
_REFERENCE = ROOT / "docs" / "reference"


# --- settings ---------------------------------------------------------------------------------------------------------------------------


def settings() -> str:
    """Every option, table by table."""
    parts = [_option_table("", Settings)]
    for name, field in Settings.model_fields.items():
        group = _group_of(field)
        if group is not None:
            doc = (inspect.getdoc(group) or "").partition(" (protocol")[0].rstrip(".")
            parts.append(
                f"\n### {name}\n\n`[{name}]`: {doc[0].lower()}{doc[1:]}.\n\n{_option_table(f'{name}.', group)}"
            )
    return "".join(parts)


def _option_table(prefix: str, model: type[BaseModel]) -> str:
    rows = [
        (code(prefix + name), code(_default(field)) if _default(field) else "", _described(field))
        for name, field in model.model_fields.items()
        if _group_of(field) is None
    ]
    return table(("setting", "default", "what it is"), rows)


def _group_of(field: FieldInfo) -> type[BaseModel] | None:
    choices = (field.annotation, *typing.get_args(field.annotation))
    return next((each for each in choices if isinstance(each, type) and issubclass(each, BaseModel)), None)


def _default(field: FieldInfo) -> str:
    value = field.default
    if field.is_required() or value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return duration_text(value) if is_duration(field) else f"{value:g}"
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value))
    return str(value) if value != {} else ""


def _described(field: FieldInfo) -> str:
    text = re.sub(r"\S*<\w+>\S*", lambda found: code(found[0]), field.description or "")
    text = f"{text[0].upper()}{text[1:]}."
    if typing.get_origin(field.annotation) is Literal:
        choices = ", ".join(code(str(each)) for each in typing.get_args(field.annotation))
        text += f" One of {choices}."
    return text


# --- shapes -----------------------------------------------------------------------------------------------------------------------------


def members(kind: Struct) -> str:
    """A struct's members, optional ones with a question mark: `{threadId?, title?}`."""
    names = [field.encode_name if field.required else f"{field.encode_name}?" for field in msgspec.structs.fields(kind)]
    return code(f"{{{', '.join(names)}}}")


def _tag(kind: Struct) -> str:
    return str(kind.__struct_config__.tag)


def _type_of(annotation: object) -> str:
    if typing.get_origin(annotation) is Annotated:
        return _type_of(typing.get_args(annotation)[0])
    if typing.get_origin(annotation) is Literal:
        return "one of " + ", ".join(code(f'"{each}"') for each in typing.get_args(annotation))
    if annotation is Raw:
        return "any JSON"
    plain = {str: "string", int: "integer", bool: "boolean", None: "null", type(None): "null"}
    if isinstance(annotation, type) and annotation in plain:
        return plain[annotation]
    choices = [_type_of(each) for each in typing.get_args(annotation) if each is not UnsetType]
    return " or ".join(choices)


def _member_rows(kind: Struct) -> Iterator[Sequence[str]]:
    for field in msgspec.structs.fields(kind):
        yield code(field.encode_name), _type_of(field.type), "yes" if field.required else ""


def _doc(thing: object) -> str:
    """A docstring for a table, in the wire's spelling: names in code are camelCase there."""
    return _camel_names(" ".join((inspect.getdoc(thing) or "").split()))


def _camel_names(text: str) -> str:
    def camel(found: re.Match[str]) -> str:
        if found[1] in _UNCHANGED:
            return found[0]
        first, *rest = found[1].split("_")
        return code(first + "".join(part.capitalize() for part in rest))

    return re.sub(r"`([a-z]+(?:_[a-z]+)+)`", camel, text)


_UNCHANGED: Final = frozenset({*events.EVENT_TYPES, *ERROR_CODES, "subscription_opened", "subscription_closed"})


# --- events and frames ------------------------------------------------------------------------------------------------------------------


def event_shapes() -> str:
    """A section per event."""
    parts = []
    for kind in typing.get_args(events.BubbleEvent):
        rows = list(_member_rows(kind))
        parts.append(f"### {_tag(kind)}\n\n{_doc(kind)}\n\n{table(('member', 'type', 'required'), rows)}")
    return "\n".join(parts)


def client_frames() -> str:
    """What a client sends."""
    return _frames(frames.ClientFrame)


def server_frames() -> str:
    """What the server sends."""
    return _frames(frames.ServerFrame)


def _frames(union: object) -> str:
    rows = [(code(_tag(kind)), members(kind), _doc(kind)) for kind in typing.get_args(union)]
    return table(("`type`", "with", "meaning"), rows)


# --- HTTP -------------------------------------------------------------------------------------------------------------------------------


def routes() -> str:
    """Every operation, by subject."""
    operations = sorted(OPERATIONS, key=_subject)
    parts = []
    for tag, group in groupby(operations, key=lambda operation: operation.tag):
        rows = [(_call(each), _does(each), _statuses(each)) for each in group]
        parts.append(f"### {tag}\n\n{table(('request', 'does', 'answers'), rows)}")
    return "\n".join(parts)


def _subject(operation: Operation) -> int:
    tags = list(dict.fromkeys(each.tag for each in OPERATIONS))
    return tags.index(operation.tag)


def _call(operation: Operation) -> str:
    query = "&".join(field.encode_name for field in _fields(operation.query))
    text = f"{operation.method} {operation.path}{f'?{query}' if query else ''}"
    shape = operation.body or operation.body_shape
    if shape is not None and msgspec.structs.fields(shape):
        return f"{code(text)}<br>{members(shape)}"
    return f"{code(text)}<br>one event" if operation.takes_bytes else code(text)


def _fields(shape: Struct | None) -> Sequence[msgspec.structs.FieldInfo]:
    return () if shape is None else msgspec.structs.fields(shape)


def _does(operation: Operation) -> str:
    text = " ".join(operation.description.split())
    headers = ", ".join(code(name) for name in operation.request_headers)
    title = operation.summary if operation.summary.endswith("?") else f"{operation.summary}."
    return f"**{title}** {text}{f' Headers: {headers}.' if headers else ''}"


def _statuses(operation: Operation) -> str:
    good = " or ".join(str(status) for status in sorted({operation.status, *operation.statuses}, reverse=True))
    bad = ", ".join(code(error) for error in operation.errors)
    return f"{good}{f'; {bad}' if bad else ''}"


def error_codes() -> str:
    """The closed set."""
    rows = []
    for each in ERROR_CODES:
        kind = type(error_from_code(each, ""))
        rows.append((code(each), str(kind.http_status), code(kind.__name__), inspect.getdoc(kind) or ""))
    return table(("code", "HTTP", "in Python", "when"), rows)


# --- roles ------------------------------------------------------------------------------------------------------------------------------


def roles() -> str:
    """What each role on a thread may do."""
    names = sorted(CAPABILITIES - DEPLOYMENT_CAPABILITIES, key=_weight)
    rows = [(code(name), *("yes" if name in BUILTIN_ROLES[role] else "" for role in BUILTIN_ROLES)) for name in names]
    return table(("capability", *map(code, BUILTIN_ROLES)), rows)


def _weight(capability: str) -> tuple[int, str]:
    return -sum(capability in capabilities for capabilities in BUILTIN_ROLES.values()), capability


# --- where they go ----------------------------------------------------------------------------------------------------------------------

REGIONS: Final[Mapping[Path, Mapping[str, Callable[[], str]]]] = {
    _REFERENCE / "settings.md": {"settings": settings},
    _REFERENCE / "events.md": {"events": event_shapes},
    _REFERENCE / "websocket.md": {"client frames": client_frames, "server frames": server_frames},
    _REFERENCE / "http.md": {"routes": routes},
    _REFERENCE / "errors.md": {"errors": error_codes},
    _REFERENCE / "messages.md": MESSAGES,
    _REFERENCE / "reef.md": REEF,
    _REFERENCE / "watch.md": {"watch events": watch_events},
    ROOT / "docs" / "guides" / "tokens-and-roles.md": {"roles": roles},
}


def written(page: Path) -> str:
    """The page as it should be."""
    for name, make in REGIONS[page].items():
        if name not in regions(page):
            raise ValueError(f"{page.name} has no region `{name}`")
        page.write_text(with_region(page, name, make()), encoding="utf-8")
    return page.read_text(encoding="utf-8")


if __name__ == "__main__":
    for page in REGIONS:
        written(page)
