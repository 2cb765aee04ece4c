"""Unmasking of client frames (RFC 6455, section 5.3), in C where `websockets` was built with it."""

from __future__ import annotations

try:
    from websockets.speedups import apply_mask
except ImportError:
    from websockets.utils import apply_mask

__all__ = ["apply_mask"]
