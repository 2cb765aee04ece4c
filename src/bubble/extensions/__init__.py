"""Extensions: packages that bring part handlers, found by their entry points.

A distribution announces an extension in its metadata:

    [project.entry-points."bubble.extensions"]
    artifacts = "bubble.extensions.artifacts:EXTENSION"

The entry point's object is an `Extension`. Server and client each load what is installed with them; what both have is used (spec 4,
"Negotiated providers").
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from bubble.assembler import PartHandler

__all__ = ["GROUP", "Extension", "installed_extensions", "installed_part_handlers"]

GROUP: Final = "bubble.extensions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    """A named set of part handlers. `version` is raised when parts of the same kind no longer mean the same."""

    name: str
    version: int
    part_handlers: tuple[PartHandler, ...]


def installed_extensions() -> tuple[Extension, ...]:
    """The extensions of all installed distributions, by name.

    Raises what loading one of them raises, `TypeError` where an entry point is no `Extension`, `ValueError` where two have one name.
    """
    found: dict[str, Extension] = {}
    for point in entry_points(group=GROUP):
        extension = _load(point)
        if found.setdefault(extension.name, extension) is not extension:
            raise ValueError(f'There are two extensions with the name "{extension.name}".')
    return tuple(found[name] for name in sorted(found))


def installed_part_handlers() -> tuple[PartHandler, ...]:
    """The part handlers of all installed extensions, for `create_assembler(part_handlers=…)` where there is no server to ask.

    Raises as `installed_extensions` does.
    """
    return tuple(handler for extension in installed_extensions() for handler in extension.part_handlers)


def _load(point: EntryPoint) -> Extension:
    extension = point.load()
    if not isinstance(extension, Extension):
        raise TypeError(f"The entry point {point.name} = {point.value} in the group {GROUP} is no Extension.")
    return extension
