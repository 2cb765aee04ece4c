"""One page of a thread's events, the same on every backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Raw

from bubble.protocol.errors import InvalidRequest, thread_not_found
from bubble.protocol.identifiers import check_seq
from bubble.protocol.limits import Limits
from bubble.protocol.resources import EventPage

if TYPE_CHECKING:
    from bubble.store.base import BubbleStore

__all__ = ["event_page"]


async def event_page(
    store: BubbleStore,
    thread_id: str,
    *,
    from_seq: int = 1,
    to_seq: int | None = None,
    limit: int = 100,
    limits: Limits | None = None,
) -> EventPage:
    """The events from `from_seq` to `to_seq` (None: the head), as `BubbleStore.get_event_page` says."""
    limits = limits or Limits()
    check_seq(from_seq, path="fromSeq")
    if to_seq is not None:
        check_seq(to_seq, path="toSeq")
    if limit < 1:
        raise InvalidRequest("`limit` must be at least 1.")
    head = (await store.position(thread_id)).head
    last = head if to_seq is None else min(to_seq, head)
    if from_seq > last:
        return EventPage(events=[], next_seq=None)
    texts = await store.read(
        thread_id,
        from_seq=from_seq,
        to_seq=last,
        limit=min(limit, limits.page_events),
        max_bytes=limits.page_bytes,
    )
    if not texts:  # deleted meanwhile
        raise thread_not_found(thread_id)
    following = from_seq + len(texts)
    return EventPage(events=[Raw(text) for text in texts], next_seq=following if following <= last else None)
