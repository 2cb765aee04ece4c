"""The pages of a memory store's lists: sorted, cut after the cursor, cut at the limit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import msgspec
from msgspec import UNSET

from bubble.protocol.resources import GrantPage, Principal, PrincipalPage, RunPage, RunStateName, ThreadPage
from bubble.store.cursors import decode_cursor, encode_cursor, page_size
from bubble.store.memory.state import MemoryState, ThreadState
from bubble.store.metadata import metadata_from_text, metadata_text

__all__ = ["apart", "grants", "grants_of", "principals", "runs", "threads"]

Key = TypeVar("Key", tuple[int, str], tuple[str, ...], tuple[int, ...])
Entry = TypeVar("Entry")


def threads(
    state: MemoryState,
    *,
    principal_id: str | None,
    viewer: str | None,
    after: str | None,
    limit: int,
    query: str | None,
) -> ThreadPage:
    """As `BubbleStore.list_threads`."""
    wanted = (query or "").casefold()
    entries = [
        ((-thread.last_activity_ms, thread.thread_id), thread)
        for thread in state.threads.values()
        if (principal_id is None or principal_id in thread.grants)
        and (wanted in thread.thread_id.casefold() or wanted in (thread.title or "").casefold())
    ]
    page, next_after = _page(entries, decode_cursor(after, tuple[int, str]), limit)
    return ThreadPage(threads=[thread.resource(principal_id or viewer) for thread in page], next_after=next_after)


def grants(state: MemoryState, thread_id: str, *, after: str | None, limit: int) -> GrantPage:
    """As `BubbleStore.list_grants`."""
    thread = state.thread(thread_id)
    entries = [((name,), (name, record)) for name, record in thread.grants.items()]
    page, next_after = _page(entries, decode_cursor(after, tuple[str]), limit)
    return GrantPage(grants=[state.grant(thread, name, record) for name, record in page], next_after=next_after)


def grants_of(state: MemoryState, principal_id: str, *, after: str | None, limit: int) -> GrantPage:
    """As `BubbleStore.list_grants_of`."""
    entries = [
        ((thread.thread_id,), (thread, record))
        for thread in state.threads.values()
        if (record := thread.grants.get(principal_id)) is not None
    ]
    page, next_after = _page(entries, decode_cursor(after, tuple[str]), limit)
    return GrantPage(
        grants=[state.grant(thread, principal_id, record) for thread, record in page], next_after=next_after
    )


def runs(
    thread: ThreadState, *, state: RunStateName | None, principal_id: str | None, after: str | None, limit: int
) -> RunPage:
    """As `BubbleStore.list_runs`."""
    entries = [
        ((run.started.seq,), run)
        for run in thread.runs.values()
        if state in (None, run.state) and principal_id in (None, run.principal_id)
    ]
    page, next_after = _page(entries, decode_cursor(after, tuple[int]), limit)
    return RunPage(runs=[run.resource(thread.thread_id) for run in page], next_after=next_after)


def principals(state: MemoryState, *, owner: str | None, after: str | None, limit: int) -> PrincipalPage:
    """As `BubbleStore.list_principals`."""
    entries = [
        ((name,), principal)
        for name, principal in state.principals.items()
        if owner in (None, principal.owner_principal_id)
    ]
    page, next_after = _page(entries, decode_cursor(after, tuple[str]), limit)
    return PrincipalPage(principals=[apart(principal) for principal in page], next_after=next_after)


def apart(principal: Principal) -> Principal:
    """The principal with metadata of its own, so that a caller cannot change what the store holds."""
    if principal.metadata is UNSET:
        return principal
    return msgspec.structs.replace(principal, metadata=metadata_from_text(metadata_text(principal.metadata)))


def _page(entries: Iterable[tuple[Key, Entry]], after: Key | None, limit: int) -> tuple[list[Entry], str | None]:
    size = page_size(limit)
    rest = sorted((entry for entry in entries if after is None or entry[0] > after), key=lambda entry: entry[0])
    page = rest[:size]
    return [entry for _, entry in page], encode_cursor(*page[-1][0]) if len(rest) > size else None
