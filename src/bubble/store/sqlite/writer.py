"""The one thread that changes the file.

*Theory of operation.* Everything that writes meets in one queue, so its order is the order of arrival. The thread takes what is there
(there is no timer: while one group commits, the next one gathers), decides about each command in memory, writes them as one
`Group`, and hands notices and outcomes to the event loop in one call. A command that is refused fails alone. Where the disk fails, the
whole group fails, the file is as it was, and what the thread remembered is dropped, because it may tell of the group.

Between two groups come chores (jobs with transactions of their own, in their turn) and `Upkeep`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeAlias

import apsw

from bubble.protocol.errors import BubbleError, InternalError, Unavailable
from bubble.protocol.timestamps import Clock
from bubble.store.admission import RunIntegrity
from bubble.store.commands import AppendCommand
from bubble.store.notices import Notice
from bubble.store.sqlite.activity import Activity
from bubble.store.sqlite.appends import Appends
from bubble.store.sqlite.connection import STORE_ERRORS, unavailable
from bubble.store.sqlite.group import Done, Group, Outcome
from bubble.store.sqlite.thread_state import States
from bubble.store.sqlite.transaction import Change, Transaction
from bubble.store.sqlite.upkeep import Upkeep

__all__ = ["Chore", "Counters", "Item", "Tell", "Writer"]

_MOST_COMMANDS: Final = 2_048
_MOST_BYTES: Final = 16 * 1024 * 1024

_log = logging.getLogger("bubble.store")


@dataclass(frozen=True, slots=True)
class Chore:
    """A job for the writer's connection between two groups; what it returns or the `BubbleError` it raises is its outcome."""

    work: Callable[[apsw.Connection], object]
    done: Done


Item: TypeAlias = AppendCommand | Change[Any] | Chore
Tell: TypeAlias = Callable[[Sequence[Notice], Sequence[Outcome]], None]


@dataclass(slots=True)
class Counters:
    """Since opening; written by the writer's thread alone."""

    appends: int = 0
    refused: int = 0
    commits: int = 0
    largest: int = 0
    commit_seconds: float = 0.0


class Writer:
    """Owns the writing connection `db`; `connect` opens another one should it break.

    `tell` is called in the thread, with what each group has to tell.
    """

    def __init__(
        self,
        db: apsw.Connection,
        *,
        connect: Callable[[], apsw.Connection],
        activity: Activity,
        upkeep: Upkeep,
        clock: Clock,
        integrity: RunIntegrity,
        tell: Tell,
    ) -> None:
        self.counters = Counters()
        self._connect = connect
        self._activity = activity
        self._upkeep = upkeep
        self._clock = clock
        self._integrity: RunIntegrity = integrity
        self._tell = tell
        self._queue: deque[Item] = deque()
        self._bell: SimpleQueue[None] = SimpleQueue()
        self._is_asleep = False
        self._is_stopping = False
        self._groups = 0
        self._db = db
        self._states = States(self._db)
        self._thread = threading.Thread(target=self._run, name="bubble-writer", daemon=True)

    def start(self) -> None:
        """Begins to take what is submitted."""
        self._thread.start()

    def submit(self, item: Item) -> None:
        """Queues something; `Unavailable` once `stop` was called. To be called on the event loop."""
        if self._is_stopping:
            raise Unavailable("The store is closed.")
        self._queue.append(item)
        if self._is_asleep:
            self._ring()

    def stop(self) -> None:
        """Takes nothing more, finishes what was submitted. `join` waits for that."""
        self._is_stopping = True
        self._ring()

    def join(self) -> None:
        """Returns when the thread has ended and the connection is closed."""
        self._thread.join()

    @property
    def queued(self) -> int:
        """How many items wait."""
        return len(self._queue)

    def _ring(self) -> None:
        # The flag is down before the bell rings, and the writer looks into the queue after raising the flag: no ring is lost, and at
        # worst one is superfluous.
        self._is_asleep = False
        self._bell.put(None)

    def _sleep(self) -> bool:
        """Waits until there is something to do; whether nothing arrived for so long that the writer is idle."""
        timeout = self._upkeep.patience(self._db)
        self._is_asleep = True
        try:
            if not self._queue and not self._is_stopping:
                self._bell.get(timeout=timeout)
        except Empty:
            return bool(timeout)
        finally:
            self._is_asleep = False
        return False

    def _run(self) -> None:
        is_idle = False
        while self._queue or not self._is_stopping:
            if self._queue:
                self._take_group()
            self._upkeep.run(self._db, is_idle=is_idle and not self._queue)
            is_idle = not self._queue and self._sleep()
        self._upkeep.finish(self._db)
        self._db.close()

    def _take_group(self) -> None:
        taken: list[AppendCommand | Change[Any]] = []
        chore: Chore | None = None
        try:
            group = self._new_group()
            appends = Appends(group, self._states, self._integrity)
            chore = self._fill(group, appends, taken)
            self._commit(group, appends)
        except STORE_ERRORS as error:
            self._fail(taken, unavailable(error))
        except Exception:  # noqa: BLE001 - a mistake in here must not end the thread that everybody waits for
            _log.exception("a group of commands failed")
            self._fail(taken, InternalError("The store made a mistake. Nothing was written."))
        else:
            if group.notices or group.outcomes:
                self._tell(group.notices, group.outcomes)
        if chore is not None:
            self._do(chore)

    def _new_group(self) -> Group:
        self._states.make_room()
        self._groups += 1
        return Group(self._db, number=self._groups, now_ms=self._clock(), last_event_id=self._activity.last_event_id)

    def _fill(self, group: Group, appends: Appends, taken: list[AppendCommand | Change[Any]]) -> Chore | None:
        """Takes what is queued until there is enough for one group, or a chore."""
        take, next_item = appends.take, self._queue.popleft
        size = 0
        for _ in range(min(len(self._queue), _MOST_COMMANDS)):
            item = next_item()
            if type(item) is AppendCommand:
                taken.append(item)
                size += take(item)
                if size > _MOST_BYTES:
                    break
            elif isinstance(item, Change):
                taken.append(item)
                self._change(group, item)
            elif isinstance(item, Chore):
                return item
        return None

    def _change(self, group: Group, change: Change[Any]) -> None:
        group.flush()
        group.begin()
        transaction = Transaction(group, self._states, self._activity, self._integrity)
        group.db.execute("SAVEPOINT change")
        outcome: object
        try:
            outcome = change.work(transaction)
            transaction.succeed()
        except STORE_ERRORS:
            raise
        except Exception as error:  # noqa: BLE001 - it fails alone
            transaction.fail()
            group.db.execute("ROLLBACK TO change")
            outcome = error if isinstance(error, BubbleError) else InternalError("The store made a mistake.")
            if outcome is not error:
                _log.exception("a change failed")
        group.db.execute("RELEASE change")
        group.answer(change.done, outcome)

    def _commit(self, group: Group, appends: Appends) -> None:
        began = time.perf_counter()
        has_written = group.commit(self._activity)
        counters = self.counters
        if has_written:
            counters.commit_seconds += time.perf_counter() - began
            counters.commits += 1
        counters.appends += appends.appended
        counters.refused += appends.refused
        counters.largest = max(counters.largest, appends.appended)

    def _do(self, chore: Chore) -> None:
        outcome: object
        try:
            outcome = chore.work(self._db)
        except BubbleError as error:
            outcome = error
        except STORE_ERRORS as error:
            self._recover()
            outcome = unavailable(error)
        except Exception:  # noqa: BLE001 - it fails alone
            _log.exception("a chore failed")
            self._recover()
            outcome = InternalError("The store made a mistake.")
        self._tell((), [(chore.done, outcome)])

    def _fail(self, taken: Sequence[AppendCommand | Change[Any]], error: BubbleError) -> None:
        self._recover()
        outcomes: list[Outcome] = [(item.done, error) for item in taken if item.done is not None]
        if outcomes:
            self._tell((), outcomes)

    def _recover(self) -> None:
        """Back to what the file says."""
        try:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        except STORE_ERRORS:
            self._reconnect()
        self._states = States(self._db)

    def _reconnect(self) -> None:
        # A connection that cannot even roll back is given up: closing it rolls back.
        try:
            replacement = self._connect()
        except STORE_ERRORS as error:
            _log.warning("the store cannot be opened again: %s", error)
            return
        self._db.close(force=True)
        self._db = replacement
