"""The parts of the reference of messages that are made from the code: what stands in `metadata.bubble`, and the Python interface."""

from __future__ import annotations

import dataclasses
import inspect
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Final, Literal

from bubble import assembler, client, extensions
from bubble.assembler.messages import BubbleMetadata
from tests.docs.tables import code, table

__all__ = ["MESSAGES"]

_SECTION = re.compile(r"\s*\((?:spec \d|assembler|protocol)[^)]*\)")


def metadata() -> str:
    """The members of `metadata.bubble`, as the type has them."""
    hints = typing.get_type_hints(BubbleMetadata, include_extras=True)
    rows = [
        (code(name), _json_type(hint), "" if typing.get_origin(hint) is typing.NotRequired else "yes")
        for name, hint in hints.items()
    ]
    bullets = [line for line in (inspect.getdoc(BubbleMetadata) or "").splitlines() if line.startswith("- ")]
    return table(("member", "type", "always"), rows) + "\n" + "".join(f"{line}\n" for line in bullets)


def _json_type(hint: object) -> str:
    if typing.get_origin(hint) is typing.NotRequired:
        return _json_type(typing.get_args(hint)[0])
    if typing.get_origin(hint) is Literal:
        return "one of " + ", ".join(code(f'"{each}"') for each in typing.get_args(hint))
    plain = {str: "string", int: "integer", dict[str, list[str]]: "`{emoji: [principalId, …]}`"}
    return plain.get(typing.cast("type", hint), "any JSON")


def entry_points() -> str:
    """The functions, and the classes that they lead to."""
    functions = [each for each in _public(assembler) if isinstance(each, FunctionType)]
    reducer = assembler.MessageReducer
    own = _section(reducer, [reducer.apply, reducer.snapshot])  # the rest of it is for the projection
    thread = assembler.ThreadAssembler
    of_thread = _section(thread, [member for member in _methods(thread) if member is not thread.read_by])
    return _calls(functions) + _section(assembler.Assembler) + of_thread + own


def values() -> str:
    """What they give."""
    return _values([each for each in _public(assembler) if isinstance(each, type) and dataclasses.is_dataclass(each)])


def handlers() -> str:
    """What somebody has to write for a kind of their own, and where it goes."""
    growing = (assembler.AccumulatingPartHandler, assembler.GrowingPartHandler, assembler.GrowingData)
    of_package = [extensions.Extension, extensions.installed_extensions, extensions.installed_part_handlers]
    protocols = "".join(map(_section, (assembler.PartHandler, *growing)))
    return protocols + "\n### Extension\n\n" + _calls(of_package)


def of_the_client() -> str:
    """What a connection adds."""
    connection, provider = client.BubbleConnection, client.AssemblerProvider
    reading = [connection.follow_messages, connection.get_message_page]
    calls = _calls([*reading, connection.send_message, client.Extensions.negotiate])
    given = [client.MessagesUpdate, client.MessagePage, client.SentMessage]
    own = _section(provider, [provider.ready, provider.revision, provider.subscribe, provider.create])
    return f"{calls}{_section(client.MessagesSubscription)}{own}\n{_values(given)}"


def _values(kinds: Sequence[type]) -> str:
    rows = [
        (code(kind.__name__), ", ".join(code(name) for name in inspect.signature(kind).parameters), _doc(kind))
        for kind in kinds
    ]
    return table(("value", "with", "what it is"), rows)


def _public(module: object) -> list[object]:
    return [getattr(module, name) for name in module.__all__]  # type: ignore[attr-defined]


def _section(kind: type, members: Sequence[object] | None = None) -> str:
    calls = _calls(_methods(kind) if members is None else members)
    return f"\n### {kind.__name__}\n\n{_doc(kind)}\n\n{calls}".rstrip() + "\n"


def _methods(kind: type) -> list[object]:
    members = vars(kind).items()
    return [each for name, each in members if not name.startswith("_") and isinstance(each, FunctionType | property)]


def _calls(members: Sequence[object]) -> str:
    rows = [(code(_signature(member)), _doc(member)) for member in members]
    return table(("call", "does"), rows) if rows else ""


def _signature(member: object) -> str:
    if isinstance(member, property):
        assert member.fget is not None
        return member.fget.__name__
    given = typing.cast("Callable[..., object]", member)
    parts, has_star = [], False
    for parameter in inspect.signature(given).parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not has_star:
            parts.append("*")
            has_star = True
        stars = "**" if parameter.kind is parameter.VAR_KEYWORD else ""
        parts.append(stars + parameter.name + _default(parameter))
    is_coroutine = inspect.iscoroutinefunction(member)
    return f"{'await ' if is_coroutine else ''}{given.__name__}({', '.join(parts)})"


def _default(parameter: inspect.Parameter) -> str:
    value = parameter.default
    if value is parameter.empty:
        return ""
    return f"={value.__name__ if isinstance(value, FunctionType) else repr(value)}"


def _doc(thing: object) -> str:
    text = _SECTION.sub("", inspect.getdoc(thing) or "")
    return " ".join(text.split())


MESSAGES: Final[Mapping[str, Callable[[], str]]] = {
    "metadata": metadata,
    "entry points": entry_points,
    "values": values,
    "handlers": handlers,
    "client": of_the_client,
}
