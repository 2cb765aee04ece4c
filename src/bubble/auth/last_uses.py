"""When tokens and sessions were last used, written in batches."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from bubble.protocol.errors import BubbleError
from bubble.store.base import BubbleStore
from bubble.store.records import Credential

__all__ = ["LastUses"]

#: Seconds between two writes.
WRITE_SECONDS: Final = 5.0
#: Milliseconds by which a recorded last use may lag behind: a busy token does not cost a write every time.
RESOLUTION_MS: Final = 60_000


class LastUses:
    """Collects uses and hands them to the store; `keep_writing` is for a task of the owner."""

    def __init__(self, store: BubbleStore) -> None:
        self._store = store
        self._pending: dict[str, int] = {}

    def note(self, credential: Credential, *, now_ms: int) -> None:
        """The credential is used now."""
        last = credential.last_used_ms
        if last is None or now_ms - last >= RESOLUTION_MS:
            self._pending[credential.credential_id] = now_ms

    async def write(self) -> None:
        """Writes what was collected. Where the store refuses, it stays collected and the error is raised."""
        if not self._pending:
            return
        used, self._pending = self._pending, {}
        try:
            await self._store.touch_credentials(used)
        except BubbleError:
            self._pending = used | self._pending
            raise

    async def keep_writing(self) -> None:
        """Writes every few seconds, until cancelled."""
        while True:
            await asyncio.sleep(WRITE_SECONDS)
            with contextlib.suppress(BubbleError):  # the store is out of reach: the next turn tries again
                await self.write()
