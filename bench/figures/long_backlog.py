"""A socket that follows a live thread begins to replay a long one: what that does to the live events.

One socket follows a thread with a steady trickle of events, and replays 100,000 events of another one, again and again. How long the live
events take, against the same socket without a replay. Whatever of the replay lies in buffers before a live event is in its time.
"""

from __future__ import annotations

import select
import socket
import time
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Final

from bench.figure import Bench, Figure, Parties, Row, Sample
from bench.load.events import Deliveries, VerificationError, part_event
from bench.load.loops import Stalled, timed
from bench.load.paced import delays_ms, percentile
from bench.load.threads import FIRST, new_thread
from bench.load.wire import append_frame, open_websockets, subscribe, subscribe_frame, unsubscribe_frame
from bench.servers.process import Server, bubble_server

__all__ = ["LONG_BACKLOG"]

_BACKLOG: Final = 100_000
_RATE: Final = 100
_LIVE: Final = 300
_CHUNK: Final = 1024 * 1024
_PATIENCE: Final = 20.0


@dataclass(frozen=True, slots=True)
class _Backlog:
    """A long thread: how to ask for it again, and how its end looks."""

    again: bytes
    end: bytes


def _open(bench: Bench, stack: ExitStack) -> Parties:
    server = stack.enter_context(bubble_server(bench.directory, store=bench.store))
    length, live = bench.scale.count(_BACKLOG), bench.scale.count(_LIVE)
    thread_id = new_thread(server, events=length)
    backlog = _Backlog(
        again=unsubscribe_frame(thread_id) + subscribe_frame(thread_id, from_seq=FIRST),
        end=Deliveries(thread_id).prefix + b"%d," % (FIRST + length - 1),
    )
    return {
        "replaying": partial(_measure, server, live, backlog),
        "quiet": partial(_measure, server, live, None),
    }


def _measure(server: Server, events: int, backlog: _Backlog | None) -> Sample:
    thread_id = new_thread(server)
    with open_websockets(server, 2) as (publisher, follower):
        subscribe([follower], [thread_id], from_seq=FIRST)
        if backlog is not None:
            follower.sendall(backlog.again)
        reading = _Reading(follower, Deliveries(thread_id).prefix, backlog)
        with timed(server) as watch:
            sent = _publish(publisher, append_frame(thread_id, part_event()), reading, events)
    delays = delays_ms(sent, reading.arrived)
    if backlog is not None and not reading.replays:
        raise VerificationError("No replay came to its end while there were live events.")
    return {"p50": percentile(delays, 50), "p99": percentile(delays, 99), "replays": reading.replays, **watch.busy()}


def _publish(publisher: socket.socket, frame: bytes, reading: _Reading, events: int) -> list[float]:
    sent: list[float] = []
    with select.epoll() as poll:
        poll.register(reading.socket.fileno(), select.EPOLLIN)
        start = time.perf_counter()
        while len(reading.arrived) < events:
            now = time.perf_counter()
            if now > start + events / _RATE + _PATIENCE:
                raise Stalled("The live events were not all delivered.")
            due = start + len(sent) / _RATE
            if len(sent) < events and now >= due:
                sent.append(time.perf_counter())
                publisher.sendall(frame)
            elif poll.poll(max(0.0, due - now) if len(sent) < events else 0.1):
                reading.take(time.perf_counter())
    return sent


class _Reading:
    """Finds the live events, and the end of each replay, in what the socket gets, without looking at the rest."""

    def __init__(self, connection: socket.socket, live: bytes, backlog: _Backlog | None) -> None:
        self.socket = connection
        self.arrived: list[float] = []
        self.replays = 0
        self._live = live
        self._backlog = backlog
        self._rest = b""

    def take(self, now: float) -> None:
        """Takes what is there, as of `now`."""
        data = self.socket.recv(_CHUNK)
        if not data:
            raise VerificationError("A reader was cut off.")
        window = self._rest + data
        position = 0
        while (found := window.find(self._next_live(), position)) >= 0:
            self.arrived.append(now)
            position = found + 1
        backlog = self._backlog
        if backlog is not None and (found := window.find(backlog.end)) >= 0:
            self.replays += 1
            self.socket.sendall(backlog.again)
            position = max(position, found + len(backlog.end))
        # A mark that is cut in two is found with the second piece; one that was found is not found again.
        self._rest = window[max(position, len(window) - _LONGEST_MARK) :]

    def _next_live(self) -> bytes:
        return b"%b%d," % (self._live, FIRST + len(self.arrived))


_LONGEST_MARK: Final = 200

LONG_BACKLOG: Final = Figure(
    name="long-backlog",
    open=_open,
    rows=tuple(
        Row(
            title=f"live event on a socket that also replays, {name}",
            unit="ms",
            parties=("replaying", "quiet"),
            ours=lambda measured, key=key: measured["replaying"][key],  # type: ignore[misc]
            reference=lambda measured, key=key: measured["quiet"][key],  # type: ignore[misc]
            against="the same socket without a replay",
        )
        for name, key in (("p99", "p99"), ("median", "p50"))
    ),
)
