"""Which version this is."""

from __future__ import annotations

from typing import Final

__all__ = ["PROTOCOL_VERSION", "VERSION"]

#: Of the distribution.
VERSION: Final = "0.1.0"

#: Of what the wire carries; rises only when a client that speaks the old one would misunderstand.
PROTOCOL_VERSION: Final = 1
