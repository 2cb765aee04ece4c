"""A message that comes in fragments (RFC 6455, section 5.4), gathered within bounds.

A fragment may be one byte long, or empty, and there may be a million of them: what is held grows with bytes, never with fragments, and
each costs the same whatever came before it.
"""

from __future__ import annotations

__all__ = ["Fragments"]

_MOST_PIECES = 1_024  # before they are joined


class Fragments:
    """The pieces of one message. Past its limit nothing is kept but the count of bytes."""

    __slots__ = ("_held", "_pieces", "dropped")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._held = 0
        #: Bytes that were discarded; 0 for a message within its limit.
        self.dropped = 0

    def add(self, piece: bytes, *, limit: int) -> None:
        """One more, of a message that may have `limit` bytes."""
        self._held += len(piece)
        if self._held + self.dropped > limit:
            self.dropped += self._held
            self._pieces, self._held = [], 0
        elif piece:
            self._pieces.append(piece)
            if len(self._pieces) > _MOST_PIECES:
                self._pieces = [b"".join(self._pieces)]

    def joined(self) -> bytes:
        """All that was kept."""
        return self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
