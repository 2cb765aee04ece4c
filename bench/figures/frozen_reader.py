"""One reader in two hundred stops reading: what that costs the others, and the server.

Events come at a steady rate and every healthy reader notes when it had each of them; then a burst of events, as fast as they go, makes the
frozen reader's arrears far larger than any buffer. The server's memory is compared before and after. At the end the frozen reader reads
again and must get every event. Beside it, the same without a frozen reader.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Final

from bench.figure import Bar, Bench, Figure, Parties, Row, Sample
from bench.load.events import Deliveries, part_event, verify_deliveries
from bench.load.loops import timed
from bench.load.paced import FramePublisher, TimedReader, delays_ms, percentile, publish
from bench.load.readers import Reader, Sender, Witness, fan_out, verify_ends
from bench.load.threads import FIRST, new_thread
from bench.load.wire import append_frame, open_websockets, subscribe
from bench.servers.process import Server, bubble_server

__all__ = ["FROZEN_READER"]

_READERS: Final = 200
_RATE: Final = 250
_STEADY: Final = 1_000
_BURST: Final = 20_000
_REPLAYS: Final = 8
_SMALL_BUFFER: Final = 4 * 1024
_KIB: Final = 1024
_ALLOWANCE_KIB: Final = 1024.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Load:
    readers: int
    steady: int
    burst: int


def _open(bench: Bench, stack: ExitStack) -> Parties:  # noqa: ARG001 - every measurement has a server of its own
    scale = bench.scale
    load = _Load(
        readers=scale.count(_READERS, least=3), steady=scale.count(_STEADY), burst=scale.count(_BURST, least=20)
    )

    def measure(*, frozen: int) -> Sample:
        with bubble_server(bench.directory, store=bench.store) as server:
            return _measure(server, load, frozen=frozen)

    return {"frozen": partial(measure, frozen=1), "healthy": partial(measure, frozen=0)}


def _measure(server: Server, load: _Load, *, frozen: int) -> Sample:
    thread_id = new_thread(server)
    with (
        open_websockets(server, 1) as (publisher,),
        open_websockets(server, load.readers - frozen) as followers,
        open_websockets(server, frozen, receive_buffer=_SMALL_BUFFER) as stuck,
    ):
        everybody = [*followers, *stuck]
        subscribe(everybody, [thread_id] * len(everybody), from_seq=FIRST)
        stage = _Stage(server, thread_id, publisher, followers)
        # So that tail, caches and allocator have the size that this load gives them.
        stage.burst(load.burst)
        stage.replay()
        before = server.resident_bytes()
        sample = stage.steadily(load.steady)
        stage.burst(load.burst)
        growth = (server.resident_bytes() - before) / _KIB
        for connection in stuck:
            stage.read_everything([connection])
    return {**sample, "growth": growth}


class _Stage:
    """One thread with its publisher and its healthy readers; `next_seq` is what comes next."""

    def __init__(
        self, server: Server, thread_id: str, publisher: socket.socket, followers: Sequence[socket.socket]
    ) -> None:
        self._server = server
        self._thread_id = thread_id
        self._deliveries = Deliveries(thread_id)
        self._publisher = publisher
        self._followers = followers
        self._frame = append_frame(thread_id, part_event())
        self._next_seq = FIRST

    def burst(self, events: int) -> None:
        """As fast as it goes, until every healthy reader has it."""
        first, last = self._take(events)
        expected = self._deliveries.total(first, last)
        witness = Witness(self._followers[0], expected)
        readers = [witness, *(Reader(each, expected) for each in self._followers[1:])]
        fan_out(readers, Sender(self._publisher, self._frame, events))
        verify_deliveries(witness.received, self._deliveries, first=first, last=last)
        verify_ends(readers, witness.received)

    def steadily(self, events: int) -> Sample:
        """At the steady rate; how long the events took to all healthy readers."""
        first, _ = self._take(events)
        readers = [TimedReader(each, self._deliveries, first=first) for each in self._followers]
        with timed(self._server) as watch:
            sent, arrived = publish(FramePublisher(self._publisher, self._frame), readers, rate=_RATE, count=events)
        delays = [delay for each in arrived for delay in delays_ms(sent, each)]
        return {"p50": percentile(delays, 50), "p99": percentile(delays, 99), **watch.busy()}

    def replay(self) -> None:
        """Everything so far, on several sockets at once."""
        with open_websockets(self._server, _REPLAYS) as connections:
            subscribe(connections, [self._thread_id] * _REPLAYS, from_seq=FIRST)
            self.read_everything(connections)

    def read_everything(self, connections: Sequence[socket.socket]) -> None:
        """Every event from the first to the last, on each connection."""
        last = self._next_seq - 1
        expected = self._deliveries.total(FIRST, last)
        witnesses = [Witness(each, expected) for each in connections]
        fan_out(witnesses)
        for witness in witnesses:
            verify_deliveries(witness.received, self._deliveries, first=FIRST, last=last)

    def _take(self, events: int) -> tuple[int, int]:
        first, self._next_seq = self._next_seq, self._next_seq + events
        return first, self._next_seq - 1


FROZEN_READER: Final = Figure(
    name="frozen-reader",
    open=_open,
    rows=(
        Row(
            title=f"delivery to {_READERS - 1} readers beside a frozen one, p99",
            unit="ms",
            parties=("frozen", "healthy"),
            ours=lambda measured: measured["frozen"]["p99"],
            reference=lambda measured: measured["healthy"]["p99"],
            against=f"{_READERS} readers that all read",
            bar=Bar(at_most=1.5),
        ),
        Row(
            title="memory that a frozen reader costs the server",
            unit="KiB",
            parties=("frozen", "healthy"),
            ours=lambda measured: measured["frozen"]["growth"] - measured["healthy"]["growth"],
            bar=Bar(of="value", at_most=_ALLOWANCE_KIB),
        ),
    ),
)
