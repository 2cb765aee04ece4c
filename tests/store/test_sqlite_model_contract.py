"""The store in one file behaves as a Python list does."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import settings

from bubble.store.base import BubbleStore
from bubble.store.sqlite import SqliteStore
from tests.store.model import StoreMachine


class SqliteMachine(StoreMachine):
    async def open_store(self) -> BubbleStore:
        self.folder = TemporaryDirectory()
        return await SqliteStore.open(Path(self.folder.name) / "bubble.db", clock=self.clock)

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()


TestSqliteModel = SqliteMachine.TestCase
TestSqliteModel.settings = settings(max_examples=20, stateful_step_count=25)
