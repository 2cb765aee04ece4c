"""Events as far as this version knows them."""

from __future__ import annotations

from bubble.protocol.errors import InvalidRequest
from bubble.protocol.events import BubbleEvent, SequencedEvent

__all__ = ["known_event"]


def known_event(stored: SequencedEvent) -> BubbleEvent | None:
    """The event; None where its type is newer than this version."""
    try:
        return stored.event
    except InvalidRequest:
        return None
