"""What comes in with a request: headers, query, body. Limits are enforced while reading, before memory is spent."""

from __future__ import annotations

import asyncio
import re
import typing
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TypeVar
from urllib.parse import parse_qsl

import msgspec
from starlette.types import Receive

from bubble.protocol.errors import InvalidRequest, PayloadTooLarge
from bubble.protocol.strict import check_wire_text, decode_strictly
from bubble.server.answers import Header

__all__ = ["ClientGone", "RequestHeaders", "decode_body", "decode_query", "read_body", "require_json"]

T = TypeVar("T")

_INTEGER = re.compile(r"-?[0-9]{1,20}")

# How much of a body that is too large is read and thrown away, so that an honest client gets to read the answer.
_DISCARDED_BYTES = 16 * 1024 * 1024
_DISCARDING_SECONDS = 5.0


class ClientGone(Exception):
    """The client left before its request was complete: there is nobody to answer."""


class RequestHeaders:
    """The headers of a request by lower-case name."""

    __slots__ = ("raw",)

    def __init__(self, raw: Sequence[Header]) -> None:
        self.raw = raw

    def all(self, name: bytes) -> list[str]:
        """Every value of a header, as text (ISO 8859-1)."""
        return [value.decode("latin-1") for key, value in self.raw if key == name]

    def one(self, name: bytes) -> str | None:
        """The value of a header; None without one. `InvalidRequest` if it is given twice."""
        values = self.all(name)
        if len(values) > 1:
            raise InvalidRequest(f"Header `{name.decode()}` is given twice.")
        return values[0] if values else None


async def read_body(receive: Receive, headers: RequestHeaders, *, limit: int, seconds: float) -> bytes:
    """The whole body. `PayloadTooLarge` over `limit` bytes, `InvalidRequest` if it is not there after `seconds`.

    A declared length over the limit is refused before anything is read. Raises `ClientGone` if the client leaves.
    """
    length = headers.one(b"content-length")
    if length is not None and length.isdecimal() and int(length) > limit:
        if headers.one(b"expect") is None:  # a client that waits for 100-continue has not sent it yet, and need not
            await _discard(receive)
        raise _too_large(limit)
    try:
        async with asyncio.timeout(seconds):
            return await _read(receive, limit)
    except TimeoutError:
        raise InvalidRequest(f"The body did not arrive within {seconds:g} s.") from None


async def _read(receive: Receive, limit: int) -> bytes:
    chunks: list[bytes] = []
    size = 0
    while True:
        chunk, more = await _next(receive)
        size += len(chunk)
        if size > limit:
            chunks.clear()
            if more:
                await _discard(receive)
            raise _too_large(limit)
        chunks.append(chunk)
        if not more:
            return chunks[0] if len(chunks) == 1 else b"".join(chunks)


async def _discard(receive: Receive) -> None:
    size = 0
    try:
        async with asyncio.timeout(_DISCARDING_SECONDS):
            while size < _DISCARDED_BYTES:
                chunk, more = await _next(receive)
                size += len(chunk)
                if not more:
                    return
    except TimeoutError:
        return


async def _next(receive: Receive) -> tuple[bytes, bool]:
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientGone
    return message.get("body", b""), message.get("more_body", False)


def _too_large(limit: int) -> PayloadTooLarge:
    return PayloadTooLarge(f"The body has more than {limit} bytes.")


def require_json(headers: RequestHeaders) -> None:
    """`InvalidRequest` where a body is declared to be something else than JSON in UTF-8, or is compressed."""
    media_type = headers.one(b"content-type")
    if media_type is not None:
        essence, *parameters = (part.strip().lower() for part in media_type.split(";"))
        charsets = [part.removeprefix("charset=").strip('"') for part in parameters if part.startswith("charset=")]
        if essence != "application/json" or any(charset not in ("utf-8", "utf8") for charset in charsets):
            raise InvalidRequest("`Content-Type` must be application/json, in UTF-8.")
    if (headers.one(b"content-encoding") or "identity").lower() != "identity":
        raise InvalidRequest("`Content-Encoding` is not supported.")


def decode_body(body: bytes, decoder: msgspec.json.Decoder[T], *, raw_members: Sequence[str] = ()) -> T:
    """What the body says, strictly; `InvalidRequest` naming the field that is wrong."""
    check_wire_text(body)
    return decode_strictly(body, decoder, raw_members=raw_members)


def decode_query(query: bytes, shape: type[T]) -> T:
    """What the query string says; `InvalidRequest` naming a parameter that is unknown, given twice or wrong."""
    given: dict[str, str] = {}
    for name, value in _pairs(query):
        if name in given:
            raise InvalidRequest(f"Query parameter `{name}` is given twice.")
        given[name] = value
    return _converted(given, shape)


def _pairs(query: bytes) -> Sequence[tuple[str, str]]:
    if not query:
        return ()
    try:
        return parse_qsl(query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=32)
    except ValueError:
        raise InvalidRequest("The query string is malformed.") from None


def _converted(given: Mapping[str, str], shape: type[T]) -> T:
    integers = _integers(typing.cast("type[msgspec.Struct]", shape))
    values: dict[str, str | int] = {
        name: int(value) if name in integers and _INTEGER.fullmatch(value) else value for name, value in given.items()
    }
    try:
        return msgspec.convert(values, shape)
    except msgspec.ValidationError as error:
        message = str(error)
        if "unknown field" in message:
            named = message.replace("Object contains unknown field", "There is no query parameter")
            raise InvalidRequest(f"{named}.") from None
        raise InvalidRequest(f"{message.replace('- at `$.', '- at query parameter `')}.") from None


@cache
def _integers(shape: type[msgspec.Struct]) -> frozenset[str]:
    """The names of the parameters that are integers."""
    return frozenset(field.encode_name for field in msgspec.structs.fields(shape) if _is_integer(field.type))


def _is_integer(annotation: object) -> bool:
    return annotation is int or any(map(_is_integer, typing.get_args(annotation)))
