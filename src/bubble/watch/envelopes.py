"""Envelopes of the Connect protocol's streams: a byte of flags, the length in four bytes, the message.

Bytes in, envelopes out, wherever they are cut; no I/O.
"""

from __future__ import annotations

import struct
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

    def feed(self, chunk: bytes) -> list[Envelope]:
        """The envelopes that `chunk` completes. `WatchError` `resource_exhausted` for one that is too large."""
        self._pending += chunk
        envelopes: list[Envelope] = []
        start = 0
        while len(self._pending) - start >= _HEAD.size:
            flags, size = _HEAD.unpack_from(self._pending, start)
            if size > self._max_bytes:
                raise WatchError("resource_exhausted", f"A frame has {size} bytes; {self._max_bytes} are allowed.")
            end = start + _HEAD.size + size
            if len(self._pending) < end:
                break
            envelopes.append(Envelope(flags, bytes(self._pending[start + _HEAD.size : end])))
            start = end
        del self._pending[:start]
        return envelopes
