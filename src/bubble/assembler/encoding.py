"""From a message to the event parts that say it (spec 4, "Outbound user messages")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from bubble.assembler.handlers import Handlers
from bubble.assembler.messages import MessagePart
from bubble.protocol.errors import InvalidRequest
from bubble.protocol.event_shapes import PartVersion
from bubble.protocol.jsontext import JSONValue, dump_json

__all__ = ["EventPart", "encode_message"]

_BLOCKS: Final = frozenset({"text", "reasoning"})


@dataclass(frozen=True, slots=True)
class EventPart:
    """What one `message_part` event carries: `part`, in the vocabulary that `version` names."""

    version: PartVersion
    part: Mapping[str, JSONValue]


async def encode_message(message: Mapping[str, object], handlers: Handlers) -> list[EventPart]:
    """The event parts that assemble to the parts of `message`, in order.

    `InvalidRequest` naming the part by its place where the message has no list of parts, where a part has not the fields that its type
    needs or holds what no JSON can say (NaN, infinities), where two handlers claim it or one stumbles over it, and where nobody knows
    how to say it.
    """
    encoded: list[EventPart] = []
    for index, part in enumerate(_parts_of(message)):
        if not (isinstance(part, Mapping) and isinstance(part.get("type"), str)):
            raise InvalidRequest(f"`$.parts[{index}]` must be an object with a string `type`.")
        encoded += await _Encoder(index, part, handlers).event_parts()
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

    async def event_parts(self) -> list[EventPart]:
        native = await self._claim()
        if native is not None:
            return [self._event_part("bubble-v1", native)]
        return [self._event_part("ai-sdk-v6", chunk) for chunk in self._chunks()]

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
            return [self._picked("type", "url", "mediaType", "filename", "providerMetadata")]
        if self._kind == "step-start":
            return [{"type": "start-step"}]
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
        own = self._part.get("id")
        return own if isinstance(own, str) else f"{self._kind}-{self._index + 1}"

    def _picked(self, *names: str) -> dict[str, JSONValue]:
        return {name: value for name in names if (value := self._part.get(name)) is not None}

    def _string(self, name: str) -> str:
        value = self._part.get(name)
        if isinstance(value, str):
            return value
        raise self._error(f"`{name}` must be a string")

    def _error(self, reason: str) -> InvalidRequest:
        return InvalidRequest(f"`$.parts[{self._index}]` is a {self._kind} part that cannot be sent: {reason}.")
