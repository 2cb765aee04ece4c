"""The numbers that guard memory before work. Every one is a setting; these are the defaults."""

from __future__ import annotations

import msgspec

__all__ = ["Limits"]

KIB = 1024
MIB = 1024 * KIB


class Limits(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Sizes in bytes of JSON text, counts, and times; served by `GET /v1/protocol`."""

    event_bytes: int = MIB
    frame_bytes: int = MIB + 4 * KIB
    frame_hard_bytes: int = 16 * MIB
    batch_events: int = 1_000
    batch_bytes: int = 8 * MIB
    body_bytes: int = MIB
    import_bytes: int = 256 * MIB
    page_default: int = 100
    page_events: int = 1_000
    page_bytes: int = 4 * MIB
    subscriptions: int = 4_096
    wait_ms: int = 30_000
    idempotency_hours: int = 24
