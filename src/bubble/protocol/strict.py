"""Decoding a JSON text into a struct without forgiving what the struct cannot see.

msgspec refuses wrong types, missing and unknown members. It does not tell a member given twice, and it refuses lone surrogates even in
a raw member. Both are settled here, in the ordinary case without looking at the text a second time.

Why counting is a proof: the struct encoded again holds every member once and every raw member to the byte, so the original has more
colons exactly where a member was doubled, unless colons were hidden as `\\u003a`. Encoding again never adds a `\\u` that the original
lacks, so equal counts of `\\u` mean that nothing was hidden.

Why length is one: where a struct holds nothing but strings, integers, flags and raw members, encoding it again writes each of them in
the shortest way that JSON has. A text that is no longer than that has no room for a member given twice.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import TypeVar

import msgspec

from bubble.protocol.errors import InvalidRequest
from bubble.protocol.jsontext import check_text, mask_lone_surrogates, refuse_duplicates

__all__ = ["check_wire_text", "decode_canonically", "decode_strictly"]

T = TypeVar("T")

_encode = msgspec.json.Encoder().encode


def check_wire_text(text: bytes, *, path: str = "$") -> None:
    """`InvalidRequest` where `text` is not UTF-8 or nests beyond 512."""
    try:
        check_text(text)
    except ValueError as error:
        raise InvalidRequest(f"`{path}` is not acceptable JSON: {error}.") from None


def decode_strictly(
    text: bytes, decoder: msgspec.json.Decoder[T], *, raw_members: Sequence[str] = (), path: str = "$"
) -> T:
    """The struct that `text` says, each of its members given once; lone surrogates are kept within `raw_members`.

    Raises `InvalidRequest` that names the field below `path`.
    """
    try:
        value = decoder.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        return _decode_with_surrogates(text, decoder, raw_members, path, error)
    if not _counts_agree(text, _encode(value)):
        _unique_spans(text, path)
    return value


def decode_canonically(
    text: bytes, decoder: msgspec.json.Decoder[T], *, raw_members: Sequence[str] = (), path: str = "$"
) -> tuple[T, bytes]:
    """Like `decode_strictly`, with the struct's canonical text beside it; for structs without floats and free JSON values."""
    try:
        value = decoder.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        value = _decode_with_surrogates(text, decoder, raw_members, path, error)
        return value, _encode(value)
    canonical = _encode(value)
    if len(text) != len(canonical) and not _counts_agree(text, canonical):
        _unique_spans(text, path)
    return value, canonical


def _counts_agree(text: bytes, canonical: bytes) -> bool:
    return text.count(b":") == canonical.count(b":") and text.count(b"\\u") == canonical.count(b"\\u")


def _decode_with_surrogates(
    text: bytes, decoder: msgspec.json.Decoder[T], raw_members: Sequence[str], path: str, cause: Exception
) -> T:
    masked, offsets = mask_lone_surrogates(text)
    if not offsets or isinstance(cause, msgspec.ValidationError | RecursionError):
        raise InvalidRequest(_located(str(cause), path)) from None
    try:
        value = decoder.decode(masked)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidRequest(_located(str(error), path)) from None
    spans = _unique_spans(text, path)
    raws = {name: spans[name] for name in raw_members if name in spans}
    if sum(bisect_left(offsets, end) - bisect_left(offsets, first) for first, end in raws.values()) < len(offsets):
        raise InvalidRequest(f"`{path}` has a lone surrogate outside of a payload.")
    for name, (first, end) in raws.items():
        # The decoder is generic; that it decodes structs is what `raw_members` is about.
        msgspec.structs.force_setattr(value, name, msgspec.Raw(text[first:end]))  # type: ignore[arg-type]
    return value


def _unique_spans(text: bytes, path: str) -> dict[str, tuple[int, int]]:
    try:
        return refuse_duplicates(text, path=path)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"{error}.") from None


def _located(message: str, path: str) -> str:
    if "`$" in message:
        return message.replace("`$", f"`{path}") + "."
    return f"{message} - at `{path}`."
