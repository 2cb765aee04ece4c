"""The nine events, and the envelope around one that is stored (spec 1, "Event Shapes" and "The Sequencing Envelope").

A producer's payload (`part`, `input`, `output`) stays a `msgspec.Raw`: the very bytes that came in are stored and delivered. The rest is
decoded and encoded again, so nothing unknown, doubled or malformed gets into a log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias, cast, get_args

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from bubble.protocol import identifiers
from bubble.protocol.errors import InvalidRequest
from bubble.protocol.identifiers import MAX_SEQ, NAME_PATTERN, RUN_ID_PATTERN, TOOL_CALL_ID_PATTERN
from bubble.protocol.jsontext import JSONValue, dump_json, load_json, mask_lone_surrogates, refuse_duplicates
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

RunKind = Literal["user_input", "agent_work", "system_work"]
Outcome = Literal["success", "failed", "interrupted", "lost"]
PartVersion = Literal["ai-sdk-v6", "bubble-v1"]


def _shaped(pattern: str, minimum: int, maximum: int) -> Meta:
    return Meta(extra_json_schema={"pattern": pattern, "minLength": minimum, "maxLength": maximum})


PrincipalId: TypeAlias = Annotated[str, _shaped(NAME_PATTERN, 1, 128)]
RunId: TypeAlias = Annotated[str, _shaped(RUN_ID_PATTERN, 1, 256)]
ToolCallId: TypeAlias = Annotated[str, _shaped(TOOL_CALL_ID_PATTERN, 1, 256)]
Snapshot: TypeAlias = Annotated[int, Meta(ge=0, le=MAX_SEQ)]


class _Event(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="type",
    rename="camel",
    forbid_unknown_fields=True,
    omit_defaults=True,
    gc=False,  # an event holds nothing that could hold it, and there are many
):
    pass


class RunStarted(_Event, frozen=True, kw_only=True, tag="run_started"):
    """A run begins: one bounded activity of a principal. `snapshot_seq` is the thread state it started from (0: empty)."""

    principal_id: PrincipalId
    run_id: RunId
    kind: RunKind | UnsetType = UNSET
    snapshot_seq: Snapshot | UnsetType = UNSET


class RunFinished(_Event, frozen=True, kw_only=True, tag="run_finished"):
    """A run ends, however it went; `outcome` says how, where the producer knows."""

    principal_id: PrincipalId
    run_id: RunId
    outcome: Outcome | UnsetType = UNSET


class MessagePart(_Event, frozen=True, kw_only=True, tag="message_part"):
    """One chunk of a run's content; `version` is the vocabulary of `part` alone."""

    principal_id: PrincipalId
    run_id: RunId
    part: Raw
    version: PartVersion


class ToolCallApproval(_Event, frozen=True, kw_only=True, tag="tool_call_approval"):
    """A person's decision on a tool call; `reason` belongs to a rejection only."""

    principal_id: PrincipalId
    run_id: RunId
    tool_call_id: ToolCallId
    approved: bool
    reason: str | UnsetType = UNSET


class ToolCallResult(_Event, frozen=True, kw_only=True, tag="tool_call_result"):
    """The result of a tool that ran outside the run's own loop. `input` and `output` are any JSON."""

    principal_id: PrincipalId
    run_id: RunId
    tool_call_id: ToolCallId
    input: Raw
    output: Raw


class RunInterruptRequested(_Event, frozen=True, kw_only=True, tag="run_interrupt_requested"):
    """Somebody asks a run to stop at its next safe point. A signal, not a guarantee."""

    principal_id: PrincipalId
    run_id: RunId


class ParticipantJoined(_Event, frozen=True, kw_only=True, tag="participant_joined"):
    """Written by the server: `principal_id` can append from now on, by the doing of `by_principal_id`."""

    by_principal_id: PrincipalId
    principal_id: PrincipalId


class ParticipantLeft(_Event, frozen=True, kw_only=True, tag="participant_left"):
    """Written by the server: `principal_id` can no longer append, by the doing of `by_principal_id`."""

    by_principal_id: PrincipalId
    principal_id: PrincipalId


class ThreadTitleUpdated(_Event, frozen=True, kw_only=True, tag="thread_title_updated"):
    """Written by the server: the thread has another title."""

    by_principal_id: PrincipalId
    title: str


BubbleEvent: TypeAlias = (
    RunStarted
    | RunFinished
    | MessagePart
    | ToolCallApproval
    | ToolCallResult
    | RunInterruptRequested
    | ParticipantJoined
    | ParticipantLeft
    | ThreadTitleUpdated
)

EventType = Literal[
    "run_started",
    "run_finished",
    "message_part",
    "tool_call_approval",
    "tool_call_result",
    "run_interrupt_requested",
    "participant_joined",
    "participant_left",
    "thread_title_updated",
]

SERVER_EMITTED_TYPES: Final = frozenset({"participant_joined", "participant_left", "thread_title_updated"})
APPENDABLE_TYPES: Final = (
    "run_started",
    "run_finished",
    "message_part",
    "tool_call_approval",
    "tool_call_result",
    "run_interrupt_requested",
)
EVENT_TYPES: Final = (*APPENDABLE_TYPES, *sorted(SERVER_EMITTED_TYPES))


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
    event, canonical = decode_canonically(text, _decoder, raw_members=_PAYLOADS, path=path)
    _CHECKS[type(event)](event, path)
    return EncodedEvent(event, canonical)


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
