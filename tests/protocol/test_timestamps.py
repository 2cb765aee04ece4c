"""Times: milliseconds inside, RFC 3339 in UTC on the wire."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubble.protocol.timestamps import format_ms, parse_ms, system_clock

LAST_MS = 253_402_300_799_999  # 9999-12-31T23:59:59.999Z


@pytest.mark.requirement("EV-07", "PR-1-24")
def test_a_time_is_written_in_utc_with_milliseconds_and_z() -> None:
    assert format_ms(1_778_070_896_789) == "2026-05-06T12:34:56.789Z"
    assert format_ms(0) == "1970-01-01T00:00:00.000Z"
    assert format_ms(1) == "1970-01-01T00:00:00.001Z"
    assert format_ms(LAST_MS) == "9999-12-31T23:59:59.999Z"


@given(ms=st.integers(0, LAST_MS))
def test_what_is_written_is_read_and_means_that_moment(ms: int) -> None:
    text = format_ms(ms)
    assert parse_ms(text) == ms
    assert datetime.fromisoformat(text) == datetime.fromtimestamp(ms // 1000, UTC).replace(microsecond=ms % 1000 * 1000)


@given(one=st.integers(0, LAST_MS), other=st.integers(0, LAST_MS))
def test_written_times_sort_as_the_moments_do(one: int, other: int) -> None:
    assert (format_ms(one) < format_ms(other)) == (one < other)


@pytest.mark.parametrize(
    "text",
    [
        *("", "2026-05-06", "2026-05-06T12:34:56Z", "2026-05-06T12:34:56.78Z", "2026-05-06T12:34:56.7890Z"),
        *(
            "2026-05-06T12:34:56.789",
            "2026-05-06T12:34:56.789z",
            "2026-05-06t12:34:56.789Z",
            "2026-05-06 12:34:56.789Z",
        ),
        *(
            "2026-05-06T12:34:56.789+00:00",
            "2026-02-30T12:34:56.789Z",
            "2026-05-06T24:00:00.000Z",
            "2026-05-06T12:60:56.789Z",
        ),
        *(
            "0000-01-01T00:00:00.000Z",
            "２026-05-06T12:34:56.789Z",
            "2026-05-06T12:34:56.789Z\n",
            " 2026-05-06T12:34:56.789Z",
        ),
        "+2026-05-06T12:34:56.789Z",
    ],
)
def test_another_way_to_write_a_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_ms(text)


def test_the_systems_clock_is_this_moment_in_milliseconds() -> None:
    before = time.time_ns() // 1_000_000
    now = system_clock()
    assert before <= now <= time.time_ns() // 1_000_000
