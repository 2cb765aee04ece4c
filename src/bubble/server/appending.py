"""Requests that append, from bytes to a command: one event, a batch, an import. Shared by the ordinary and the hot routes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import msgspec
from msgspec import Raw

from bubble.protocol.errors import InvalidRequest, PayloadTooLarge
from bubble.protocol.events import SERVER_EMITTED_TYPES, EncodedEvent, decode_event
from bubble.protocol.identifiers import MAX_SEQ, check_key
from bubble.protocol.jsontext import mask_lone_surrogates
from bubble.protocol.limits import Limits
from bubble.server.reading import RequestHeaders
from bubble.store.commands import IdempotencyKey

__all__ = ["array_elements", "decode_appendable", "decode_batch", "expected_head", "idempotency_key"]

_elements = msgspec.json.Decoder(list[Raw])


def decode_appendable(text: bytes, *, limits: Limits, path: str = "$") -> EncodedEvent:
    """The event that a client wants to append. `InvalidRequest` for shapes that only the server writes."""
    if len(text) > limits.event_bytes:
        raise PayloadTooLarge(f"`{path}` has {len(text)} bytes; an event has at most {limits.event_bytes}.")
    event = decode_event(text, path=path)
    name = event.event.__struct_config__.tag
    if name in SERVER_EMITTED_TYPES:
        raise InvalidRequest(f"`{path}.type`: `{name}` is written by the server alone.")
    return event


def decode_batch(array: bytes, *, limits: Limits) -> list[EncodedEvent]:
    """The events of a batch, in order (protocol, section 6)."""
    texts = array_elements(array, path="$.events")
    if not texts:
        raise InvalidRequest("`$.events` must hold at least one event.")
    if len(texts) > limits.batch_events:
        raise PayloadTooLarge(f"`$.events` has {len(texts)} events; a batch has at most {limits.batch_events}.")
    return [decode_appendable(text, limits=limits, path=f"$.events[{index}]") for index, text in enumerate(texts)]


def array_elements(array: bytes, *, path: str) -> list[bytes]:
    """The text of each element of a JSON array, to the byte, lone surrogates included."""
    masked, offsets = mask_lone_surrogates(array)
    try:
        elements = [bytes(element) for element in _elements.decode(masked)]
    except (msgspec.DecodeError, RecursionError):
        raise InvalidRequest(f"`{path}` must be an array.") from None
    return list(_unmasked(array, masked, elements)) if offsets else elements


def _unmasked(array: bytes, masked: bytes, elements: list[bytes]) -> Iterator[bytes]:
    # Between two elements there are only commas and white space, so the next place where one is found is its own.
    end = 0
    for element in elements:
        start = masked.index(element, end)
        end = start + len(element)
        yield array[start:end]


def idempotency_key(headers: RequestHeaders, *, caller: str, body: bytes) -> IdempotencyKey | None:
    """What `Idempotency-Key` makes of this request, if it has one (protocol, section 6)."""
    key = headers.one(b"idempotency-key")
    if key is None:
        return None
    check_key(key, path="Idempotency-Key")
    return IdempotencyKey(caller, key, hashlib.sha256(body).digest())


def expected_head(headers: RequestHeaders) -> int | None:
    """What `Bubble-Expected-Head` says, if it is there."""
    text = headers.one(b"bubble-expected-head")
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and int(text[:17]) <= MAX_SEQ and len(text) <= 16):
        raise InvalidRequest("`Bubble-Expected-Head` must be an integer from 0 to 2^53-1.")
    return int(text)
