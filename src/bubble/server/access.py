"""Rights that a handler has to settle itself, because the store only reads there.

A page that was allowed must hold nothing that was committed after a revocation. So the position is read first and the role after it,
and the page ends at that position: whatever was committed up to there came before the role was seen to be held.
"""

from __future__ import annotations

from bubble.auth.policy import IdentityGuard
from bubble.store.base import BubbleStore

__all__ = ["readable_head", "require_on_thread"]


async def require_on_thread(store: BubbleStore, guard: IdentityGuard, thread_id: str, capability: str) -> None:
    """Raises `NotFound` or `Forbidden` unless the caller has the capability on the thread."""
    role, join_policy = await store.get_role(thread_id, guard.principal_id)
    guard.require(capability, thread_id=thread_id, role=role, join_policy=join_policy)


async def readable_head(store: BubbleStore, guard: IdentityGuard, thread_id: str) -> int:
    """The last seq that the caller may read. Raises `NotFound` without `events.subscribe`."""
    position = await store.position(thread_id)
    await require_on_thread(store, guard, thread_id, "events.subscribe")
    return position.head
