"""What a change other than an append works with: the open transaction, the threads in it, what to tell afterwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import apsw

from bubble.protocol.errors import thread_not_found
from bubble.protocol.events import EncodedEvent
from bubble.store.admission import RunIntegrity, admit
from bubble.store.commands import AppendCommand, Guard
from bubble.store.notices import Notice
from bubble.store.sqlite.activity import Activity
from bubble.store.sqlite.group import Done, Group
from bubble.store.sqlite.thread_state import States, ThreadState

__all__ = ["Change", "Transaction"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """Something to do within the writer's transaction, in its turn among the appends. It happens completely or not at all."""

    work: Callable[[Transaction], T]
    done: Done


class Transaction:
    """The transaction as one change sees it. The writer applies or drops what it gathers."""

    def __init__(self, group: Group, states: States, activity: Activity, integrity: RunIntegrity) -> None:
        self.db: apsw.Connection = group.db
        self.now_ms = group.now_ms
        self._group = group
        self._states = states
        self._activity = activity
        self._integrity: RunIntegrity = integrity
        self._notices: list[Notice] = []
        self._afterwards: list[Callable[[], None]] = []
        # Those in use, and whether something about them has to be told.
        self._threads: dict[str, ThreadState] = {}
        self._changed: set[str] = set()

    def thread(self, thread_id: str) -> ThreadState:
        """The thread; `NotFound` if there is none."""
        state = self._states.find(thread_id)
        if state is None:
            raise thread_not_found(thread_id)
        return self._use(state)

    def exists(self, thread_id: str) -> bool:
        """Whether a thread has that id."""
        return self._states.find(thread_id) is not None

    def add(self, state: ThreadState) -> ThreadState:
        """Takes in a thread that this transaction makes."""
        self._states.by_id[state.thread_id] = state
        self._changed.add(state.thread_id)
        return self._use(state)

    def remove(self, state: ThreadState) -> None:
        """Takes out a thread that this transaction deletes."""
        del self._states.by_id[state.thread_id]
        self._changed.discard(state.thread_id)

    def require(self, guard: Guard | None, capability: str, state: ThreadState) -> None:
        """Raises `NotFound` or `Forbidden` unless the guard's principal has the capability on the thread; without a guard it has."""
        if guard is not None:
            role = state.role_of(guard.principal_id)
            guard.require(capability, thread_id=state.thread_id, role=role, join_policy=state.join_policy)

    def write(self, state: ThreadState, events: Sequence[EncodedEvent]) -> None:
        """Appends the store's own events."""
        if events:
            command = AppendCommand(state.thread_id, events)
            self._group.write(state, command, admit(command, state, now_ms=self.now_ms, integrity=self._integrity))
            self._changed.add(state.thread_id)

    def last_ms_of_run(self, state: ThreadState, run_id: str) -> int:
        """The time of the run's newest event where it is not settled yet, else 0. Only for a thread that is in use here."""
        run = (state.key, run_id)
        newest = self._group.touched_runs.get(run) or self._activity.newest_of_run(run)
        return 0 if newest is None else newest[1]

    def new_event_ids(self, count: int) -> int:
        """The first of `count` ids for events that a change writes itself."""
        first = self._group.event_id + 1
        self._group.event_id += count
        return first

    def raise_grant_version(self, state: ThreadState) -> None:
        """To be called with every change of grants or of the join policy, before events that come with it."""
        state.grant_version += 1
        state.forget_grants()
        self.db.execute("UPDATE threads SET grant_version = ? WHERE thread_key = ?", (state.grant_version, state.key))
        self._changed.add(state.thread_id)

    def tell(self, notice: Notice) -> None:
        """Tells something after the commit, before the new positions of the threads."""
        self._notices.append(notice)

    def afterwards(self, then: Callable[[], None]) -> None:
        """Has `then` called in the writer's thread after the commit."""
        self._afterwards.append(then)

    def succeed(self) -> None:
        """Passes everything on to the group; it is in the transaction now."""
        self._group.flush()
        self._group.notices += self._notices
        self._group.afterwards += self._afterwards
        for thread_id in self._threads:
            if thread_id in self._changed:
                self._group.tell(self._threads[thread_id], always=True)

    def fail(self) -> None:
        """Forgets everything, also what was known of the threads in use."""
        self._group.discard()
        for thread_id, state in self._threads.items():
            state.texts = None
            self._states.by_id.pop(thread_id, None)

    def _use(self, state: ThreadState) -> ThreadState:
        if state.thread_id not in self._threads:
            self._group.tell(state)
            self._threads[state.thread_id] = state
        return state
