"""How a stored event looks on each kind of stream. An event is encoded once per encoding, however many readers it has.

A server's WebSocket frames are not masked, so the framed bytes of an event are the same for every reader: they can be kept and
written to a hundred sockets as they are.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable
from functools import cached_property
from typing import Protocol

from bubble.protocol.frames import thread_event_prefix

__all__ = [
    "JSON_MESSAGES",
    "SEQS_ALONE",
    "SERVER_SENT_EVENTS",
    "WEBSOCKET_FRAMES",
    "WIRE_TEXTS",
    "Chunk",
    "Encoding",
    "websocket_frame",
]

_TEXT_FRAME = 0x81  # FIN and opcode 1 (RFC 6455, section 5.2)
_LINE_END = re.compile(rb"\r\n|\r|\n")


class Chunk:
    """Consecutive events of one thread, encoded; the joined bytes are made once and shared by all who write them."""

    __slots__ = ("__dict__", "next_seq", "pieces", "size")

    def __init__(self, pieces: list[bytes], *, next_seq: int) -> None:
        self.pieces = pieces
        self.next_seq = next_seq
        self.size = sum(map(len, pieces))

    @property
    def first_seq(self) -> int:
        """The seq of the first event."""
        return self.next_seq - len(self.pieces)

    @cached_property
    def joined(self) -> bytes:
        """All pieces in one."""
        return self.pieces[0] if len(self.pieces) == 1 else b"".join(self.pieces)

    def after(self, from_seq: int) -> Chunk:
        """The part from `from_seq` on, which must be in it."""
        skipped = from_seq - self.first_seq
        return Chunk(self.pieces[skipped:], next_seq=self.next_seq) if skipped else self


class Encoding(Protocol):
    """From the wire texts of a thread's events to one piece each."""

    def encode(self, thread_id: str, texts: Iterable[bytes]) -> list[bytes]:
        """One piece per text."""


def websocket_frame(payload: bytes) -> bytes:
    """One unmasked, unfragmented text frame (RFC 6455, section 5.2)."""
    return _frame_header(len(payload)) + payload


def _frame_header(size: int) -> bytes:
    if size < 126:
        return bytes((_TEXT_FRAME, size))
    if size < 65_536:
        return struct.pack("!BBH", _TEXT_FRAME, 126, size)
    return struct.pack("!BBQ", _TEXT_FRAME, 127, size)


class _WebSocketFrames:
    """`thread.event` frames, ready for the socket."""

    def encode(self, thread_id: str, texts: Iterable[bytes]) -> list[bytes]:
        prefix = thread_event_prefix(thread_id)
        around = len(prefix) + 1
        starts: dict[int, bytes] = {}  # events of one thread have few lengths, and a look-up is cheaper than packing
        pieces = []
        for text in texts:
            size = len(text)
            start = starts.get(size)
            if start is None:
                start = starts[size] = _frame_header(around + size) + prefix
            pieces.append(b"%b%b}" % (start, text))
        return pieces


class _JsonMessages:
    """`thread.event` frames as JSON texts, for servers that do the framing."""

    def encode(self, thread_id: str, texts: Iterable[bytes]) -> list[bytes]:
        prefix = thread_event_prefix(thread_id)
        return [b"%b%b}" % (prefix, text) for text in texts]


class _ServerSentEvents:
    """`event` records whose id is the seq. White space in a payload may hold line ends: each line is a `data` line of its own."""

    def encode(self, thread_id: str, texts: Iterable[bytes]) -> list[bytes]:  # noqa: ARG002 - a stream has one thread
        return [_event_record(text) for text in texts]


class _WireTexts:
    """The texts themselves."""

    def encode(self, thread_id: str, texts: Iterable[bytes]) -> list[bytes]:  # noqa: ARG002 - likewise
        return list(texts)


class _SeqsAlone:
    """Nothing of the events: for who is shown something else than events, and has to know up to where."""

    def encode(self, thread_id: str, texts: Iterable[bytes]) -> list[bytes]:  # noqa: ARG002 - likewise
        return [b"" for _ in texts]


def _event_record(text: bytes) -> bytes:
    seq = text[len(b'{"seq":') : text.index(b",")]
    lines = b"\ndata: ".join(_LINE_END.split(text)) if b"\n" in text or b"\r" in text else text
    return b"event: event\nid: %b\ndata: %b\n\n" % (seq, lines)


WEBSOCKET_FRAMES: Encoding = _WebSocketFrames()
JSON_MESSAGES: Encoding = _JsonMessages()
SERVER_SENT_EVENTS: Encoding = _ServerSentEvents()
WIRE_TEXTS: Encoding = _WireTexts()
SEQS_ALONE: Encoding = _SeqsAlone()
