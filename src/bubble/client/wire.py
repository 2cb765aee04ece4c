"""Reading what a server sends: resources, pages of events, WebSocket frames. Payloads keep every byte.

msgspec refuses a lone UTF-16 surrogate written as an escape, though a payload may hold one. Where it refuses a text, the text is read once
more with such escapes masked by others of the same length, and the original bytes of the events are then taken from the same places.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar, get_args

import msgspec
from msgspec import Raw

from bubble.protocol.errors import BubbleError, InternalError
from bubble.protocol.events import EVENT_TYPES, SequencedEvent
from bubble.protocol.frames import ServerFrame, ThreadEvent
from bubble.protocol.jsontext import load_json, mask_lone_surrogates, member_spans
from bubble.protocol.resources import EventPage

__all__ = ["decode_events", "decode_page", "decode_resource", "is_known", "read_frame", "stored_event"]

T = TypeVar("T")


class _Typed(msgspec.Struct):
    type: str


class _Batch(msgspec.Struct):
    events: list[Raw]


_KNOWN_TYPES = frozenset(EVENT_TYPES)
_KNOWN_FRAMES = frozenset(str(frame.__struct_config__.tag) for frame in get_args(ServerFrame))
_typed = msgspec.json.Decoder(_Typed)
_frames: msgspec.json.Decoder[ServerFrame] = msgspec.json.Decoder(ServerFrame)


def decode_resource(text: bytes, kind: type[T]) -> T:
    """The resource that an answer's body says; `InternalError` if it says something else."""
    try:
        try:
            return msgspec.json.decode(text, type=kind)
        except msgspec.ValidationError:
            raise
        except msgspec.DecodeError:  # a lone surrogate in metadata or in a name
            return msgspec.convert(load_json(text), type=kind)
    except (ValueError, RecursionError) as error:
        raise InternalError(f"The server's answer cannot be read: {error}.") from None


def decode_page(text: bytes) -> EventPage:
    """A page of stored events, each with the bytes it came with."""
    page, events = _decode_with_events(text, EventPage)
    return page if events is None else EventPage(events=events, next_seq=page.next_seq)


def decode_events(text: bytes) -> list[SequencedEvent]:
    """The stored events of a batch append's answer."""
    batch, events = _decode_with_events(text, _Batch)
    return [stored_event(bytes(each)) for each in (batch.events if events is None else events)]


def stored_event(text: bytes) -> SequencedEvent:
    """The stored event that `text` is; `InternalError` if it is none."""
    try:
        if text.startswith(b'{"seq":'):
            return SequencedEvent.from_stored(text)
        return SequencedEvent.from_text(text)
    except (BubbleError, ValueError) as error:
        raise InternalError(f"The server sent something that is no stored event: {error}") from None


def is_known(event: SequencedEvent) -> bool:
    """Whether this version knows the event's type. A consumer passes over the others."""
    try:
        return _typed.decode(event.text).type in _KNOWN_TYPES
    except msgspec.DecodeError:
        return _typed.decode(mask_lone_surrogates(event.text)[0]).type in _KNOWN_TYPES


def read_frame(text: bytes) -> ServerFrame | None:
    """The frame, or None for a kind that this version does not know; `InternalError` for one that is broken."""
    try:
        return _frames.decode(text)
    except msgspec.DecodeError as error:
        return _read_unusual_frame(text, error)


def _read_unusual_frame(text: bytes, error: msgspec.DecodeError) -> ServerFrame | None:
    masked, _ = mask_lone_surrogates(text)
    try:
        if _typed.decode(masked).type not in _KNOWN_FRAMES:
            return None
        frame = _frames.decode(masked)
    except msgspec.DecodeError:
        raise InternalError(f"The server sent a frame that cannot be read: {error}.") from None
    if not isinstance(frame, ThreadEvent):
        return frame
    first, end = next((first, end) for name, first, end in member_spans(text) if name == "event")
    return ThreadEvent(thread_id=frame.thread_id, event=Raw(text[first:end]))


Paged = TypeVar("Paged", EventPage, _Batch)


def _decode_with_events(text: bytes, kind: type[Paged]) -> tuple[Paged, list[Raw] | None]:
    try:
        return msgspec.json.decode(text, type=kind), None
    except msgspec.DecodeError as error:
        masked, offsets = mask_lone_surrogates(text)
        if not offsets:
            raise InternalError(f"The server's answer cannot be read: {error}.") from None
    page = decode_resource(masked, kind)
    return page, _originals(text, masked, page.events)


def _originals(text: bytes, masked: bytes, events: Sequence[Raw]) -> list[Raw]:
    # Between two events there are only a comma and white space, so the first match is the event itself.
    cursor = next(first for name, first, _ in member_spans(masked) if name == "events")
    originals: list[Raw] = []
    for event in events:
        first = masked.index(bytes(event), cursor)
        cursor = first + len(bytes(event))
        originals.append(Raw(text[first:cursor]))
    return originals
