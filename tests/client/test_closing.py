"""The table of close codes."""

from __future__ import annotations

import pytest

from bubble.client.closing import ComeBack, come_back, seconds_in
from bubble.client.transport import SocketClosed


@pytest.mark.parametrize(
    ("code", "way"),
    [
        (1000, "with_backoff"),
        (1001, "with_backoff"),
        (1006, "with_backoff"),
        (1009, "with_backoff"),
        (1011, "with_backoff"),
        (1012, "soon"),
        (4401, "with_another_token"),
        (4408, "with_backoff"),
        (4429, "after_seconds"),
        (4999, "with_backoff"),
    ],
)
def test_each_close_code_has_its_way_of_coming_back(code: int, way: ComeBack) -> None:
    assert come_back(SocketClosed(code)) == way


@pytest.mark.parametrize(
    ("reason", "seconds"),
    [("7", 7), ("2.5", 2.5), ("30s", 30), ("wait 12 seconds", 12), ("", 1), ("later", 1), ("-4", 0), ("1e9", 3600)],
)
def test_the_seconds_are_read_from_the_reason(reason: str, seconds: float) -> None:
    assert seconds_in(reason) == seconds
