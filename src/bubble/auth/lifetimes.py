"""How long the bearers last that the server makes by itself (protocol, section 4)."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Lifetimes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifetimes:
    """Milliseconds at most: of a browser session, a login code, a WebSocket ticket. `ValueError` if one is below 1."""

    session_ms: int = 30 * 24 * 60 * 60_000
    login_ms: int = 15 * 60_000
    ticket_ms: int = 30_000

    def __post_init__(self) -> None:
        if min(self.session_ms, self.login_ms, self.ticket_ms) < 1:
            raise ValueError("a lifetime must be at least one millisecond")
