"""The caller's grants, followed: how a connector discovers its threads.

*Theory of operation.* What counts is the state, not the frames that led to it. Each reader keeps what it has been told; when the state
differs for a thread, the thread is noted, and the reader is told of the difference when it asks. So a reader that stops costs one note per
thread at most, and a snapshot after a reconnect turns into exactly the changes that were missed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import MappingProxyType

from bubble.client.channels import PASSING, WireState
from bubble.protocol.errors import BubbleError
from bubble.protocol.frames import ClientFrame, GrantsChanged, GrantsSnapshot, GrantsSubscribe, GrantsUnsubscribe
from bubble.protocol.resources import Grant

__all__ = ["GrantsChannel", "GrantsReader"]


class GrantsReader:
    """What one reader has been told and what it has yet to be told. No I/O."""

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self.is_open = False
        self._told: dict[str, Grant] = {}
        self._current: Mapping[str, Grant] = {}
        self._differing: dict[str, None] = {}
        self._news = asyncio.Event()

    @property
    def grants(self) -> Mapping[str, Grant]:
        """The grants that the caller holds now, by thread."""
        return MappingProxyType(dict(self._current))

    def replaced(self, current: Mapping[str, Grant]) -> None:
        """A snapshot came."""
        self._current = current
        self.is_open = True
        for thread_id in {**self._told, **current}:
            self.changed(thread_id)
        self._news.set()

    def changed(self, thread_id: str) -> None:
        """The grant on a thread is another one."""
        if self._told.get(thread_id) != self._current.get(thread_id):
            self._differing[thread_id] = None
            self._news.set()

    def fail(self, error: BaseException) -> None:
        """Ends it: `take` raises `error` once everything has been told."""
        if self.error is None:
            self.error = error
            self._news.set()

    def take(self) -> GrantsChanged | None:
        """The next change; None if there is none yet. Raises what ended the reader, after its last change."""
        while self._differing:
            thread_id = next(iter(self._differing))
            told, current = self._told.get(thread_id), self._current.get(thread_id)
            if told is not None and current is not None and told.created_at != current.created_at:
                current = None  # taken away and given again meanwhile: two changes, the second one is told next
            else:
                del self._differing[thread_id]
            change = self._tell(thread_id, told, current)
            if change is not None:
                return change
        if self.error is not None:
            raise self.error
        return None

    def _tell(self, thread_id: str, told: Grant | None, current: Grant | None) -> GrantsChanged | None:
        if current is None:
            self._told.pop(thread_id, None)
            return None if told is None else GrantsChanged(change="revoked", grant=told)
        self._told[thread_id] = current
        if told is None:
            return GrantsChanged(change="granted", grant=current)
        return None if told == current else GrantsChanged(change="updated", grant=current)

    async def wait(self) -> None:
        """Returns when there is something new."""
        self._news.clear()
        await self._news.wait()


class GrantsChannel:
    """The caller's grants on one socket, for any number of readers. `Channel`; its states are those of `channels`."""

    def __init__(self, *, touched: Callable[[GrantsChannel], None]) -> None:
        self.wire: WireState = "absent"
        self._touched = touched
        self._readers: list[GrantsReader] = []
        self._current: dict[str, Grant] = {}

    @property
    def is_idle(self) -> bool:
        """Whether nobody wants it and the server knows nothing of it."""
        return not self._readers and self.wire == "absent"

    def attach(self, reader: GrantsReader) -> None:
        """`reader` is told from now on."""
        self._readers.append(reader)
        if self.wire == "open":
            reader.replaced(self._current)
        self._touched(self)

    def detach(self, reader: GrantsReader) -> None:
        """`reader` is no longer told."""
        if reader in self._readers:
            self._readers.remove(reader)
            self._touched(self)

    def due(self) -> ClientFrame | None:
        """The next frame to send towards what is wanted; it counts as sent."""
        if self.wire == "open" and not self._readers:
            self.wire = "absent"
            return GrantsUnsubscribe()
        if self.wire == "absent" and self._readers:
            self.wire = "opening"
            return GrantsSubscribe()
        return None

    def snapshot(self, frame: GrantsSnapshot) -> None:
        """`grants.snapshot`."""
        self.wire = "open"
        self._current = {grant.thread_id: grant for grant in frame.grants}
        for reader in self._readers:
            reader.replaced(self._current)
        self._touched(self)

    def changed(self, frame: GrantsChanged) -> None:
        """`grants.changed`."""
        if self.wire != "open":
            return
        if frame.change == "revoked":
            self._current.pop(frame.grant.thread_id, None)
        else:
            self._current[frame.grant.thread_id] = frame.grant
        for reader in self._readers:
            reader.changed(frame.grant.thread_id)

    def refused(self, error: BubbleError) -> bool:
        """An unscoped error while opening; whether a new socket may help."""
        return self.wire == "opening" and error.code in PASSING

    def disconnected(self) -> None:
        """The socket is gone, and what the server knew with it."""
        self.wire = "absent"
        self._touched(self)

    def fail(self, error: BaseException) -> None:
        """It cannot go on: tells the readers, and forgets them."""
        readers, self._readers = self._readers, []
        for reader in readers:
            reader.fail(error)
