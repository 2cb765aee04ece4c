"""How many requests a principal may make over HTTP: a token bucket each (protocol, section 8)."""

from __future__ import annotations

import time
from collections.abc import Callable

from bubble.protocol.errors import RateLimited
from bubble.server.buckets import TokenBucket

__all__ = ["RequestRates"]

_MANY = 4_096


class RequestRates:
    """`rate` requests a second and `burst` at once for each principal. A rate of 0 lifts the limit."""

    def __init__(self, *, rate: float, burst: int, now: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._burst = burst
        self._now = now
        self._buckets: dict[str, TokenBucket] = {}
        self._many = _MANY

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, principal_id: str) -> None:
        """Counts a request; `RateLimited`, with the seconds to wait, if it is one too many."""
        now = self._now()
        bucket = self._buckets.get(principal_id)
        if bucket is None:
            self._forget(now)
            bucket = self._buckets[principal_id] = TokenBucket(rate=self._rate, burst=self._burst, now=now)
        if not bucket.take(now):
            raise RateLimited("Too many requests.", retry_after=bucket.wait(now))

    def _forget(self, now: float) -> None:
        if len(self._buckets) >= self._many:
            self._buckets = {name: bucket for name, bucket in self._buckets.items() if not bucket.is_full(now)}
            self._many = max(_MANY, 2 * len(self._buckets))  # so that forgetting costs a constant per newcomer
