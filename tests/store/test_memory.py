"""The store in plain memory keeps every promise of the contract."""

from __future__ import annotations

from bubble.protocol.timestamps import Clock
from bubble.store.admission import RunIntegrity
from bubble.store.base import BubbleStore
from bubble.store.memory import MemoryStore
from bubble.testing.store_suite import StoreSuite


class TestMemoryStore(StoreSuite):
    async def create_store(self, *, clock: Clock, run_integrity: RunIntegrity) -> BubbleStore:
        return MemoryStore(clock=clock, run_integrity=run_integrity)
