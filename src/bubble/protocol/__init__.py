"""The wire contract: events, frames, errors, limits, identifiers. Pure: no I/O, nothing of the other packages."""

from __future__ import annotations

PROTOCOL_VERSION = 1

__all__ = ["PROTOCOL_VERSION"]
