"""How long to wait before another attempt."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Backoff"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Exponential growth with full jitter, in seconds: anything from 0 to `first` × 2ⁿ, and never above `longest`.

    Full jitter, because clients that lost the same server at the same moment must not come back at the same moment.
    """

    first: float = 0.25
    longest: float = 20.0
    random: Callable[[], float] = random.random

    def wait(self, attempt: int) -> float:
        """Seconds before attempt number `attempt` + 2; 0 is the wait after the first failure."""
        return self.random() * min(self.longest, self.first * 2.0 ** min(attempt, 60))
