"""The catalogue of a watch's events, from their structs."""

from __future__ import annotations

import inspect
import typing

import msgspec

from bubble.watch import WatchEvent
from tests.docs.tables import code, table

__all__ = ["watch_events"]


def watch_events() -> str:
    """One row for each type."""
    rows = []
    for kind in typing.get_args(WatchEvent):
        hints = typing.get_type_hints(kind)
        data = hints["data"]
        members = ", ".join(code(field.encode_name + _mark(field)) for field in msgspec.structs.fields(data))
        has_id = "id" in kind.__struct_fields__
        said = f"{inspect.getdoc(kind)} {_about(data)}".strip()
        rows.append((code(kind.type), "id" if has_id else "", members, said))
    return table(("type", "", "data", "what it says"), rows)


def _mark(field: msgspec.structs.FieldInfo) -> str:
    return "?" if field.default is msgspec.UNSET else ""


def _about(data: type) -> str:
    # The catalogue speaks the names of the wire.
    said = (inspect.getdoc(data) or "").replace("None", "null")
    for field in msgspec.structs.fields(data):
        said = said.replace(f"`{field.name}`", f"`{field.encode_name}`")
    return said
