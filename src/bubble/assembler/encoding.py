"""From a message to the event parts that say it (spec 4, "Outbound user messages")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from bubble.assembler.fields import DATA
from bubble.assembler.handlers import Handlers, NativePart, extension_chunk
from bubble.assembler.messages import EXTENSION, MessagePart
from bubble.assembler.reactions import read_reaction
from bubble.protocol.errors import InvalidRequest
from bubble.protocol.event_shapes import PartVersion
from bubble.protocol.jsontext import JSONValue, dump_json

__all__ = ["EventPart", "encode_message"]

_BLOCKS: Final = frozenset({"text", "reasoning"})
_STEP: Final = "start-step"

_Place: TypeAlias = tuple[str, str]
"""Of a data part in its message: the type and the id. Another one of the same place takes it."""


@dataclass(frozen=True, slots=True)
class EventPart:
    """What one `message_part` event carries: `part`, in the vocabulary that `version` names."""

    version: PartVersion
    part: Mapping[str, JSONValue]


async def encode_message(message: Mapping[str, object], handlers: Handlers) -> list[EventPart]:
    """The event parts that assemble to the parts of `message`, in order.

    `InvalidRequest` naming the part by its place where the message has no list of parts, where a part has not the fields that its type
    needs or holds what no JSON can say (NaN, infinities), where two handlers claim it or one stumbles over it, where it would show as
    something else or in the place of another one, and where nobody knows how to say it. Also where there is nothing but starts of steps,
    which alone are no message.
    """
    encoded: list[EventPart] = []
    places: dict[_Place, int] = {}
    for index, part in enumerate(_parts_of(message)):
        if not (isinstance(part, Mapping) and isinstance(part.get("type"), str)):
            raise InvalidRequest(f"`$.parts[{index}]` must be an object with a string `type`.")
        encoder = _Encoder(index, part, handlers)
        encoded += await encoder.event_parts()
        encoder.take(places)
    if encoded and all(each.part.get("type") == _STEP for each in encoded):
        raise InvalidRequest("`$.parts` must hold more than the start of a step: that alone shows nothing.")
    return encoded


def _parts_of(message: object) -> Sequence[object]:
    parts = message.get("parts") if isinstance(message, Mapping) else None
    if not isinstance(parts, Sequence) or isinstance(parts, str):
        raise InvalidRequest("`$.parts` must be a list.")
    return parts


class _Encoder:
    """One part at its place."""

    def __init__(self, index: int, part: MessagePart, handlers: Handlers) -> None:
        self._index = index
        self._part = part
        self._kind = part["type"]
        self._handlers = handlers
        self._places: list[_Place] = []

    async def event_parts(self) -> list[EventPart]:
        native = await self._claim()
        if native is not None:
            event_part = self._event_part("bubble-v1", native)
            await self._read_back(native)
            return [event_part]
        return [self._event_part("ai-sdk-v6", chunk) for chunk in self._chunks()]

    def take(self, places: dict[_Place, int]) -> None:
        """Takes the places of the part among those of the parts before it."""
        for place in self._places:
            if place in places:
                raise self._error(f"it takes the place of `$.parts[{places[place]}]`, which has the same `id`")
            places[place] = self._index

    async def _read_back(self, native: NativePart) -> None:
        """What it shows is its handler's to say; but a part as it is must show as it is, and one that somebody claims must not."""
        reading = await self._handlers.read(native)
        is_as_it_is = reading.chunks == (extension_chunk(native),) and read_reaction("", native) is None
        if is_as_it_is is not (self._kind == EXTENSION):
            raise self._error(f"what it holds is of the kind {native['kind']!r} and shows as something else")
        for chunk in reading.chunks:
            kind, part_id = chunk["type"], chunk.get("id")
            if isinstance(kind, str) and kind.startswith(DATA) and isinstance(part_id, str):
                self._places.append((kind, part_id))

    def _event_part(self, version: PartVersion, part: Mapping[str, JSONValue]) -> EventPart:
        try:
            dump_json(part)
        except ValueError as error:
            raise self._error(f"it is not JSON ({error})") from None
        return EventPart(version, part)

    async def _claim(self) -> Mapping[str, JSONValue] | None:
        try:
            native = await self._handlers.claim(self._part)
        except (ValueError, InvalidRequest) as error:
            raise self._error(f"{error}") from error.__cause__
        if native is not None and not isinstance(native.get("kind"), str):
            raise self._error("what its handler makes of it has no string `kind`")
        return native

    def _chunks(self) -> list[dict[str, JSONValue]]:
        if self._kind in _BLOCKS:
            return self._block()
        if self._kind == "file":
            self._string("url")
            self._string("mediaType")
            self._optional_string("filename")
            return [self._picked("type", "url", "mediaType", "filename", "providerMetadata")]
        if self._kind == "step-start":
            return [{"type": _STEP}]
        raise self._error("no event part says that")

    def _block(self) -> list[dict[str, JSONValue]]:
        text, block_id = self._string("text"), self._block_id()
        return [
            {"type": f"{self._kind}-start", "id": block_id, **self._picked("providerMetadata")},
            {"type": f"{self._kind}-delta", "id": block_id, "delta": text},
            {"type": f"{self._kind}-end", "id": block_id},
        ]

    def _block_id(self) -> str:
        # The id of a reasoning block is shown on its part, so it has to come back; blocks follow each other, so it need not be unique.
        own = self._optional_string("id")
        return f"{self._kind}-{self._index + 1}" if own is None else own

    def _picked(self, *names: str) -> dict[str, JSONValue]:
        return {name: value for name in names if (value := self._part.get(name)) is not None}

    def _string(self, name: str) -> str:
        value = self._part.get(name)
        if isinstance(value, str):
            return value
        raise self._error(f"`{name}` must be a string")

    def _optional_string(self, name: str) -> str | None:
        return None if self._part.get(name) is None else self._string(name)

    def _error(self, reason: str) -> InvalidRequest:
        return InvalidRequest(f"`$.parts[{self._index}]` is a {self._kind} part that cannot be sent: {reason}.")
