"""A token bucket: so much per second, and a burst at once."""

from __future__ import annotations

__all__ = ["TokenBucket"]


class TokenBucket:
    """Refills at `rate` per second up to `burst`. Times are seconds of any monotonic clock. A rate of 0 lifts the limit."""

    __slots__ = ("_at", "_burst", "_rate", "_tokens")

    def __init__(self, *, rate: float, burst: float, now: float) -> None:
        self._rate = rate
        self._burst = burst
        self._tokens = burst
        self._at = now

    def take(self, now: float) -> bool:
        """Takes one; False, and nothing is taken, if none is left."""
        if self._tokens < 1.0 and not self._refill(now):
            return False
        self._tokens -= 1.0
        return True

    def _refill(self, now: float) -> bool:
        if not self._rate:
            self._tokens = self._burst
        else:
            self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate)
        self._at = now
        return self._tokens >= 1.0

    def has_one(self) -> bool:
        """Takes one if there is one without looking at the clock; False, and nothing is taken, if that has to be found out."""
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True

    def owe(self, now: float) -> float:
        """Takes one in any case; the seconds to wait until the debt is paid, 0 if there is none."""
        if self._tokens < 1.0:
            self._refill(now)
        self._tokens -= 1.0
        return -self._tokens / self._rate if self._tokens < 0 and self._rate else 0.0

    def wait(self, now: float) -> float:
        """Seconds until one is there."""
        if self._refill(now) or not self._rate:
            return 0.0
        return (1.0 - self._tokens) / self._rate

    def is_full(self, now: float) -> bool:
        """Whether it holds its whole burst, so that nothing is lost by forgetting it."""
        self._refill(now)
        return self._tokens >= self._burst
