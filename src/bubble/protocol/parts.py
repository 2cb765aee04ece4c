"""The core kinds of native parts, what a `message_part` of version `bubble-v1` may carry (protocol, section 1).

The log takes any object with a string `kind`, so that kinds can be added; a consumer decodes those that it knows and skips the rest.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from bubble.protocol.identifiers import MAX_SEQ
from bubble.protocol.jsontext import load_json, member_spans

__all__ = ["EMPTY", "AgentEventPart", "NativePart", "ReactionPart", "decode_native_part"]

EMPTY: Final = "empty"


class _Part(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", rename="camel", omit_defaults=True):
    pass


class AgentEventPart(_Part, frozen=True, kw_only=True, tag="agent_event"):
    """Something that an agent says beside its message, by name. The reserved name `empty` (nothing to say) has no `data`."""

    name: Annotated[str, Meta(min_length=1)]
    data: Raw | UnsetType = UNSET
    id: str | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.name == EMPTY and self.data is not UNSET:
            raise ValueError("the agent event `empty` has no data")


class ReactionPart(_Part, frozen=True, kw_only=True, tag="reaction"):
    """An emoji put on the event `target_seq` of the same thread, or taken away again."""

    target_seq: Annotated[int, Meta(ge=1, le=MAX_SEQ)]
    emoji: Annotated[str, Meta(min_length=1)]
    op: Literal["add", "remove"]


NativePart: TypeAlias = AgentEventPart | ReactionPart

_decoder: msgspec.json.Decoder[NativePart] = msgspec.json.Decoder(NativePart)


def decode_native_part(part: Raw | bytes) -> NativePart | None:
    """The part, or None for a kind that this version does not know and for one that does not have its kind's shape."""
    try:
        return _decoder.decode(part)
    except msgspec.ValidationError:
        return None
    except msgspec.DecodeError:
        return _decode_what_msgspec_refuses(bytes(part))


def _decode_what_msgspec_refuses(part: bytes) -> NativePart | None:
    # Lone surrogates are JSON, too. What is left raw stays as it was written.
    members = load_json(part)
    data: Raw | UnsetType = UNSET
    if not isinstance(members, dict):
        return None
    if members.get("kind") == "agent_event" and members.pop("data", UNSET) is not UNSET:
        _, first, end = next(span for span in member_spans(part) if span[0] == "data")
        data = Raw(part[first:end])
    try:
        decoded: NativePart = msgspec.convert(members, NativePart)
        return msgspec.structs.replace(decoded, data=data) if isinstance(decoded, AgentEventPart) else decoded
    except ValueError:
        return None
