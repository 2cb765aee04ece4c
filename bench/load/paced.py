"""Events at a steady rate, and when each reader had each of them.

The rate is kept whatever the server does: an event that waits for a free connection counts from when it was due.
"""

from __future__ import annotations

import select
import socket
import time
from array import array
from collections import deque
from collections.abc import Sequence
from typing import Final, Protocol

from bench.load.closed import HttpAnswers
from bench.load.events import Deliveries, VerificationError
from bench.load.loops import Stalled

__all__ = ["FramePublisher", "HttpPublisher", "Publisher", "TimedReader", "delays_ms", "percentile", "publish"]

_CHUNK: Final = 256 * 1024
_PATIENCE: Final = 20.0


class Publisher(Protocol):
    """Sends events one by one."""

    @property
    def sockets(self) -> Sequence[socket.socket]:
        """What to watch for answers."""

    def send(self, due: float) -> float | None:
        """Sends one event now; the time it counts from. None if it has to wait for a connection."""

    def answered(self, number: int) -> None:
        """The socket with that file number has something to read."""

    @property
    def is_idle(self) -> bool:
        """Whether nothing it sent waits for an answer."""


class HttpPublisher:
    """One `POST` per event, on whichever connection is free."""

    def __init__(self, connections: Sequence[socket.socket], request: bytes) -> None:
        self.sockets: Sequence[socket.socket] = connections
        self._request = request
        self._free = deque(connections)
        self._answers = {connection.fileno(): (connection, HttpAnswers()) for connection in connections}
        self._is_late = False

    def send(self, due: float) -> float | None:
        """Sends one event now; the time it counts from. None if it has to wait for a connection."""
        if not self._free:
            self._is_late = True
            return None
        since = due if self._is_late else time.perf_counter()
        self._is_late = False
        if self._free.popleft().send(self._request) != len(self._request):
            raise VerificationError("A request did not fit into an idle connection's buffer.")
        return since

    def answered(self, number: int) -> None:
        """Reads an answer."""
        connection, answers = self._answers[number]
        data = connection.recv(_CHUNK)
        if not data:
            raise VerificationError("The server closed a connection.")
        if answers.feed(data):
            self._free.append(connection)

    @property
    def is_idle(self) -> bool:
        """Whether nothing it sent waits for an answer."""
        return len(self._free) == len(self.sockets)


class FramePublisher:
    """One frame per event on one WebSocket."""

    def __init__(self, connection: socket.socket, frame: bytes) -> None:
        connection.setblocking(False)  # noqa: FBT003 - the standard library's signature
        self.sockets: Sequence[socket.socket] = (connection,)
        self._frame = frame

    def send(self, due: float) -> float | None:  # noqa: ARG002 - a WebSocket is always free
        """Sends one event now; the time it counts from."""
        now = time.perf_counter()
        if self.sockets[0].send(self._frame) != len(self._frame):
            raise VerificationError("The server does not take events at this rate.")
        return now

    def answered(self, number: int) -> None:  # noqa: ARG002
        """Appends over a WebSocket are only answered when they fail."""
        raise VerificationError(f"The server answered the publisher: {self.sockets[0].recv(400)!r}.")

    @property
    def is_idle(self) -> bool:
        """Always: nothing is answered."""
        return True


class TimedReader:
    """Notes when each event of a thread, from seq `first` on, has arrived: told by the number of bytes, as their sizes are known."""

    __slots__ = ("_deliveries", "_got", "_next_end", "_seq", "arrivals", "socket")

    def __init__(self, connection: socket.socket, deliveries: Deliveries, *, first: int) -> None:
        connection.setblocking(False)  # noqa: FBT003 - the standard library's signature
        self.socket = connection
        self.arrivals = array("d")
        self._deliveries = deliveries
        self._seq = first
        self._got = 0
        self._next_end = deliveries.size(first)

    def take(self, now: float) -> None:
        """Takes what is there, as of `now`."""
        data = self.socket.recv(_CHUNK)
        if not data:
            raise VerificationError("A reader was cut off.")
        self._got += len(data)
        while self._got >= self._next_end:
            self.arrivals.append(now)
            self._seq += 1
            self._next_end += self._deliveries.size(self._seq)


def publish(
    publisher: Publisher, readers: Sequence[TimedReader], *, rate: float, count: int
) -> tuple[Sequence[float], Sequence[Sequence[float]]]:
    """Publishes `count` events at `rate` per second. When each was sent, and for each reader when it arrived there."""
    by_number = {reader.socket.fileno(): reader for reader in readers}
    already = [len(reader.arrivals) for reader in readers]
    sent: list[float] = []
    with select.epoll() as poll:
        for number in (*by_number, *(each.fileno() for each in publisher.sockets)):
            poll.register(number, select.EPOLLIN)
        start = time.perf_counter()
        deadline = start + count / rate + _PATIENCE
        while len(sent) < count or not _complete(readers, already, count) or not publisher.is_idle:
            now = time.perf_counter()
            if now > deadline:
                raise Stalled(f"{count} events were not all delivered {_PATIENCE:g} s after the last was due.")
            due = start + len(sent) / rate
            if len(sent) < count and now >= due:
                since = publisher.send(due)
                if since is not None:
                    sent.append(since)
                    continue
            wait = max(0.0, due - now) if len(sent) < count else 0.1
            _take(poll.poll(wait), by_number, publisher)
    return sent, [reader.arrivals[skip:] for reader, skip in zip(readers, already, strict=True)]


def _take(ready: Sequence[tuple[int, int]], readers: dict[int, TimedReader], publisher: Publisher) -> None:
    # Everything in here was ready at this moment; how long it takes to get round is not the server's time.
    now = time.perf_counter()
    for number, _ in ready:
        reader = readers.get(number)
        if reader is None:
            publisher.answered(number)
        else:
            reader.take(now)


def _complete(readers: Sequence[TimedReader], already: Sequence[int], count: int) -> bool:
    return all(len(reader.arrivals) - skip >= count for reader, skip in zip(readers, already, strict=True))


def delays_ms(sent: Sequence[float], arrived: Sequence[float]) -> list[float]:
    """How long each event took, in milliseconds."""
    if len(sent) != len(arrived):
        raise VerificationError(f"{len(sent)} events were sent and {len(arrived)} arrived.")
    return [(there - here) * 1000 for here, there in zip(sent, arrived, strict=True)]


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that so many percent of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]
