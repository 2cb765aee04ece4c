"""The export file: what goes in comes out to the byte, and damage is found where it is."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubble.cli.exported import DamagedExport, ExportedGrant, ExportReader, ExportWriter, Header
from bubble.protocol.events import (
    BubbleEvent,
    MessagePart,
    RunFinished,
    RunStarted,
    SequencedEvent,
    encode_event,
    raw,
    sequence,
)
from bubble.protocol.timestamps import format_ms

START_MS = 1_778_070_896_789


def stored_texts(parts: Sequence[bytes]) -> list[bytes]:
    """A run with these parts, as a server stores it."""
    events: list[BubbleEvent] = [
        RunStarted(principal_id="bot", run_id="r"),
        *(MessagePart(principal_id="bot", run_id="r", part=msgspec.Raw(part), version="bubble-v1") for part in parts),
        RunFinished(principal_id="bot", run_id="r"),
    ]
    return [
        sequence(encode_event(event), seq=seq, created_at=format_ms(START_MS + seq))
        for seq, event in enumerate(events, start=1)
    ]


def header_for(texts: Sequence[bytes], **changes: object) -> Header:
    fields: dict[str, object] = {"thread_id": "t", "head_seq": len(texts), "exported_at": format_ms(START_MS)}
    return Header(**(fields | changes))  # type: ignore[arg-type]


def lines_of(texts: Sequence[bytes], header: Header | None = None) -> list[bytes]:
    writer = ExportWriter()
    return [writer.header(header or header_for(texts)), *(writer.event(text) for text in texts), writer.end()]


def read(lines: Sequence[bytes]) -> list[SequencedEvent]:
    return list(ExportReader(io.BytesIO(b"".join(lines))).events())


PARTS = [
    b'{"kind":"agent_event","name":"plain"}',
    b'{"kind":"x","lone":"\\ud83d","nul":"\\u0000","big":123456789012345678901234567890,"neg":-0,"huge":1e400}',
    b'{ "kind" :\n\t"x",\r\n "text": "a\\nb"\n}',
    '{"kind":"x","text":"\u2028 naïve 日本語 \U0001f600"}'.encode(),
]


def test_events_come_back_to_the_byte() -> None:
    texts = stored_texts(PARTS)
    assert [event.text for event in read(lines_of(texts))] == texts


def test_an_event_with_raw_line_breaks_stays_on_one_line() -> None:
    lines = lines_of(stored_texts(PARTS))
    assert [line.count(b"\n") for line in lines] == [1] * len(lines)
    assert not any(b"\r" in line for line in lines)


def test_the_header_keeps_what_the_thread_was() -> None:
    header = header_for(
        [],
        title="Été \u2028",
        join_policy="open",
        metadata={"a": [1, None]},
        grants=[ExportedGrant(principal_id="ada", role="owner")],
    )
    assert ExportReader(io.BytesIO(b"".join(lines_of([], header)))).header == header


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(values=st.lists(json_values, max_size=6))
def test_any_payload_survives_the_file(values: list[object]) -> None:
    texts = stored_texts([bytes(raw({"kind": "any", "value": value})) for value in values])
    assert [event.text for event in read(lines_of(texts))] == texts


def _bit(lines: list[bytes]) -> list[bytes]:
    return [*lines[:3], lines[3].replace(b"lone", b"lune"), *lines[4:]]


def _missing(lines: list[bytes]) -> list[bytes]:
    return [*lines[:3], *lines[4:]]


def _swapped(lines: list[bytes]) -> list[bytes]:
    return [*lines[:3], lines[4], lines[3], *lines[5:]]


def _doubled(lines: list[bytes]) -> list[bytes]:
    return [*lines[:3], lines[2], *lines[3:]]


def _cut_in_a_line(lines: list[bytes]) -> list[bytes]:
    return [*lines[:3], lines[3][:40]]


def _cut_between_lines(lines: list[bytes]) -> list[bytes]:
    return lines[:3]


def _without_last_events(lines: list[bytes]) -> list[bytes]:
    return [*lines[:3], lines[-1]]


def _foreign_line(lines: list[bytes]) -> list[bytes]:
    return [*lines[:3], b'{"seq":3}\n', *lines[3:]]


def _changed_header(lines: list[bytes]) -> list[bytes]:
    return [lines[0].replace(b'"t"', b'"u"'), *lines[1:]]


def _no_header(lines: list[bytes]) -> list[bytes]:
    return lines[1:]


def _broken_header(lines: list[bytes]) -> list[bytes]:
    return [lines[0][:-3] + b"\n", *lines[1:]]


def _broken_end(lines: list[bytes]) -> list[bytes]:
    return [*lines[:-1], lines[-1][:30]]


def _more(lines: list[bytes]) -> list[bytes]:
    return [*lines, b"\n"]


@pytest.mark.parametrize(
    ("damage", "line", "why"),
    [
        (_bit, 4, "checksum does not fit"),
        (_missing, 4, "seq 3 must stand here, but it is 4"),
        (_swapped, 4, "seq 3 must stand here, but it is 4"),
        (_doubled, 4, "seq 3 must stand here, but it is 2"),
        (_cut_in_a_line, 4, "breaks off after 40 bytes"),
        (_cut_between_lines, 4, "the file ends here, 4 of 6 events are missing"),
        (_without_last_events, 4, "6 events were exported, but 2 stand before this line"),
        (_foreign_line, 4, "not a line of an export"),
        (_changed_header, 1, "the header was changed"),
        (_no_header, 1, "not the beginning of a `bubble export`"),
        (_broken_header, 1, "the header cannot be read"),
        (_broken_end, 8, "the last line cannot be read"),
        (_more, 9, "something follows the end"),
    ],
)
def test_damage_is_found_where_it_is(damage: Callable[[list[bytes]], list[bytes]], line: int, why: str) -> None:
    with pytest.raises(DamagedExport) as caught:
        read(damage(lines_of(stored_texts(PARTS))))
    assert (caught.value.line, why in caught.value.why) == (line, True), caught.value


def test_an_empty_file_is_no_export() -> None:
    with pytest.raises(DamagedExport, match="Line 1"):
        read([])


def test_a_time_that_runs_backwards_is_found() -> None:
    texts = stored_texts(PARTS)
    texts[2] = texts[2].replace(format_ms(START_MS + 3).encode(), format_ms(START_MS - 3).encode())
    with pytest.raises(DamagedExport, match=r"Line 4: `createdAt` runs backwards"):
        read(lines_of(texts))


def test_what_is_no_event_is_found_though_its_checksum_fits() -> None:
    texts = stored_texts(PARTS)
    texts[1] = texts[1].replace(b'"kind"', b'"type"')
    with pytest.raises(DamagedExport, match=r"Line 3: not a stored event \(.*part"):
        read(lines_of(texts))
