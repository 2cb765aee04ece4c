"""From texts to events and back, and the envelope around one that is stored (spec 1, "The Sequencing Envelope").

All but a producer's payloads is decoded and encoded again, so nothing unknown, doubled or malformed gets into a log. The shapes
themselves are in `event_shapes`; they can be had from here, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, cast, get_args

import msgspec
from msgspec import UNSET, Meta, Raw

from bubble.protocol import identifiers
from bubble.protocol.errors import InvalidRequest
from bubble.protocol.event_shapes import (
    APPENDABLE_TYPES,
    EVENT_TYPES,
    SERVER_EMITTED_TYPES,
    BubbleEvent,
    EventType,
    MessagePart,
    Outcome,
    ParticipantJoined,
    ParticipantLeft,
    PartVersion,
    RunFinished,
    RunInterruptRequested,
    RunKind,
    RunStarted,
    ThreadTitleUpdated,
    ToolCallApproval,
    ToolCallResult,
)
from bubble.protocol.identifiers import MAX_SEQ
from bubble.protocol.jsontext import JSONValue, dump_json, load_json, mask_lone_surrogates, refuse_duplicates
from bubble.protocol.part_templates import TextTemplates
from bubble.protocol.strict import check_wire_text, decode_canonically
from bubble.protocol.timestamps import parse_ms

__all__ = [
    "APPENDABLE_TYPES",
    "EVENT_TYPES",
    "SERVER_EMITTED_TYPES",
    "BubbleEvent",
    "EncodedEvent",
    "EventType",
    "MessagePart",
    "Outcome",
    "PartVersion",
    "ParticipantJoined",
    "ParticipantLeft",
    "RunFinished",
    "RunInterruptRequested",
    "RunKind",
    "RunStarted",
    "SequencedEvent",
    "ThreadTitleUpdated",
    "ToolCallApproval",
    "ToolCallResult",
    "check_event",
    "decode_event",
    "encode_event",
    "encoded",
    "raw",
    "sequence",
    "sequence_prefix",
]


class _AiSdkPart(msgspec.Struct, frozen=True):
    type: str


class _NativePart(msgspec.Struct, frozen=True):
    kind: str


_PAYLOADS = ("part", "input", "output")
_PART_DECODERS: Mapping[PartVersion, tuple[str, Callable[[Raw | bytes], object]]] = {
    "ai-sdk-v6": ("type", msgspec.json.Decoder(_AiSdkPart).decode),
    "bubble-v1": ("kind", msgspec.json.Decoder(_NativePart).decode),
}
_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[BubbleEvent] = msgspec.json.Decoder(BubbleEvent)


@dataclass(frozen=True, slots=True)
class _PartLikeness:
    """What texts of one template have in common: the envelope's fields, and the canonical text around the part."""

    principal_id: str
    run_id: str
    version: PartVersion
    before: bytes
    after: bytes


_parts: TextTemplates[_PartLikeness] = TextTemplates(b'"part":')


class EncodedEvent(msgspec.Struct, frozen=True, gc=False):
    """An event beside its canonical JSON text (an object that begins with `{"type":`), ready to be stored."""

    event: BubbleEvent
    text: bytes


class SequencedEvent(msgspec.Struct, frozen=True, gc=False):
    """A stored event: its place, its time, and its JSON text exactly as every reader gets it."""

    seq: int
    created_at: str
    text: bytes

    @property
    def event(self) -> BubbleEvent:
        """The event without its envelope. Members that this version does not know are left out; they stay in `text`.

        Raises `InvalidRequest` for a type that this version does not know.
        """
        return _from_stored(self.text)

    @property
    def type(self) -> str:
        """The event's type, for instance `message_part`."""
        masked, _ = mask_lone_surrogates(self.text)
        return _type_decoder.decode(masked).type

    def to_dict(self) -> dict[str, JSONValue]:
        """The wire form as plain Python data."""
        return cast("dict[str, JSONValue]", load_json(self.text))

    @classmethod
    def from_stored(cls, text: bytes) -> SequencedEvent:
        """The stored event of a text that a store gave: written by `sequence`, so it is not validated again."""
        envelope = _envelope_decoder.decode(_head_of(text))
        return cls(seq=envelope.seq, created_at=envelope.created_at, text=text)

    @classmethod
    def from_text(cls, text: bytes) -> SequencedEvent:
        """The stored event that `text` (wire JSON, members in any order) says; `InvalidRequest` if it says none."""
        if (written := _as_written(text)) is not None:
            return written
        envelope = _envelope(text)
        members = (
            b"%s:%s" % (dump_json(name), text[first:end])
            for name, (first, end) in refuse_duplicates(text).items()
            if name not in ("seq", "createdAt")
        )
        event = decode_event(b"{%s}" % b",".join(members)).text
        return cls(envelope.seq, envelope.created_at, sequence(event, seq=envelope.seq, created_at=envelope.created_at))


class _Envelope(msgspec.Struct, frozen=True, rename="camel"):
    seq: Annotated[int, Meta(ge=1, le=MAX_SEQ)]
    created_at: str


_envelope_decoder = msgspec.json.Decoder(_Envelope)


def _as_written(text: bytes) -> SequencedEvent | None:
    # What a server gave is what `sequence` wrote: proving that costs a twentieth of walking through the members.
    try:
        stored = SequencedEvent.from_stored(text)
        parse_ms(stored.created_at)
        event = decode_event(b"{" + text[len(_head_of(text)) :])
    except (ValueError, InvalidRequest):
        return None
    return stored if sequence(event.text, seq=stored.seq, created_at=stored.created_at) == text else None


def _envelope(text: bytes) -> _Envelope:
    check_wire_text(text)
    masked, _ = mask_lone_surrogates(text)
    try:
        envelope = _envelope_decoder.decode(masked)
        parse_ms(envelope.created_at)
        refuse_duplicates(text)
    except ValueError as error:
        raise InvalidRequest(f"Not a stored event: {error}.") from None
    return envelope


def raw(value: object) -> Raw:
    """A payload from plain Python data, for the `part`, `input` or `output` of an event."""
    return Raw(dump_json(value))


def encode_event(event: BubbleEvent) -> bytes:
    """The event's canonical JSON text, without `seq` and `createdAt`."""
    return _encoder.encode(event)


def sequence(text: bytes, *, seq: int, created_at: str) -> bytes:
    """The JSON text of a stored event from the event's canonical text."""
    return b'{"seq":%d,"createdAt":"%s",%s' % (seq, created_at.encode("ascii"), text[1:])


def sequence_prefix(*, seq: int, created_at: str) -> bytes:
    """How the JSON text of a stored event begins."""
    return b'{"seq":%d,"createdAt":"%s",' % (seq, created_at.encode("ascii"))


def decode_event(text: bytes, *, path: str = "$") -> EncodedEvent:
    """The event that a JSON text says, any of the nine; `InvalidRequest` naming the field that is wrong."""
    check_wire_text(text, path=path)
    known = _part_like_others(text)
    if known is not None:
        return known
    event, canonical = decode_canonically(text, _decoder, raw_members=_PAYLOADS, path=path)
    _CHECKS[type(event)](event, path)
    if type(event) is MessagePart:
        _learn_part(text, event, canonical)
    return EncodedEvent(event, canonical)


def _part_like_others(text: bytes) -> EncodedEvent | None:
    """The event of a text that differs from an earlier one in its part alone; None if it has to be decoded."""
    found = _parts.find(text)
    if found is None:
        return None
    like, part = found
    try:
        _PART_DECODERS[like.version][1](part)
    except (msgspec.DecodeError, RecursionError):
        return None
    event = MessagePart(principal_id=like.principal_id, run_id=like.run_id, part=Raw(part), version=like.version)
    return EncodedEvent(event, like.before + part + like.after)


def _learn_part(text: bytes, event: MessagePart, canonical: bytes) -> None:
    part = bytes(event.part)
    before, _, after = canonical.partition(b'"part":')
    likeness = _PartLikeness(event.principal_id, event.run_id, event.version, before + b'"part":', after[len(part) :])
    _parts.learn(text, part, likeness)


def encoded(event: BubbleEvent | Mapping[str, object] | EncodedEvent, *, path: str = "$") -> EncodedEvent:
    """An event in any form a Python caller may hold: a struct, or a mapping in wire form; `InvalidRequest` as from `decode_event`."""
    if isinstance(event, EncodedEvent):
        return event
    try:
        text = dump_json(event) if isinstance(event, Mapping) else _encoder.encode(event)
    except (ValueError, TypeError) as error:
        raise InvalidRequest(f"`{path}` is not JSON: {error}.") from None
    return decode_event(text, path=path)


def _head_of(text: bytes) -> bytes:
    # `sequence` always writes the envelope first: {"seq":N,"createdAt":"...",<event>
    return text[: text.index(b'","', text.index(b'"createdAt"')) + 1] + b"}"


_type_decoder = msgspec.json.Decoder(_AiSdkPart)  # any object with a string `type`
_MEMBERS = {
    str(shape.__struct_config__.tag): frozenset(
        {"type", *(field.encode_name for field in msgspec.structs.fields(shape))}
    )
    for shape in get_args(BubbleEvent)
}


def _from_stored(text: bytes) -> BubbleEvent:
    event = b"{" + text[len(_head_of(text)) :]
    try:
        return decode_event(event).event
    except InvalidRequest:
        known = _known_members(event)
        if known == event:
            raise
        return decode_event(known).event


def _known_members(text: bytes) -> bytes:
    """The event without the members that a newer server added."""
    masked, _ = mask_lone_surrogates(text)
    names = _MEMBERS.get(_type_decoder.decode(masked).type, frozenset())
    spans = refuse_duplicates(text).items()
    return b"{%b}" % b",".join(b'"%b":%b' % (name.encode(), text[a:b]) for name, (a, b) in spans if name in names)


def check_event(event: BubbleEvent, *, path: str = "$") -> None:
    """What the shapes alone do not say: identifiers, the payload's discriminator, a reason beside an approval."""
    _CHECKS[type(event)](event, path)


def _check_run(event: RunStarted | RunFinished | RunInterruptRequested, path: str) -> None:
    _check_author_and_run(event.principal_id, event.run_id, path)


def _check_message_part(event: MessagePart, path: str) -> None:
    _check_author_and_run(event.principal_id, event.run_id, path)
    name, decode = _PART_DECODERS[event.version]
    try:
        decode(event.part)
    except msgspec.DecodeError:
        _check_part_with_surrogates(event, name, path)


def _check_part_with_surrogates(event: MessagePart, name: str, path: str) -> None:
    masked, _ = mask_lone_surrogates(bytes(event.part))
    try:
        _PART_DECODERS[event.version][1](masked)
    except msgspec.DecodeError:
        raise InvalidRequest(
            f"`{path}.part` must be an object with a string `{name}` for version {event.version}."
        ) from None


def _check_approval(event: ToolCallApproval, path: str) -> None:
    _check_call(event, path)
    if event.approved and event.reason is not UNSET:
        raise InvalidRequest(f"`{path}.reason` goes with a rejection only.")


def _check_call(event: ToolCallApproval | ToolCallResult, path: str) -> None:
    _check_author_and_run(event.principal_id, event.run_id, path)
    identifiers.check_tool_call_id(event.tool_call_id, path=f"{path}.toolCallId")


def _check_participant(event: ParticipantJoined | ParticipantLeft, path: str) -> None:
    identifiers.check_name(event.by_principal_id, path=f"{path}.byPrincipalId")
    identifiers.check_name(event.principal_id, path=f"{path}.principalId")


def _check_title(event: ThreadTitleUpdated, path: str) -> None:
    identifiers.check_name(event.by_principal_id, path=f"{path}.byPrincipalId")


def _check_author_and_run(principal_id: str, run_id: str, path: str) -> None:
    # Asked first, so that the field's path is only put together where there is something to say.
    if not (identifiers.is_name(principal_id) and identifiers.is_run_id(run_id)):
        identifiers.check_name(principal_id, path=f"{path}.principalId")
        identifiers.check_run_id(run_id, path=f"{path}.runId")


_CHECKS: Final[Mapping[type, Callable[[Any, str], None]]] = {
    RunStarted: _check_run,
    RunFinished: _check_run,
    MessagePart: _check_message_part,
    ToolCallApproval: _check_approval,
    ToolCallResult: _check_call,
    RunInterruptRequested: _check_run,
    ParticipantJoined: _check_participant,
    ParticipantLeft: _check_participant,
    ThreadTitleUpdated: _check_title,
}
