"""The file that `bubble export` writes and `bubble import` reads: JSON lines that can prove that they are whole.

    {"bubbleExport":1,"threadId":…,"headSeq":N,…}          the header: the thread as it was
    {"crc32":"89abcdef","event":{"seq":1,…}}               N lines, one stored event each, its bytes as the server gives them
    {"bubbleExportEnd":1,"events":N,"sha256":"…"}          the end: a checksum of all bytes before this line

Each line has a check of its own, so that a damaged file can be told where; the end tells that nothing is missing. An event that has a
raw line break in the white space of its payload would break the line, so it is written as a JSON string instead
(`{"crc32":…,"text":"…"}`): its bytes, too, come back as they were.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal

import msgspec

from bubble.cli.failures import CommandError
from bubble.protocol.errors import InvalidRequest
from bubble.protocol.events import SequencedEvent
from bubble.protocol.jsontext import dump_json
from bubble.protocol.resources import JoinPolicy, Metadata

__all__ = ["DamagedExport", "ExportReader", "ExportWriter", "ExportedGrant", "Header"]

FORMAT: Final = 1


class DamagedExport(CommandError):
    """An export that is not as it was written; `line` counts from 1."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(f"Line {line}: {why}. Nothing was imported.")
        self.line = line
        self.why = why


class ExportedGrant(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Who had which role when the thread was exported."""

    principal_id: str
    role: str


class Header(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The thread as it was; `head_seq` is how many events follow, `exported_at` is RFC 3339."""

    bubble_export: Literal[1] = FORMAT
    thread_id: str
    head_seq: int
    exported_at: str
    join_policy: JoinPolicy = "invite"
    title: str | None = None
    metadata: Metadata | None = None
    grants: Sequence[ExportedGrant] = ()


class _End(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    bubble_export_end: Literal[1] = FORMAT
    events: int
    sha256: str


class ExportWriter:
    """Gives the lines of a file, in order: `header`, an `event` for each, `end`."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self._events = 0

    def header(self, header: Header) -> bytes:
        """The first line."""
        return self._line(dump_json(msgspec.to_builtins(header)))

    def event(self, text: bytes) -> bytes:
        """The line of one stored event, given as its wire text."""
        self._events += 1
        check = b'{"crc32":"%08x",' % zlib.crc32(text)
        if b"\n" in text or b"\r" in text:
            return self._line(check + b'"text":' + json.dumps(text.decode("utf-8")).encode("ascii") + b"}")
        return self._line(check + b'"event":' + text + b"}")

    def end(self) -> bytes:
        """The last line."""
        return msgspec.json.encode(_End(events=self._events, sha256=self._digest.hexdigest())) + b"\n"

    def _line(self, text: bytes) -> bytes:
        line = text + b"\n"
        self._digest.update(line)
        return line


class ExportReader:
    """Reads what `ExportWriter` wrote. The header is known at once; whether the file is whole, once `events` has been exhausted."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        """Raises `DamagedExport` where the first line is not the header of an export."""
        self._lines = enumerate(lines, start=1)
        self._digest = hashlib.sha256()
        self.header = self._read_header()

    def events(self) -> Iterator[SequencedEvent]:
        """Every event; `DamagedExport` naming the line where something is wrong, up to the very end of the file."""
        seq, created_at = 0, ""
        for number, line in self._lines:
            if line.startswith(b'{"bubbleExportEnd"'):
                self._check_end(number, line, events=seq)
                return
            event = _event_of(number, line)
            self._digest.update(line)
            if event.seq != seq + 1:
                raise DamagedExport(
                    number, f"seq {seq + 1} must stand here, but it is {event.seq}; a line is missing or moved"
                )
            if event.created_at < created_at:
                raise DamagedExport(number, f"`createdAt` runs backwards, from {created_at} to {event.created_at}")
            seq, created_at = event.seq, event.created_at
            yield event
        raise DamagedExport(
            seq + 2, f"the file ends here, {self.header.head_seq - seq} of {self.header.head_seq} events are missing"
        )

    def _read_header(self) -> Header:
        number, line = next(self._lines, (1, b""))
        self._digest.update(line)
        if not line.startswith(b'{"bubbleExport":'):
            raise DamagedExport(number, "this is not the beginning of a `bubble export`")
        try:
            return msgspec.json.decode(line, type=Header)
        except msgspec.MsgspecError as error:
            raise DamagedExport(number, f"the header cannot be read ({error})") from None

    def _check_end(self, number: int, line: bytes, *, events: int) -> None:
        end = _end_of(number, line)
        if events != self.header.head_seq or events != end.events:
            raise DamagedExport(
                number, f"{self.header.head_seq} events were exported, but {events} stand before this line"
            )
        if self._digest.hexdigest() != end.sha256:
            raise DamagedExport(
                1, "the header was changed after the export: the checksum in the last line does not fit"
            )
        if next(self._lines, None) is not None:
            raise DamagedExport(number + 1, "something follows the end of the export")


def _end_of(number: int, line: bytes) -> _End:
    try:
        return msgspec.json.decode(line, type=_End)
    except msgspec.MsgspecError as error:
        raise DamagedExport(number, f"the last line cannot be read ({error})") from None


def _event_of(number: int, line: bytes) -> SequencedEvent:
    if not line.endswith(b"\n"):
        raise DamagedExport(number, f"the line breaks off after {len(line)} bytes")
    check, text = _parts_of(number, line[:-1])
    if b"%08x" % zlib.crc32(text) != check:
        raise DamagedExport(number, "the event was changed after the export: its checksum does not fit")
    try:
        event = SequencedEvent.from_text(text)
    except (InvalidRequest, ValueError) as error:
        raise DamagedExport(number, f"not a stored event ({str(error).rstrip('.')})") from None
    if event.text != text:
        raise DamagedExport(number, "the event is not in the form that a server gives")
    return event


def _parts_of(number: int, line: bytes) -> tuple[bytes, bytes]:
    # {"crc32":"89abcdef","event":<text>}  or  {"crc32":"89abcdef","text":"<text as a JSON string>"}
    check, rest = line[10:18], line[19:-1]
    if line.startswith(b'{"crc32":"') and line[18:20] == b'",' and line.endswith(b"}"):
        if rest.startswith(b',"event":'):
            return check, rest[9:]
        if rest.startswith(b',"text":'):
            return check, _unquoted(number, rest[8:])
    raise DamagedExport(number, "this is not a line of an export")


def _unquoted(number: int, quoted: bytes) -> bytes:
    try:
        text = json.loads(quoted)
        return str(text).encode("utf-8")
    except ValueError as error:
        raise DamagedExport(number, f"the event cannot be read ({error})") from None
