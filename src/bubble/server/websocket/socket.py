"""What the driver needs of a WebSocket, whoever does the framing, and what a WebSocket tells the driver."""

from __future__ import annotations

from typing import Protocol

from bubble.hub.encodings import Chunk, Encoding

__all__ = ["Receiver", "Socket"]


class Receiver(Protocol):
    """Is told of what comes in. Called on the event loop; must not block."""

    @property
    def max_message(self) -> int:
        """The longest message that is taken, in bytes; a longer one is read, discarded and told of by `oversized`."""

    def message(self, text: bytes) -> None:
        """One whole text message, valid UTF-8."""

    def binary(self, data: bytes) -> None:
        """One whole binary message."""

    def oversized(self, size: int) -> None:
        """One message over the limit, of at least `size` bytes."""

    def drained(self) -> None:
        """The socket takes more again."""

    def gone(self) -> None:
        """The connection is over, or closing: nothing more comes, nothing more is sent. Called once."""


class Socket(Protocol):
    """One open WebSocket."""

    @property
    def encoding(self) -> Encoding:
        """How events are handed to `write_chunk`."""

    @property
    def buffered(self) -> int:
        """Bytes written but not yet taken by the peer, as far as is known here."""

    def is_writable(self) -> bool:
        """Whether `buffered` is below the high-water mark; after a False, `Receiver.drained` is called once it is again."""

    def send_text(self, payload: bytes) -> None:
        """One text message."""

    def write_chunk(self, chunk: Chunk) -> None:
        """Events in the socket's own encoding, one message each."""

    def pause_reading(self) -> None:
        """Takes no more from the peer until `resume_reading`."""

    def resume_reading(self) -> None:
        """Takes from the peer again."""

    def close(self, code: int, reason: str) -> None:
        """Sends a close frame; nothing is sent after it. Idempotent."""
