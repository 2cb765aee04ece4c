"""Appends on their way into a group: decided in memory by the rules of `bubble.store.admission`, written together later."""

from __future__ import annotations

import logging

from bubble.protocol.errors import BubbleError, InternalError, thread_not_found
from bubble.protocol.events import MessagePart, SequencedEvent, sequence
from bubble.store.admission import Admission, RunIntegrity, admit, authorize, key_reused
from bubble.store.commands import AppendCommand, Appended
from bubble.store.sqlite.connection import STORE_ERRORS, find_one
from bubble.store.sqlite.group import Group
from bubble.store.sqlite.reading import read_range
from bubble.store.sqlite.thread_rows import insert_thread, is_retired
from bubble.store.sqlite.thread_state import Pen, States, ThreadState
from bubble.store.threads import thread_id_taken

__all__ = ["Appends"]

_log = logging.getLogger("bubble.store")


class Appends:
    """The commands of one group, one by one. A command that is refused leaves no trace."""

    __slots__ = ("_by_id", "_group", "_integrity", "_states", "appended", "refused")

    def __init__(self, group: Group, states: States, integrity: RunIntegrity) -> None:
        self._group = group
        self._states = states
        self._by_id = states.by_id
        self._integrity: RunIntegrity = integrity
        self.appended = 0
        self.refused = 0

    def take(self, command: AppendCommand) -> int:
        """Decides about one command; how many bytes it adds. Raises one of `STORE_ERRORS` where nothing can be decided."""
        state = self._by_id.get(command.thread_id)
        events = command.events
        if state is not None and len(events) == 1 and command.idempotency is None and command.expected_head is None:
            event = events[0].event
            if type(event) is MessagePart:
                pen = state.pens.get(event.run_id)
                if pen is not None and pen.guard is command.guard and pen.principal_id == event.principal_id:
                    return self._write_part(command, state, pen)
        return self._decide(command)

    def _write_part(self, command: AppendCommand, state: ThreadState, pen: Pen) -> int:
        # The way of almost every event, see `Pen`. Each line here counts.
        group = self._group
        texts = state.texts
        if texts is None:
            texts = group.open(state)
        pen.seq = state.head = seq = state.head + 1
        text = sequence(command.events[0].text, seq=seq, created_at=state.created_at)
        texts.append(text)
        group.event_id = event_id = group.event_id + 1
        group.rows += (event_id, state.key, seq, text)
        self.appended += 1
        done = command.done
        if done is not None and not command.failures_only:
            group.outcomes.append((done, Appended((SequencedEvent(seq, state.created_at, text),))))
        return len(text)

    def _decide(self, command: AppendCommand) -> int:
        try:
            state = self._states.find(command.thread_id) or self._unknown_thread(command)
            authorize(command, state)
            appended = self._replay(command, state)
            admission = None if appended else self._admit(command, state)
        except STORE_ERRORS:
            raise
        except BubbleError as error:
            return self._refuse(command, error)
        except Exception:  # noqa: BLE001 - a broken guard or event is no reason to fail the others
            _log.exception("an append could not be decided")
            return self._refuse(command, InternalError("The append could not be decided."))
        if admission is not None:
            self._write(command, state, admission)
            appended = Appended(admission.events)
        if not command.failures_only:
            self._group.answer(command.done, appended)
        return 0 if admission is None else sum(len(event.text) for event in admission.events)

    def _refuse(self, command: AppendCommand, error: BubbleError) -> int:
        self.refused += 1
        self._group.answer(command.done, error)
        return 0

    def _unknown_thread(self, command: AppendCommand) -> ThreadState:
        if not command.create:
            raise thread_not_found(command.thread_id)
        if is_retired(self._group.db, command.thread_id):
            raise thread_id_taken(command.thread_id)
        return ThreadState(self._group.db, command.thread_id, key=0)

    def _replay(self, command: AppendCommand, state: ThreadState) -> Appended | None:
        """What the key's first use stored, if this is not it."""
        asked = command.idempotency
        if asked is None:
            return None
        db, key = self._group.db, (state.key, asked.caller, asked.key)
        kept = self._group.keys.get(key) or find_one(
            db,
            "SELECT digest, first_seq, last_seq FROM idempotency_keys WHERE thread_key = ? AND caller = ? AND key = ?",
            key,
        )
        if kept is None:
            return None
        digest, first, last = kept
        if digest != asked.digest:
            raise key_reused(asked)
        self._group.flush()
        texts = read_range(db, state.thread_id, first, last)
        return Appended([SequencedEvent.from_stored(text) for text in texts], replayed=True)

    def _admit(self, command: AppendCommand, state: ThreadState) -> Admission:
        return admit(command, state, now_ms=self._group.now_ms, integrity=self._integrity)

    def _write(self, command: AppendCommand, state: ThreadState, admission: Admission) -> None:
        if not state.key:
            self._group.begin()
            state.key = insert_thread(self._group.db, state.thread_id, created_ms=self._group.now_ms).key
            self._by_id[state.thread_id] = state
        self._group.write(state, command, admission)
        self.appended += len(admission.events)
        for item in command.events:
            event = item.event
            if type(event) is MessagePart and event.run_id not in admission.finished:
                state.pens[event.run_id] = Pen(command.guard, event.principal_id)
