"""Part handlers: how native parts become chunks of a message, and back (spec 4, "Part handlers").

Reading is done for a whole batch before any of it is projected, because a handler may have to wait for something, and because one that
fails must leave the thread as it was.

A part of a wrong shape is no failure: anybody in the thread can write one, and nobody may make it unreadable. A handler says so by giving
None, or simply by stumbling over it (`ValueError`, `LookupError`, `TypeError`, `AttributeError`, `InvalidRequest`), or by giving what is no
JSON; the part is then shown like one of an unknown kind, with nothing lost. Whatever else `to_chunks` raises comes out of `apply`. What is
folded or grows is asked for later, when nothing may come out any more: there whatever is raised counts as stumbling.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol, TypeAlias, TypeVar, runtime_checkable

from bubble.assembler.fields import DATA, Part
from bubble.assembler.messages import AGENT_EVENT, EXTENSION, MessagePart
from bubble.assembler.plain import is_plain
from bubble.protocol.errors import InvalidRequest
from bubble.protocol.jsontext import JSONValue
from bubble.protocol.parts import EMPTY

__all__ = [
    "CORE_KINDS",
    "REACTION",
    "AccumulatingPartHandler",
    "GrowingData",
    "GrowingPartHandler",
    "Grown",
    "Handlers",
    "NativePart",
    "PartHandler",
    "Reading",
    "extension_chunk",
]

T = TypeVar("T")

NativePart: TypeAlias = Mapping[str, JSONValue]

REACTION: Final = "reaction"
_WRONG_SHAPE: Final = (ValueError, LookupError, TypeError, AttributeError, InvalidRequest)


class PartHandler(Protocol):
    """Owns one native kind. Both conversions may be plain or coroutine functions; neither may change what it is given."""

    @property
    def kind(self) -> str:
        """The kind of the native parts that it knows."""
        ...

    def to_chunks(
        self, part: NativePart, /
    ) -> Sequence[Mapping[str, JSONValue]] | None | Awaitable[Sequence[Mapping[str, JSONValue]] | None]:
        """The AI SDK chunks that a native part of this kind stands for; None where it does not have the kind's shape."""
        ...

    def from_ui_part(self, part: MessagePart, /) -> NativePart | None | Awaitable[NativePart | None]:
        """The native part that a part of a message stands for; None where it is not one of this handler's."""
        ...


@runtime_checkable
class AccumulatingPartHandler(Protocol):
    """A handler whose parts build upon each other: `to_chunks` gives exactly one data chunk with an `id`, `fold` what it holds.

    `fold` is no coroutine function. A part for which it raises, or gives what is no JSON, is shown as it is.
    """

    def fold(self, part: NativePart, current: JSONValue, /) -> JSONValue:
        """The new `data` of the part that `to_chunks` names. `current` is what the author's run shows for it now, None for nothing."""
        ...


class GrowingData(Protocol):
    """The data of one part of a message, in a form to which parts can be added at the cost of what they add."""

    def add(self, part: NativePart, /) -> None:
        """Takes one more part in. Where it raises, it has changed nothing."""
        ...

    def value(self) -> JSONValue:
        """The data as it is now; asked only when somebody looks. What was given before is never changed.

        Where it raises, or gives what is no JSON, the part shows what was added last, as it is.
        """
        ...


@runtime_checkable
class GrowingPartHandler(Protocol):
    """A handler whose parts build upon each other and make something long: `to_chunks` gives exactly one data chunk with an `id`,
    `grow` what keeps its data.
    """

    def grow(self, current: JSONValue, /) -> GrowingData:
        """What all further parts are added to. `current` is what the author's run shows for it now, None for nothing."""
        ...


@dataclass(slots=True)
class Folded:
    """What a handler folds, part by part, as data that grows."""

    _handler: AccumulatingPartHandler
    _value: JSONValue

    def add(self, part: NativePart, /) -> None:
        """Folds one more part."""
        self._value = _plain(self._handler.fold(part, self._value))

    def value(self) -> JSONValue:
        """What the handler gave last."""
        return self._value


class Grown:
    """What a handler keeps for one part of a message, and the native part that stands in where the handler cannot give it."""

    __slots__ = ("_data", "_latest")

    def __init__(self, data: GrowingData) -> None:
        self._data = _at_once(data)
        self._latest: NativePart = {}

    def add(self, part: NativePart) -> None:
        """Takes one more part in. Raises what the handler raises, and `TypeError` where it would have to be waited for."""
        add: Callable[[NativePart], object] = self._data.add  # a coroutine function, where it is a wrong one
        _at_once(add(part))
        self._latest = part

    def fields(self) -> Part:
        """What the part of the message shows. The thread must stay readable, whoever wrote the handler."""
        try:
            return {"data": _plain(self._data.value())}
        except Exception:  # noqa: BLE001 - nobody who reads could do anything about it
            return extension_chunk(self._latest)


@dataclass(frozen=True, slots=True)
class Reading:
    """A native part, read: its chunks, and what begins to keep the data of the one chunk, where its parts build upon each other."""

    part: NativePart
    chunks: tuple[Part, ...]
    grow: Callable[[JSONValue], GrowingData] | None = None


class AgentEvents:
    """`agent_event`: something that an agent says beside its message (protocol, section 1)."""

    kind: Final = "agent_event"

    def to_chunks(self, part: NativePart) -> list[Part] | None:
        """One part per event; events with the same `id` replace each other."""
        name, part_id = part.get("name"), part.get("id")
        if not (isinstance(name, str) and name) or (name == EMPTY and "data" in part):
            return None
        if "id" in part and not isinstance(part_id, str):
            return None
        data = {"name": name} | ({"data": part["data"]} if "data" in part else {})
        return [{"type": AGENT_EVENT} | ({"id": part_id} if "id" in part else {}) | {"data": data}]

    def from_ui_part(self, part: MessagePart) -> NativePart | None:
        """The event that the part came from."""
        if part.get("type") != AGENT_EVENT:
            return None
        data = _mapping(part.get("data"), AGENT_EVENT)
        if data.keys() - {"name", "data"}:
            raise InvalidRequest("the `data` of an agent event has only `name` and `data`")
        native: Part = {"kind": self.kind, **data} | ({"id": part["id"]} if part.get("id") is not None else {})
        if self.to_chunks(native) is None:
            raise InvalidRequest('an agent event needs a `name`, its `id` must be a string, and "empty" has no data')
        return native


class UnknownKinds:
    """Parts of kinds that nobody here knows, whole."""

    kind: Final = ""  # never asked for by its kind

    def to_chunks(self, part: NativePart) -> list[Part]:
        """One part that holds the payload as it came."""
        return [extension_chunk(part)]

    def from_ui_part(self, part: MessagePart) -> NativePart | None:
        """The payload."""
        if part.get("type") != EXTENSION:
            return None
        if part.get("id") is not None:
            raise InvalidRequest("what holds a native part as it is has no `id`")
        return _mapping(part.get("data"), EXTENSION)


CORE_KINDS: Final = frozenset({AgentEvents.kind, REACTION})


class Handlers:
    """The installed handlers. `ValueError` where two want one kind, or one wants a kind of the core."""

    def __init__(self, handlers: Iterable[PartHandler] = ()) -> None:
        self._by_kind: dict[str, PartHandler] = {AgentEvents.kind: AgentEvents()}
        for handler in handlers:
            self._register(handler)
        self._all = (*self._by_kind.values(), UnknownKinds())

    def _register(self, handler: PartHandler) -> None:
        kind = handler.kind
        if not kind:
            raise ValueError("A part handler's kind must not be empty.")
        if kind in CORE_KINDS:
            raise ValueError(f'"{kind}" is a kind of the core; no handler can take its place.')
        if kind in self._by_kind:
            raise ValueError(f'There are two part handlers for "{kind}".')
        self._by_kind[kind] = handler

    async def read(self, part: NativePart) -> Reading:
        """What a native part stands for. Raises what a handler raises, and `TypeError` where it gives what are no chunks."""
        kind = part.get("kind")
        handler = self._by_kind.get(kind) if isinstance(kind, str) else None
        if handler is None:
            return _unread(part)
        try:
            chunks = await _awaited(handler.to_chunks(part))
        except _WRONG_SHAPE:
            return _unread(part)
        return _unread(part) if chunks is None else _reading(handler, part, chunks)

    async def claim(self, part: MessagePart) -> NativePart | None:
        """The native part that a part of a message stands for; None where no handler claims it.

        `ValueError` where several do, or where one stumbles over the part or makes a part of another kind of it.
        """
        claims: list[tuple[str, NativePart]] = []
        for handler in self._all:
            native = await _claimed(handler, part)
            if native is not None:
                claims.append((handler.kind, native))
        if len(claims) > 1:
            raise ValueError(f"The handlers of {' and '.join(repr(kind) for kind, _ in claims)} both claim it")
        return claims[0][1] if claims else None


async def _claimed(handler: PartHandler, part: MessagePart) -> NativePart | None:
    try:
        native = await _awaited(handler.from_ui_part(part))
        kind = None if native is None else native.get("kind")
    except InvalidRequest:  # says itself what is wrong
        raise
    except _WRONG_SHAPE as error:
        problem = f"{type(error).__name__}: {error}"
        raise ValueError(f"the handler of {handler.kind!r} stumbles over it ({problem})") from error
    if native is not None and handler.kind not in (UnknownKinds.kind, kind):
        raise ValueError(f"the handler of {handler.kind!r} makes a native part of kind {kind!r} of it")
    return native


def extension_chunk(part: NativePart) -> Part:
    """A native part that is shown as it is."""
    return {"type": EXTENSION, "data": dict(part)}


def _unread(part: NativePart) -> Reading:
    return Reading(part, (extension_chunk(part),))


def _reading(handler: PartHandler, part: NativePart, chunks: object) -> Reading:
    if not isinstance(chunks, Sequence) or not all(_is_chunk(chunk) for chunk in chunks):
        raise TypeError(f'The part handler of "{handler.kind}" must give a list of chunks, each with a string `type`.')
    copies = tuple(dict(chunk) for chunk in chunks)
    if not all(map(is_plain, copies)):
        return _unread(part)
    grow = _grows(handler)
    if grow is not None and not (len(copies) == 1 and _has_data_by_id(copies[0])):
        raise TypeError(f'The part handler of "{handler.kind}" folds, so it must give one data chunk with an `id`.')
    return Reading(part, copies, grow)


def _grows(handler: PartHandler) -> Callable[[JSONValue], GrowingData] | None:
    if isinstance(handler, GrowingPartHandler):
        return handler.grow
    return partial(Folded, handler) if isinstance(handler, AccumulatingPartHandler) else None


def _has_data_by_id(chunk: Part) -> bool:
    return str(chunk["type"]).startswith(DATA) and isinstance(chunk.get("id"), str)


def _is_chunk(chunk: object) -> bool:
    return isinstance(chunk, Mapping) and isinstance(chunk.get("type"), str)


def _plain(value: JSONValue) -> JSONValue:
    if not is_plain(_at_once(value)):
        raise TypeError("What a part handler gives must be JSON.")
    return value


def _at_once(value: T) -> T:
    if inspect.iscoroutine(value):
        value.close()
        raise TypeError("What a part handler folds or lets grow is not waited for.")
    return value


def _mapping(value: object, kind: str) -> NativePart:
    if isinstance(value, Mapping):
        return value
    raise InvalidRequest(f"the `data` of a {kind} part must be an object")


async def _awaited(value: T | Awaitable[T]) -> T:
    return await value if inspect.isawaitable(value) else value
