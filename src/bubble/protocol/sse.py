"""Server-sent events: the encoder, and an incremental decoder (WHATWG HTML, section 9.2 "Server-sent events").

*Theory of operation.* The decoder has two stages. The first cuts bytes into lines, wherever the chunks happen to be cut: a line ends
with LF, CR or CRLF; a CR at the end of a chunk ends its line at once, and a LF that then begins the next chunk belongs to it. The second
is the field table of the standard: `data` lines gather, `id` sticks, an empty line dispatches what has data. What is left when the stream
ends without an empty line is dropped, as the standard says: it may be half an event.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

import msgspec

from bubble.protocol.jsontext import JSONValue

__all__ = ["KEEP_ALIVE", "SseDecoder", "SseEvent", "SseOverflow", "encode_sse"]

#: A comment: a sign of life that is no event.
KEEP_ALIVE: Final = b": keepalive\n\n"
MAX_ID: Final = 2_048

_NAME = re.compile(r"[a-z][a-z0-9._-]{0,60}")
_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM: Final = b"\xef\xbb\xbf"


class SseOverflow(ValueError):
    """An event has more bytes than the decoder was told to hold."""


class SseEvent(msgspec.Struct, frozen=True):
    """One dispatched event. `event` is `message` where the stream named none; `id` is the last one seen, empty if there was none."""

    event: str
    data: str
    id: str = ""


def encode_sse(event: str, data: JSONValue, *, id: str | None = None) -> bytes:  # the standard's own word
    """One event with JSON data on a single ASCII line, so that no text in it can end a line.

    `ValueError` for a name that is not `a-z` then `a-z 0-9 . _ -` (61 at most), and for an id over 2,048 characters or with CR, LF or NUL.
    """
    if not _NAME.fullmatch(event):
        raise ValueError(f"{event!r} cannot name a server-sent event")
    lines = [b"event: %b\n" % event.encode("ascii")]
    if id is not None:
        lines.append(b"id: %b\n" % _checked_id(id).encode("utf-8"))
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    lines.append(b"data: %b\n\n" % text.encode("ascii"))
    return b"".join(lines)


def _checked_id(id: str) -> str:
    if len(id) > MAX_ID or any(character in id for character in "\r\n\0"):
        raise ValueError("an id has at most 2,048 characters and no CR, LF or NUL")
    return id


class SseDecoder:
    """Bytes in, events out. The `data` lines of an event, and any line after them, have at most `max_bytes` together, without their ends.

    `retry_ms` is the reconnection time that the stream asked for last, None if it did not. `last_event_id` is the id to resume from: that
    of the last finished block; `open_id` is the one that has come since, of a block that may be unfinished.
    """

    def __init__(self, *, max_bytes: int = 16 * 1024 * 1024, last_event_id: str = "") -> None:
        self.retry_ms: int | None = None
        self.last_event_id = last_event_id
        self._id = last_event_id
        self._event = ""
        self._data: list[str] = []
        self._size = 0
        self._max_bytes = max_bytes
        self._pending: list[bytes] = []
        self._pending_size = 0
        self._after_cr = False
        self._bom: bytes | None = b""

    @property
    def open_id(self) -> str:
        """The id that was seen last, whether its block is finished or not."""
        return self._id

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """The events that `chunk` completes. Raises `SseOverflow`, without those before it: `decode` gives them."""
        return list(self.decode(chunk))

    def decode(self, chunk: bytes) -> Iterator[SseEvent]:
        """The events that `chunk` completes, one by one, to be taken to the last.

        Raises `SseOverflow` at the byte that is one too many, after the events before it: so the bytes alone decide, and not how they are
        cut. The decoder is of no use then.
        """
        for line in self._lines(chunk):
            event = self._take(line)
            if event is not None:
                yield event

    # --- lines ------------------------------------------------------------------------------------------------------------------

    def _lines(self, chunk: bytes) -> Iterator[bytes]:
        chunk = self._without_bom(chunk)
        if not chunk:
            return
        if self._after_cr and chunk[:1] == b"\n":
            chunk = chunk[1:]
        self._after_cr = chunk[-1:] == b"\r"
        *lines, rest = _LINE_END.split(chunk)
        for line in lines:
            self._hold(line)
            yield self._held()
        self._hold(rest)

    def _without_bom(self, chunk: bytes) -> bytes:
        if self._bom is None:
            return chunk
        begun = self._bom + chunk
        if len(begun) < len(_BOM) and _BOM.startswith(begun):
            self._bom = begun
            return b""
        self._bom = None
        return begun.removeprefix(_BOM)

    def _hold(self, part: bytes) -> None:
        if part:
            self._pending.append(part)
            self._pending_size += len(part)
            if self._size + self._pending_size > self._max_bytes:
                raise SseOverflow(f"a server-sent event has more than {self._max_bytes} bytes")

    def _held(self) -> bytes:
        line = b"".join(self._pending)
        self._pending.clear()
        self._pending_size = 0
        return line

    # --- fields -----------------------------------------------------------------------------------------------------------------

    def _take(self, line: bytes) -> SseEvent | None:
        if not line:
            return self._dispatch()
        if line.startswith(b":"):
            return None
        name, _, value = line.partition(b":")
        if name == b"data":
            self._size += len(line)
        self._field(name, value.removeprefix(b" ").decode("utf-8", "replace"))
        return None

    def _field(self, name: bytes, value: str) -> None:
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._event = value
        elif name == b"id" and "\0" not in value:
            self._id = value
        elif name == b"retry" and value.isascii() and value.isdecimal():
            self.retry_ms = int(value[:18])

    def _dispatch(self) -> SseEvent | None:
        # The id sticks even where a block has no data; the name does not.
        self.last_event_id = self._id
        event, data = self._event, self._data
        self._event, self._data, self._size = "", [], 0
        if not data:
            return None
        return SseEvent(event or "message", "\n".join(data), self._id)
