"""Token buckets: how many requests a principal may make, how many frames a socket may send (protocol, section 8)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from bubble.protocol.errors import RateLimited

__all__ = ["RequestRates", "TokenBucket"]

_MANY = 4_096


class TokenBucket:
    """Holds up to `burst` tokens and regains `rate` of them a second. A rate of 0 means no limit."""

    __slots__ = ("_burst", "_now", "_rate", "_stamp", "_tokens")

    def __init__(self, *, rate: float, burst: int, now: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._burst = float(burst)
        self._now = now
        self._tokens = self._burst
        self._stamp = now()

    def take(self) -> float:
        """Takes a token and gives 0.0; without one, the seconds until there is one again."""
        if not self._rate:
            return 0.0
        tokens = self._refilled()
        self._tokens = tokens - 1.0 if tokens >= 1.0 else tokens
        return 0.0 if tokens >= 1.0 else (1.0 - tokens) / self._rate

    @property
    def is_full(self) -> bool:
        """Whether nothing was taken lately, so that it could as well be a new one."""
        return not self._rate or self._refilled() >= self._burst

    def _refilled(self) -> float:
        now = self._now()
        self._tokens = min(self._burst, self._tokens + (now - self._stamp) * self._rate)
        self._stamp = now
        return self._tokens


class RequestRates:
    """One bucket per principal that made a request lately."""

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
        bucket = self._buckets.get(principal_id)
        if bucket is None:
            bucket = self._buckets[principal_id] = self._new_bucket()
        wait = bucket.take()
        if wait:
            raise RateLimited("Too many requests.", retry_after=math.ceil(wait * 1000) / 1000)

    def _new_bucket(self) -> TokenBucket:
        if len(self._buckets) >= self._many:
            self._buckets = {name: bucket for name, bucket in self._buckets.items() if not bucket.is_full}
            self._many = max(_MANY, 2 * len(self._buckets))  # so that forgetting costs a constant per newcomer
        return TokenBucket(rate=self._rate, burst=self._burst, now=self._now)
