"""What `subscribe_thread` and `subscribe_grants` give: async context managers that are their own iterators."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

from bubble.client.follower import Follower, SubscriptionStatistics
from bubble.client.grants import GrantsReader
from bubble.client.socket import SupervisedSocket
from bubble.client.sockets import Sockets
from bubble.protocol.errors import Unavailable
from bubble.protocol.events import SequencedEvent
from bubble.protocol.frames import GrantsChanged
from bubble.protocol.resources import Grant

__all__ = ["GrantsSubscription", "ThreadSubscription"]


class _Subscription(ABC):
    """Entering waits until the server confirmed: `retry_for` seconds where it cannot be reached, `timeout` where it does not answer."""

    def __init__(self, sockets: Sockets, *, retry_for: float, timeout: float) -> None:
        self._sockets = sockets
        self._retry_for = retry_for
        self._timeout = timeout
        self._socket: SupervisedSocket | None = None

    async def _open(
        self, attach: Callable[[], SupervisedSocket], is_open: Callable[[], bool], news: Follower | GrantsReader
    ) -> None:
        if self._socket is not None:
            raise RuntimeError("A subscription is entered once.")
        self._socket = attach()
        try:
            await self._confirmed(self._socket, is_open, news)
        except BaseException:
            self._detach()
            raise

    async def _confirmed(
        self, socket: SupervisedSocket, is_open: Callable[[], bool], news: Follower | GrantsReader
    ) -> None:
        for seconds in (self._retry_for, max(0.0, self._timeout - self._retry_for)):
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    while not is_open() and news.error is None:
                        await news.wait()
                    break
            if socket.last_problem is not None:
                raise socket.last_problem
        else:
            raise Unavailable("The server did not answer.")
        if news.error is not None:
            raise news.error

    def _check_entered(self) -> None:
        if self._socket is None:
            raise RuntimeError("A subscription is entered, with `async with`, before it is read.")

    @abstractmethod
    def _detach(self) -> None:
        """Follows no more."""


class ThreadSubscription(_Subscription):
    """The events of a thread from `from_seq` on, in order, none missing, none twice, across every reconnect.

    Iterating raises `NotFound` when the thread is deleted or the caller may no longer see it, `Unauthenticated` when the bearer is
    refused and there is no other, always after the events that came before. A reader that stops costs at most the buffer: the client
    then stops following and catches up later.
    """

    def __init__(self, sockets: Sockets, follower: Follower, *, retry_for: float, timeout: float) -> None:
        super().__init__(sockets, retry_for=retry_for, timeout=timeout)
        self._follower = follower

    @property
    def thread_id(self) -> str:
        """The thread."""
        return self._follower.thread_id

    @property
    def through_seq(self) -> int:
        """The head when the subscription was first registered: events up to it are backlog, later ones live (spec 2)."""
        if self._follower.through_seq is None:
            raise RuntimeError("The subscription has not been entered.")
        return self._follower.through_seq

    def statistics(self) -> SubscriptionStatistics:
        """Counts since the beginning."""
        return self._follower.statistics()

    async def __aenter__(self) -> Self:
        follower = self._follower
        await self._open(lambda: self._sockets.follow(follower), lambda: follower.through_seq is not None, follower)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._detach()

    def __aiter__(self) -> AsyncIterator[SequencedEvent]:
        return self

    async def __anext__(self) -> SequencedEvent:
        self._check_entered()
        while (event := self._follower.take()) is None:
            await self._follower.wait()
        return event

    async def next_batch(self) -> Sequence[SequencedEvent]:
        """All the events that have come since, at least one: for readers that had rather look once at many. Raises like iterating."""
        while not (events := self.take_batch()):
            await self.wait()
        return events

    def take_batch(self) -> Sequence[SequencedEvent]:
        """All the events that have come since, maybe none. Raises like iterating."""
        self._check_entered()
        return self._follower.take_all()

    async def wait(self) -> None:
        """Returns when there may be something new to take, or when `wake` is called."""
        await self._follower.wait()

    def wake(self) -> None:
        """Lets `wait` return, for a reader that has something else to look after."""
        self._follower.wake()

    def _detach(self) -> None:
        if self._socket is not None:
            self._socket.detach(self._follower)
        self._follower.fail(StopAsyncIteration())


class GrantsSubscription(_Subscription):
    """Changes of the caller's own grants: first `granted` for each one it holds, then whatever changes, reconnects included.

    `grants` is what it holds now. Iterating raises `Unauthenticated` when the bearer is refused and there is no other.
    """

    def __init__(self, sockets: Sockets, *, retry_for: float, timeout: float) -> None:
        super().__init__(sockets, retry_for=retry_for, timeout=timeout)
        self._reader = GrantsReader()

    @property
    def grants(self) -> Mapping[str, Grant]:
        """The grants that the caller holds now, by thread."""
        return self._reader.grants

    async def __aenter__(self) -> Self:
        reader = self._reader
        await self._open(lambda: self._sockets.follow_grants(reader), lambda: reader.is_open, reader)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._detach()

    def __aiter__(self) -> AsyncIterator[GrantsChanged]:
        return self

    async def __anext__(self) -> GrantsChanged:
        self._check_entered()
        while (change := self._reader.take()) is None:
            await self._reader.wait()
        return change

    def _detach(self) -> None:
        if self._socket is not None:
            self._socket.grants.detach(self._reader)
        self._reader.fail(StopAsyncIteration())
