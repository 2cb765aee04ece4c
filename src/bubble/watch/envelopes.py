"""Envelopes of the Connect protocol's streams: a byte of flags, the length in four bytes, the message.

Bytes in, envelopes out, wherever they are cut; no I/O.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from bubble.watch.errors import WatchError

__all__ = ["COMPRESSED", "END_OF_STREAM", "Envelope", "EnvelopeDecoder", "envelope"]

COMPRESSED: Final = 0b01
END_OF_STREAM: Final = 0b10
_HEAD: Final = struct.Struct("!BI")


class Envelope(NamedTuple):
    """One message of a stream."""

    flags: int
    data: bytes


def envelope(data: bytes, *, flags: int = 0) -> bytes:
    """The bytes of one envelope."""
    return _HEAD.pack(flags, len(data)) + data


class EnvelopeDecoder:
    """Takes bytes as they come. An envelope with more than `max_bytes` is refused as soon as its length is known."""

    def __init__(self, *, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._pending = bytearray()

    def feed(self, chunk: bytes) -> Iterator[Envelope]:
        """The envelopes that `chunk` completes, to be taken to the last one.

        `WatchError` `resource_exhausted` for one that is too large, after those before it: so it does not matter how bytes are cut.
        """
        self._pending += chunk
        start = 0
        while len(self._pending) - start >= _HEAD.size:
            flags, size = _HEAD.unpack_from(self._pending, start)
            if size > self._max_bytes:
                what = f"A frame has {size} bytes; {self._max_bytes} are allowed."
                raise WatchError("resource_exhausted", what, may_pass=False)
            end = start + _HEAD.size + size
            if len(self._pending) < end:
                break
            yield Envelope(flags, bytes(self._pending[start + _HEAD.size : end]))
            start = end
        del self._pending[:start]
