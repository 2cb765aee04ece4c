"""The store in one file keeps every promise of the contract."""

from __future__ import annotations

from pathlib import Path

import pytest

from bubble.protocol.timestamps import Clock
from bubble.store.admission import RunIntegrity
from bubble.store.base import BubbleStore
from bubble.store.sqlite import SqliteStore
from bubble.testing.store_suite import StoreSuite


class TestSqliteStore(StoreSuite):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    async def create_store(self, *, clock: Clock, run_integrity: RunIntegrity) -> BubbleStore:
        return await SqliteStore.open(self.folder / f"{run_integrity}.db", clock=clock, run_integrity=run_integrity)
