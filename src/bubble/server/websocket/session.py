"""The WebSocket session without I/O: one client frame in, one intent out (spec 2, "Connection Model").

*Theory of operation.* `read_intent` is a pure function. What a frame asks for comes back as a value that the driver carries out; what is
wrong with a frame comes back as a `Refusal`, scoped to the thread where the frame names one, so that the driver has one place that
answers. Nothing here ends a connection: a bad frame is answered and the next one is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import msgspec
from msgspec import UNSET

from bubble.protocol.errors import BubbleError, InvalidRequest
from bubble.protocol.events import EncodedEvent
from bubble.protocol.frames import (
    AuthRefresh,
    ClientFrame,
    GrantsSubscribe,
    GrantsUnsubscribe,
    ThreadAppend,
    ThreadSubscribe,
    ThreadUnsubscribe,
)
from bubble.protocol.identifiers import check_name, is_name
from bubble.protocol.limits import Limits
from bubble.protocol.part_templates import TextTemplates
from bubble.protocol.strict import check_wire_text, decode_canonically
from bubble.server.appending import decode_appendable

__all__ = ["Append", "Intent", "Refusal", "read_intent"]


class Append(msgspec.Struct, frozen=True):
    """Append one event. `digest_source` is the text that makes a repeat under the same key the same."""

    thread_id: str
    event: EncodedEvent
    key: str | None
    ref: str | None
    digest_source: bytes


@dataclass(frozen=True, slots=True)
class Refusal:
    """A frame that cannot be carried out; `thread_id` None makes the error unscoped."""

    error: BubbleError
    thread_id: str | None = None
    ref: str | None = None


Intent: TypeAlias = (
    Append | Refusal | ThreadSubscribe | ThreadUnsubscribe | GrantsSubscribe | GrantsUnsubscribe | AuthRefresh
)

_frames: msgspec.json.Decoder[ClientFrame] = msgspec.json.Decoder(ClientFrame)
_appends: TextTemplates[str] = TextTemplates(b'"event":')


class _Scope(msgspec.Struct, frozen=True, rename="camel"):
    thread_id: str | None = None
    ref: str | None = None


_scopes = msgspec.json.Decoder(_Scope)


def read_intent(text: bytes, limits: Limits) -> Intent:
    """What one text frame asks for."""
    known = _append_like_others(text, limits)
    if known is not None:
        return known
    try:
        frame, _ = decode_canonically(text, _frames, raw_members=("event",))
    except InvalidRequest as error:
        return _refusal(error, text)
    if isinstance(frame, ThreadAppend):
        return _append(frame, text, limits)
    if isinstance(frame, ThreadSubscribe | ThreadUnsubscribe) and not is_name(frame.thread_id):
        return _bad_thread_id(frame.thread_id, None)
    return frame


def _append_like_others(text: bytes, limits: Limits) -> Append | None:
    """The append of a frame that differs from an earlier one in its event alone; None if it has to be decoded.

    `decode_appendable` proves that the event is one JSON object, and so that the frame is what it looks like.
    """
    found = _appends.find(text)
    if found is None:
        return None
    thread_id, event_text = found
    try:
        event = decode_appendable(event_text, limits=limits, path="$.event")
    except BubbleError:
        return None
    return Append(thread_id, event, None, None, event_text)


def _append(frame: ThreadAppend, text: bytes, limits: Limits) -> Intent:
    ref = None if frame.ref is UNSET else frame.ref
    if not is_name(frame.thread_id):
        return _bad_thread_id(frame.thread_id, ref)
    event_text = bytes(frame.event)
    try:
        event = decode_appendable(event_text, limits=limits, path="$.event")
    except BubbleError as error:
        return Refusal(error, frame.thread_id, ref)
    key = None if frame.idempotency_key is UNSET else frame.idempotency_key
    if key is None and ref is None:
        _appends.learn(text, event_text, frame.thread_id)
    return Append(frame.thread_id, event, key, ref, event_text)


def _bad_thread_id(thread_id: str, ref: str | None) -> Refusal:
    try:
        check_name(thread_id, path="$.threadId")
    except InvalidRequest as error:
        return Refusal(error, None, ref)
    raise AssertionError(thread_id)


def _refusal(error: InvalidRequest, text: bytes) -> Refusal:
    """Scoped to the thread that the frame names, if it names one that could exist."""
    try:
        check_wire_text(text)
        scope = _scopes.decode(text)
    except (InvalidRequest, msgspec.DecodeError, RecursionError):
        return Refusal(_body_must_be_object(error, text))
    known = scope.thread_id is not None and is_name(scope.thread_id)
    ref = scope.ref if scope.ref is not None and len(scope.ref) <= 64 else None
    return Refusal(error, scope.thread_id if known and _names_a_frame(text) else None, ref)


class _Typed(msgspec.Struct, frozen=True):
    type: str


_types = msgspec.json.Decoder(_Typed)
_KNOWN = {"thread.subscribe", "thread.unsubscribe", "thread.append"}


def _names_a_frame(text: bytes) -> bool:
    try:
        return _types.decode(text).type in _KNOWN
    except msgspec.DecodeError:
        return False


def _body_must_be_object(error: InvalidRequest, text: bytes) -> InvalidRequest:
    return error if text.lstrip()[:1] == b"{" else InvalidRequest("Frame body must be a JSON object.")
