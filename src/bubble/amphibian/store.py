"""`AmphibianStore`: what a connector knows after a restart (spec 5, "Resuming on restart")."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import Final, Self, TypeVar

from bubble.amphibian.database import MEMORY, Database
from bubble.amphibian.settlement import SeqRange, SettlementTracker
from bubble.protocol.errors import Unavailable

__all__ = ["MEMORY", "AmphibianStore", "Remembered", "ThreadKey"]

T = TypeVar("T")

# A thread has more ranges beyond its checkpoint only while several speak at once for very long. What is not kept may be answered again.
_MOST_RANGES: Final = 1_000
# How long somebody who keeps a session in the middle of a reply is held up, where somebody else holds up the disk.
_KEEPING_SECONDS: Final = 1.0

_READ: Final = """
SELECT (SELECT through FROM checkpoints WHERE server = ?1 AND principal_id = ?2 AND thread_id = ?3),
       (SELECT beyond FROM checkpoints WHERE server = ?1 AND principal_id = ?2 AND thread_id = ?3),
       (SELECT session FROM sessions WHERE server = ?1 AND principal_id = ?2 AND thread_id = ?3)
"""
_WRITE_CHECKPOINT: Final = "INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?, ?, ?)"
_WRITE_SESSION: Final = "INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?)"

_logger = logging.getLogger("bubble.amphibian")


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadKey:
    """Whose state it is: one principal's, on one thread of one server (by its URL)."""

    server: str
    principal_id: str
    thread_id: str

    def row(self) -> tuple[str, str, str]:
        """The same as the first columns of a row."""
        return (self.server, self.principal_id, self.thread_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What is known of a thread: the checkpoint (None: it was never come to), what is settled beyond it, the agent's session as JSON."""

    checkpoint: int | None
    beyond: Sequence[SeqRange]
    session: bytes


class AmphibianStore:
    """Checkpoints and sessions in a SQLite file, or in `MEMORY` for as long as the process lives. Use as `async with await open(…)`.

    Checkpoints are written behind the caller's back, those of many threads at once; `flush` waits for them. Sessions are written at once,
    those that come while others are being written together. What could not be written is seen by `read` all the same, and is with whatever
    is written next, at the latest by `close`.
    """

    def __init__(self, database: Database, executor: ThreadPoolExecutor) -> None:
        self._database = database
        self._executor = executor
        self._waiting: dict[ThreadKey, SettlementTracker] = {}
        self._being_written: dict[ThreadKey, SettlementTracker] = {}
        self._writing: asyncio.Task[Unavailable | None] | None = None
        self._sessions: dict[ThreadKey, bytes] = {}
        self._sessions_are_written = asyncio.Lock()

    @classmethod
    async def open(cls, path: str = MEMORY) -> Self:
        """Opens or makes the store. Raises, naming the file, `Conflict` if another connector has it, `Unavailable` if it is no use."""
        executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="amphibian-store")
        try:
            database = await asyncio.get_running_loop().run_in_executor(executor, Database, path)
        except BaseException:
            executor.shutdown(wait=False)
            raise
        return cls(database, executor)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Writes what waits and closes the file. Raises `Unavailable` if it cannot be written."""
        try:
            await self._write_sessions()
            await self.flush()
        finally:
            await self._call(self._database.close)
            self._executor.shutdown()

    async def read(self, key: ThreadKey) -> Remembered:
        """What is known of a thread."""
        tracker = self._waiting.get(key) or self._being_written.get(key)
        waiting = self._sessions.get(key)
        row = await self._call(partial(self._database.row, _READ, key.row()))
        checkpoint, beyond, session = row if row is not None else (None, None, None)
        written = Remembered(
            checkpoint=checkpoint if isinstance(checkpoint, int) else None,
            beyond=[(first, last) for first, last in json.loads(beyond)] if isinstance(beyond, str) else [],
            session=session.encode() if isinstance(session, str) else b"{}",
        )
        if tracker is not None:
            written = replace(written, checkpoint=tracker.through, beyond=tracker.beyond[-_MOST_RANGES:])
        # Once more: it may have been on its way, and come back.
        return replace(written, session=self._sessions.get(key) or waiting or written.session)

    def note_checkpoint(self, key: ThreadKey, tracker: SettlementTracker) -> None:
        """Has the tracker's state written soon, as it is then."""
        self._waiting[key] = tracker
        self._write_soon()

    async def flush(self) -> None:
        """Returns when every checkpoint that was noted is durable. Raises `Unavailable` if it cannot be written."""
        while self._waiting or (self._writing is not None and not self._writing.done()):
            failure = await asyncio.shield(self._write_soon())
            if failure is not None:
                raise failure

    def _write_soon(self) -> asyncio.Task[Unavailable | None]:
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_waiting())
        return self._writing

    async def write_session(self, key: ThreadKey, session: bytes) -> None:
        """Keeps an agent's session: durably, on return. Raises `Unavailable` if it cannot be written; then it is with the next one."""
        self._sessions[key] = session
        await self._write_sessions()

    async def keep_session(self, key: ThreadKey, session: bytes) -> None:
        """The same for whoever has more urgent things to do: waits a second at most, and where it is not written then, the log says so."""
        try:
            async with asyncio.timeout(_KEEPING_SECONDS):
                await self.write_session(key, session)
        except (Unavailable, TimeoutError) as error:
            reason = error if isinstance(error, Unavailable) else f"{self._database.path} cannot be written."
            _logger.warning("The session of thread %s is not kept yet: %s", key.thread_id, reason)

    async def _write_sessions(self) -> None:
        async with self._sessions_are_written:
            if not self._sessions:  # somebody who waited here has written all of them
                return
            taken, self._sessions = self._sessions, {}
            rows = [(*each.row(), text.decode()) for each, text in taken.items()]
            try:
                await self._call(partial(self._database.write, _WRITE_SESSION, rows))
            except BaseException:
                self._sessions = {**taken, **self._sessions}
                raise

    async def _write_waiting(self) -> Unavailable | None:
        while self._waiting:
            taken = self._being_written = self._waiting
            self._waiting = {}
            rows = [(*key.row(), tracker.through, _as_json(tracker.beyond)) for key, tracker in taken.items()]
            try:
                await self._write_sessions()  # first: what was answered must not be known without what it led to
                await self._call(partial(self._database.write, _WRITE_CHECKPOINT, rows))
            except Unavailable as error:  # they wait for the next one that is noted, and for `flush`
                _logger.warning("Checkpoints are not written: %s", error)
                self._waiting = {**taken, **self._waiting}
                return error
            finally:
                self._being_written = {}
        return None

    async def _call(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)


def _as_json(ranges: Sequence[SeqRange]) -> str:
    return json.dumps(ranges[-_MOST_RANGES:], separators=(",", ":"))
