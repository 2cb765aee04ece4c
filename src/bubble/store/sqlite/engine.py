"""What a store runs on: the file with its lock, the writer, the readers, and how to hand them work from the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

import apsw

from bubble.file_lock import FileLock
from bubble.protocol.errors import BubbleError, Unavailable
from bubble.protocol.timestamps import Clock
from bubble.store.admission import RunIntegrity
from bubble.store.notices import Position
from bubble.store.sqlite.activity import Activity, settle_after_crash
from bubble.store.sqlite.checkpoints import Checkpoints
from bubble.store.sqlite.connection import STORE_ERRORS, is_damaged, open_connection
from bubble.store.sqlite.erasing import Erasing
from bubble.store.sqlite.files import make_private
from bubble.store.sqlite.migrations import bring_up_to_date
from bubble.store.sqlite.readers import Readers
from bubble.store.sqlite.telling import Telling
from bubble.store.sqlite.transaction import Change, Transaction
from bubble.store.sqlite.upkeep import Upkeep
from bubble.store.sqlite.writer import Chore, Writer

__all__ = ["Engine"]

T = TypeVar("T")


class Engine:
    """An open file at work. Made by `open`, on the event loop that it then belongs to."""

    def __init__(
        self, path: Path, *, vfs: str | None, telling: Telling, clock: Clock, integrity: RunIntegrity, migrate: bool
    ) -> None:
        """Blocks. Raises `Conflict` and one of `STORE_ERRORS`."""
        self.path = path
        self.vfs = vfs
        self.clock = clock
        self.integrity: RunIntegrity = integrity
        self.telling = telling
        self.erasing = Erasing()
        connect = partial(open_connection, path, vfs=vfs)
        with ExitStack() as undo:
            make_private(path)
            self._lock = FileLock(path, user="server")
            undo.callback(self._lock.release)
            db = connect()
            undo.callback(db.close)
            self.schema_version = bring_up_to_date(db, path, migrate=migrate, clock=clock)
            self._activity = Activity(last_event_id=settle_after_crash(db))
            self.erasing.resume(db)
            undo.pop_all()
        self._readers = Readers(partial(open_connection, path, vfs=vfs, read_only=True))
        self.writer = Writer(
            db,
            connect=connect,
            activity=self._activity,
            upkeep=Upkeep(self._activity, Checkpoints(connect), self.erasing),
            clock=clock,
            integrity=integrity,
            tell=telling.tell,
        )
        self._closing: asyncio.Task[None] | None = None

    @staticmethod
    async def open(path: Path, *, vfs: str | None, clock: Clock, integrity: RunIntegrity, migrate: bool) -> Engine:
        """Opens or creates the file. Raises `Conflict` if it may not be used, `Unavailable` if it cannot be."""
        make = partial(Engine, path, vfs=vfs, telling=Telling(), clock=clock, integrity=integrity, migrate=migrate)
        thread = ThreadPoolExecutor(1, "bubble-open")
        opening = thread.submit(make)
        thread.shutdown(wait=False)
        try:
            engine = await asyncio.wrap_future(opening)
        except STORE_ERRORS as error:
            remedy = (
                " It is damaged, or no database: keep a copy of it, then restore a backup." if is_damaged(error) else ""
            )
            raise Unavailable(f"{path} cannot be opened: {error}.{remedy}") from error
        except asyncio.CancelledError:
            opening.add_done_callback(_close_unused)
            raise
        engine.writer.start()
        return engine

    async def close(self) -> None:
        """Commits what was submitted, then releases everything. Idempotent; cancelling the wait does not stop it."""
        if self._closing is None:
            self.writer.stop()
            self._readers.stop()
            self._closing = asyncio.create_task(asyncio.to_thread(self.release))
        await asyncio.shield(self._closing)

    def release(self) -> None:
        """What `close` waits for, once the writer was told to stop. Blocks."""
        self.writer.join()
        self._readers.close()
        self._lock.release()

    def position(self, thread_id: str) -> Position | None:
        """Where a thread stands, if that is known without reading. `Unavailable` after `close`."""
        if self._closing is not None:
            raise Unavailable("The store is closed.")
        return self.telling.position(thread_id)

    async def read(self, read: Callable[..., T], *arguments: object, **options: object) -> T:
        """What `read(connection, …)` gives, on one of the readers."""
        return await self._readers.run(read, *arguments, **options)

    async def change(self, work: Callable[..., T], *arguments: object, **options: object) -> T:
        """What `work(transaction, …)` gives, once it is durable and told. Cancelling the wait does not take it back."""
        outcome = _Outcome[T]()

        def run(transaction: Transaction) -> T:
            return work(transaction, *arguments, **options)

        self.writer.submit(Change(run, outcome.set))
        return await outcome.get()

    async def settle(self) -> None:
        """Brings what the lists sort by up to date with everything that was told (see activity.py)."""
        if self._activity:
            await self._chore(self._activity.settle)

    async def erased(self, thread_key: int) -> None:
        """Returns once nothing is left of a thread that was deleted."""
        outcome = _Outcome[None]()

        def when_erased(_: apsw.Connection) -> None:
            self.erasing.when_erased(thread_key, lambda result: self.telling.tell((), [(outcome.set, result)]))

        await self._chore(when_erased)
        await outcome.get()

    async def _chore(self, work: Callable[[apsw.Connection], T]) -> T:
        outcome = _Outcome[T]()
        self.writer.submit(Chore(work, outcome.set))
        return await outcome.get()


def _close_unused(opening: Future[Engine]) -> None:
    """Nobody waits for the engine any more, so its file must not stay locked. Called in the thread that opened it."""
    if not opening.cancelled() and opening.exception() is None:
        engine = opening.result()
        engine.writer.start()
        engine.writer.stop()
        engine.release()


class _Outcome(Generic[T]):
    """What came of something that was submitted, for the coroutine that waits for it."""

    def __init__(self) -> None:
        self._future: asyncio.Future[T | BubbleError] = asyncio.get_running_loop().create_future()

    def set(self, result: T | BubbleError) -> None:
        if not self._future.done():  # else its waiter was cancelled
            self._future.set_result(result)

    async def get(self) -> T:
        result = await self._future
        if isinstance(result, BubbleError):
            raise result
        return result
