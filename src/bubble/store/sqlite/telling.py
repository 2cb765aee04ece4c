"""From the writer's thread to those who wait on the event loop: notices to listeners, then outcomes to their callers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

from bubble.store.notices import Committed, Listener, Notice, Position, ThreadDeleted
from bubble.store.sqlite.group import Outcome

__all__ = ["Telling"]

_MOST_POSITIONS: Final = 65_536


class Telling:
    """Made on the event loop. `tell` may be called from any thread, in the order in which things are to be told."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._listeners: dict[object, Listener] = {}
        self._positions: dict[str, tuple[int, int]] = {}

    def listen(self, listener: Listener) -> Callable[[], None]:
        """As `BubbleStore.listen`."""
        key = object()
        self._listeners[key] = listener

        def unlisten() -> None:
            self._listeners.pop(key, None)

        return unlisten

    def position(self, thread_id: str) -> Position | None:
        """Where a thread stands, if something was committed on it lately. Never ahead of what was told."""
        latest = self._positions.get(thread_id)
        return None if latest is None else Position(*latest)

    def tell(self, notices: Sequence[Notice], outcomes: Sequence[Outcome]) -> None:
        """Has both told on the event loop; nobody is left to hear it if that is closed."""
        try:
            self._loop.call_soon_threadsafe(self._tell, notices, outcomes)
        except RuntimeError:
            if not self._loop.is_closed():
                raise

    def _tell(self, notices: Sequence[Notice], outcomes: Sequence[Outcome]) -> None:
        if notices:
            self._follow(notices)
            for key, listener in list(self._listeners.items()):
                if key in self._listeners:
                    self._call(listener, notices)
        for done, result in outcomes:
            try:
                done(result)
            except Exception as error:  # noqa: BLE001 - one that fails takes no other with it
                self._report(done, error)

    def _follow(self, notices: Sequence[Notice]) -> None:
        if len(self._positions) > _MOST_POSITIONS:
            self._positions.clear()
        for notice in notices:
            if type(notice) is Committed:
                self._positions[notice.thread_id] = (notice.head, notice.grant_version)
            elif type(notice) is ThreadDeleted:
                self._positions.pop(notice.thread_id, None)

    def _call(self, listener: Listener, notices: Sequence[Notice]) -> None:
        try:
            listener(notices)
        except Exception as error:  # noqa: BLE001 - the same
            self._report(listener, error)

    def _report(self, callback: Callable[..., Any], error: Exception) -> None:
        message = f"{callback!r}, called by a store, failed"
        self._loop.call_exception_handler({"message": message, "exception": error})
