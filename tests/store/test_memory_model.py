"""The store in plain memory behaves as a Python list does."""

from __future__ import annotations

from hypothesis import settings

from bubble.store.base import BubbleStore
from bubble.store.memory import MemoryStore
from tests.store.model import StoreMachine


class MemoryMachine(StoreMachine):
    async def open_store(self) -> BubbleStore:
        return MemoryStore(clock=self.clock)


TestMemoryModel = MemoryMachine.TestCase
TestMemoryModel.settings = settings(max_examples=30, stateful_step_count=30)
