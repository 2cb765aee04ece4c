"""Threads: creating, changing and deleting them in the writer's transaction; finding and listing them on a reader."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import apsw
import msgspec
from msgspec import UNSET

from bubble.protocol.errors import thread_not_found
from bubble.protocol.events import SequencedEvent
from bubble.protocol.resources import JoinPolicy, Thread, ThreadPage
from bubble.protocol.timestamps import format_ms
from bubble.store.commands import Guard
from bubble.store.cursors import decode_cursor, encode_cursor, page_size
from bubble.store.grants import HeldRole
from bubble.store.metadata import metadata_from_text, metadata_text
from bubble.store.notices import Position, ThreadDeleted
from bubble.store.records import NewThread, ThreadChanges
from bubble.store.sqlite.connection import find_all, find_one, number, query
from bubble.store.sqlite.erasing import Erasing
from bubble.store.sqlite.grants import seat, take_all
from bubble.store.sqlite.principals import require_principal
from bubble.store.sqlite.thread_rows import folded, insert_thread, is_retired
from bubble.store.sqlite.thread_state import ThreadState
from bubble.store.sqlite.transaction import Transaction
from bubble.store.threads import plan_seats, plan_update, thread_id_taken

__all__ = [
    "as_told",
    "create_thread",
    "delete_thread",
    "find_position",
    "find_positions",
    "find_thread",
    "list_threads",
    "new_thread",
    "refuse_taken",
    "update_thread",
]

#: Up to so many grants, sorting a principal's threads is quicker than walking all threads in their order.
_FEW_GRANTS: Final = 2_000
_BEGINNING: Final = (-(2**62), "")


class _ThreadRow(msgspec.Struct, frozen=True, array_like=True):
    thread_id: str
    title: str | None
    metadata: str | None
    join_policy: JoinPolicy
    created_ms: int
    head: int
    last_ms: int
    role: str | None

    def resource(self) -> Thread:
        return Thread(
            thread_id=self.thread_id,
            join_policy=self.join_policy,
            created_at=format_ms(self.created_ms),
            last_activity_at=format_ms(self.last_ms),
            head_seq=self.head,
            title=UNSET if self.title is None else self.title,
            metadata=metadata_from_text(None if self.metadata is None else self.metadata.encode()),
            role=UNSET if self.role is None else self.role,
        )


_rows: Final = msgspec.json.Decoder(list[_ThreadRow])
_positions: Final = msgspec.json.Decoder(list[tuple[str, int, int]])


# --- in the writer's transaction ------------------------------------------------------------------------------------------------


def create_thread(tx: Transaction, new: NewThread) -> Thread:
    """As `BubbleStore.create_thread`."""
    seats = plan_seats(new)
    refuse_taken(tx, new.thread_id)
    for one in seats:
        require_principal(tx.db, one.participant.principal_id)
    state = new_thread(tx, new, title=new.title, created_ms=tx.now_ms)
    for one in seats:
        role = HeldRole(one.participant.role, one.participant.appends)
        seat(tx, state, one.participant.principal_id, role, granted_by=one.granted_by, created_ms=tx.now_ms)
    tx.write(state, [one.event for one in seats if one.event is not None])
    return as_told(tx, state, new.creator)


def new_thread(tx: Transaction, new: NewThread, *, title: str | None, created_ms: int) -> ThreadState:
    """A thread that has neither events nor grants yet."""
    state = insert_thread(
        tx.db,
        new.thread_id,
        created_ms=created_ms,
        title=title,
        metadata=metadata_text(new.metadata),
        join_policy=new.join_policy,
    )
    return tx.add(state)


def refuse_taken(tx: Transaction, thread_id: str) -> None:
    """Raises `Conflict` if a thread has, or ever had, that id."""
    if tx.exists(thread_id) or is_retired(tx.db, thread_id):
        raise thread_id_taken(thread_id)


def update_thread(tx: Transaction, thread_id: str, changes: ThreadChanges, *, by: str, guard: Guard | None) -> Thread:
    """As `BubbleStore.update_thread`."""
    state = tx.thread(thread_id)
    tx.require(guard, "thread.update", state)
    title, metadata = find_one(tx.db, "SELECT title, metadata FROM threads WHERE thread_key = ?", (state.key,))
    plan = plan_update(title, state.join_policy, changes, by=by)
    title = title if changes.title is UNSET else changes.title
    metadata = metadata if changes.metadata is UNSET else metadata_text(changes.metadata)
    tx.db.execute(
        "UPDATE threads SET title = ?, metadata = ?, folded = ? WHERE thread_key = ?",
        (title, metadata, folded(thread_id, title), state.key),
    )
    if plan.policy_changed and changes.join_policy is not UNSET:
        state.join_policy = changes.join_policy
        tx.db.execute("UPDATE threads SET join_policy = ? WHERE thread_key = ?", (state.join_policy, state.key))
        tx.raise_grant_version(state)
    tx.write(state, [plan.event] if plan.event is not None else [])
    return as_told(tx, state, by)


def delete_thread(tx: Transaction, thread_id: str, *, guard: Guard | None, erasing: Erasing) -> int:
    """As `BubbleStore.delete_thread`, but its bytes are only doomed; the number under which they will be erased."""
    state = tx.thread(thread_id)
    tx.require(guard, "thread.delete", state)
    take_all(tx, state)
    tx.tell(ThreadDeleted(thread_id))
    key = state.key
    tx.db.execute("INSERT INTO retired_threads VALUES (?)", (thread_id,))
    tx.db.execute("INSERT INTO doomed_threads VALUES (?)", (key,))
    tx.db.execute("DELETE FROM threads WHERE thread_key = ?", (key,))
    tx.db.execute("DELETE FROM activity WHERE thread_key = ?", (key,))
    tx.remove(state)
    tx.afterwards(lambda: erasing.add(key))
    return key


def as_told(tx: Transaction, state: ThreadState, principal_id: str | None) -> Thread:
    """The thread as it will be after the commit."""
    title, metadata, created_ms = find_one(
        tx.db, "SELECT title, metadata, created_ms FROM threads WHERE thread_key = ?", (state.key,)
    )
    role = None if principal_id is None else state.role_of(principal_id)
    return Thread(
        thread_id=state.thread_id,
        join_policy=state.join_policy,
        created_at=format_ms(created_ms),
        last_activity_at=format_ms(state.last_ms if state.head else created_ms),
        head_seq=state.head,
        title=UNSET if title is None else title,
        metadata=metadata_from_text(metadata),
        role=UNSET if role is None else role,
    )


# --- on a reader ----------------------------------------------------------------------------------------------------------------


def find_thread(db: apsw.Connection, thread_id: str, principal_id: str | None) -> Thread:
    """As `BubbleStore.get_thread`."""
    row = find_one(db, query("thread"), (thread_id, principal_id))
    if row is None:
        raise thread_not_found(thread_id)
    title, metadata, join_policy, created_ms, role, head, text = row
    last_activity_at = format_ms(created_ms) if text is None else SequencedEvent.from_stored(text).created_at
    return Thread(
        thread_id=thread_id,
        join_policy=join_policy,
        created_at=format_ms(created_ms),
        last_activity_at=last_activity_at,
        head_seq=head or 0,
        title=UNSET if title is None else title,
        metadata=metadata_from_text(metadata),
        role=UNSET if role is None else role,
    )


def list_threads(
    db: apsw.Connection,
    *,
    principal_id: str | None,
    viewer: str | None,
    after: str | None,
    limit: int,
    part: str | None,
) -> ThreadPage:
    """As `BubbleStore.list_threads`. The activity has to be settled."""
    size = page_size(limit)
    minus_ms, after_id = decode_cursor(after, tuple[int, str]) or _BEGINNING
    bindings = (-minus_ms, after_id, (part or "").casefold(), size + 1)
    if principal_id is None:
        rows = find_all(db, query("threads_of_all"), (*bindings, viewer), _rows)
    else:
        few = number(db, query("count_grants"), (principal_id, _FEW_GRANTS)) < _FEW_GRANTS
        name = "threads_of_principal_by_grant" if few else "threads_of_principal_by_time"
        rows = find_all(db, query(name), (*bindings, principal_id), _rows)
    last = rows[size - 1] if len(rows) > size else None
    return ThreadPage(
        threads=[row.resource() for row in rows[:size]],
        next_after=None if last is None else encode_cursor(-last.last_ms, last.thread_id),
    )


def find_position(db: apsw.Connection, thread_id: str) -> Position:
    """As `BubbleStore.position`."""
    row = find_one(db, query("position"), (thread_id,))
    if row is None:
        raise thread_not_found(thread_id)
    head, grant_version = row
    return Position(head, grant_version)


def find_positions(db: apsw.Connection, thread_ids: Sequence[str]) -> dict[str, Position]:
    """As `BubbleStore.positions`."""
    asked = msgspec.json.encode(thread_ids).decode()
    found = find_all(db, query("positions"), (asked,), _positions)
    return {thread_id: Position(head, grant_version) for thread_id, head, grant_version in found}
