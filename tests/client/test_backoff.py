"""How long the client waits before it tries again."""

from __future__ import annotations

from bubble.client import Backoff


def test_the_longest_possible_wait_doubles_with_every_attempt() -> None:
    backoff = Backoff(first=0.5, longest=60, random=lambda: 1.0)
    assert [backoff.wait(attempt) for attempt in range(4)] == [0.5, 1.0, 2.0, 4.0]


def test_no_wait_is_above_the_longest_not_even_after_thousands_of_attempts() -> None:
    backoff = Backoff(first=0.5, longest=7, random=lambda: 1.0)
    assert backoff.wait(10) == backoff.wait(100_000) == 7


def test_the_jitter_is_full_so_that_clients_spread_over_the_whole_interval() -> None:
    assert Backoff(first=8, random=lambda: 0.0).wait(0) == 0
    waits = [Backoff(first=8).wait(0) for _ in range(200)]
    assert min(waits) < 2 < 6 < max(waits) < 8
