"""Who is calling, as every door of the server knows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bubble.protocol.resources import Principal

__all__ = ["Identity", "IdentitySource"]

IdentitySource = Literal["token", "jwt", "session", "ticket"]


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False, kw_only=True)
class Identity:
    """A resolved bearer. `credential_id` is the token or session it rests on (None for a JWT).

    `expires_ms` is the first millisecond at which it no longer counts (leeway included), None for never. `capabilities` and
    `threads` narrow it (None: not narrowed). `role_claimed` tells that a JWT's claims, not the principal's record, made it an admin.

    Each is one act of resolving: two are never equal, so that a set of them is a set of connections' identities.
    """

    principal: Principal
    source: IdentitySource
    credential_id: str | None = None
    expires_ms: int | None = None
    capabilities: frozenset[str] | None = None
    threads: frozenset[str] | None = None
    role_claimed: bool = False

    @property
    def is_narrowed(self) -> bool:
        """Whether it may do less than its principal."""
        return self.capabilities is not None or self.threads is not None
