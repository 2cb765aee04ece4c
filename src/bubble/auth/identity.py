"""Who is calling, as every door of the server knows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bubble.protocol.resources import Principal

__all__ = ["Identity", "IdentitySource"]

IdentitySource = Literal["token", "jwt", "session", "ticket"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A resolved bearer. `credential_id` is the token or session it rests on (None for a JWT).

    `expires_ms` is when it ends at the latest (leeway included), None for never. `capabilities` and `threads` narrow it
    (None: not narrowed).
    """

    principal: Principal
    source: IdentitySource
    credential_id: str | None = None
    expires_ms: int | None = None
    capabilities: frozenset[str] | None = None
    threads: frozenset[str] | None = None

    @property
    def is_narrowed(self) -> bool:
        """Whether it may do less than its principal."""
        return self.capabilities is not None or self.threads is not None
