"""The wire contract: events, frames, errors, limits, identifiers. Pure: no I/O, nothing of the other packages."""

from __future__ import annotations

from bubble.protocol.version import PROTOCOL_VERSION

__all__ = ["PROTOCOL_VERSION"]
