"""One reader in two hundred stops reading: what that costs the others, and what such readers cost the server.

For the others: a burst of events makes the frozen reader's arrears larger than any buffer, then events come at a steady rate and every
healthy reader notes when it had each of them. For the server: twenty frozen readers beside one healthy one, so that they are what its
memory grows by while a burst goes past them. At the end every frozen reader reads again and must get every event. Both are also measured
without frozen readers.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
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
_LONG_BURST: Final = 30_000
_FROZEN: Final = 20
_SMALL_BUFFER: Final = 4 * 1024
_SETTLING_SECONDS: Final = 0.5
_KIB: Final = 1024


def _open(bench: Bench, stack: ExitStack) -> Parties:
    scale = bench.scale
    readers, steady = scale.count(_READERS, least=3), scale.count(_STEADY)
    burst, long_burst = scale.count(_BURST), scale.count(_LONG_BURST)
    server = stack.enter_context(bubble_server(bench.directory, store=bench.store))
    return {
        "one frozen": lambda: _delivery(server, healthy=readers - 1, frozen=1, steady=steady, burst=burst),
        "none frozen": lambda: _delivery(server, healthy=readers, frozen=0, steady=steady, burst=burst),
        "memory": lambda: _memory(bench, frozen=_FROZEN, burst=long_burst),
        "memory without": lambda: _memory(bench, frozen=0, burst=long_burst),
    }


def _delivery(server: Server, *, healthy: int, frozen: int, steady: int, burst: int) -> Sample:
    with _stage(server, healthy=healthy, frozen=frozen) as stage:
        stage.burst(burst)
        sample = stage.steadily(steady)
        stage.thaw()
        return sample


def _memory(bench: Bench, *, frozen: int, burst: int) -> Sample:
    with bubble_server(bench.directory, store=bench.store) as server, _stage(server, healthy=1, frozen=frozen) as stage:
        time.sleep(_SETTLING_SECONDS)
        before = server.resident_bytes()
        stage.burst(burst)
        time.sleep(_SETTLING_SECONDS)
        growth = server.resident_bytes() - before
        stage.thaw()
        return {"growth": growth / _KIB}


@contextmanager
def _stage(server: Server, *, healthy: int, frozen: int) -> Iterator[_Stage]:
    thread_id = new_thread(server)
    with (
        open_websockets(server, 1) as (publisher,),
        open_websockets(server, healthy) as followers,
        open_websockets(server, frozen, receive_buffer=_SMALL_BUFFER) as stuck,
    ):
        everybody = [*followers, *stuck]
        subscribe(everybody, [thread_id] * len(everybody), from_seq=FIRST)
        yield _Stage(server, thread_id, publisher, followers, stuck)


class _Stage:
    """One thread with its publisher and its healthy readers; `next_seq` is what comes next."""

    def __init__(
        self,
        server: Server,
        thread_id: str,
        publisher: socket.socket,
        followers: Sequence[socket.socket],
        stuck: Sequence[socket.socket],
    ) -> None:
        self._server = server
        self._deliveries = Deliveries(thread_id)
        self._publisher = publisher
        self._followers = followers
        self._stuck = stuck
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

    def thaw(self) -> None:
        """The frozen readers read again: every event from the first to the last."""
        last = self._next_seq - 1
        expected = self._deliveries.total(FIRST, last)
        witnesses = [Witness(each, expected) for each in self._stuck]
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
            parties=("one frozen", "none frozen"),
            ours=lambda measured: measured["one frozen"]["p99"],
            reference=lambda measured: measured["none frozen"]["p99"],
            against=f"{_READERS} readers that all read",
            bar=Bar(at_most=1.5),
        ),
        Row(
            title="memory of a frozen reader, 11 MB behind",
            unit="KiB",
            parties=("memory", "memory without"),
            ours=lambda measured: (measured["memory"]["growth"] - measured["memory without"]["growth"]) / _FROZEN,
            bar=Bar(of="value", at_most=2048),
        ),
    ),
)
