"""From the moment an event is posted until it has arrived at another WebSocket, at 200 events per second.

Held against what cannot be had for less: one commit of such an event to a SQLite file of its own on the same disk, and one request to an
endpoint that only answers, each at the same rate. Their medians are added; the bar is for the product's 99th percentile.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Final

import apsw

from bench.figure import Bar, Bench, Figure, Parties, Round, Row, Sample
from bench.load.closed import HttpAnswers
from bench.load.events import Deliveries, VerificationError, part_event
from bench.load.loops import timed
from bench.load.paced import HttpPublisher, TimedReader, delays_ms, percentile, publish
from bench.load.threads import FIRST, append_url, new_thread, require_head
from bench.load.wire import http_request, open_http, open_websockets, subscribe
from bench.servers.process import Server, bare_server, bubble_server

__all__ = ["LATENCY"]

_RATE: Final = 200
_EVENTS: Final = 1_000
_CONNECTIONS: Final = 8
_CHUNK: Final = 64 * 1024


def _open(bench: Bench, stack: ExitStack) -> Parties:
    events = bench.scale.count(_EVENTS)
    bubble = stack.enter_context(bubble_server(bench.directory, store=bench.store))
    bare = stack.enter_context(bare_server(bench.directory))
    return {
        "bubble": partial(_append_to_delivery, bubble, events),
        "commit": partial(_commits, bench.directory / "commits.db", events),
        "request": partial(_requests, bare, events),
    }


def _append_to_delivery(server: Server, events: int) -> Sample:
    thread_id = new_thread(server)
    request = http_request(server, append_url(thread_id), part_event())
    with open_http(server, _CONNECTIONS) as connections, open_websockets(server, 1) as (follower,):
        subscribe([follower], [thread_id], from_seq=FIRST)
        reader = TimedReader(follower, Deliveries(thread_id), first=FIRST)
        with timed(server) as watch:
            sent, (arrived,) = publish(HttpPublisher(connections, request), [reader], rate=_RATE, count=events)
    require_head(server, thread_id, FIRST - 1 + events)
    return {**_summary(delays_ms(sent, arrived)), **watch.busy()}


def _commits(path: Path, events: int) -> Sample:
    event = part_event()
    with closing(apsw.Connection(str(path))) as db:
        db.pragma("journal_mode", "wal")
        db.pragma("synchronous", "full")
        db.pragma("wal_autocheckpoint", 0)
        db.execute("CREATE TABLE IF NOT EXISTS events (id INTEGER PRIMARY KEY, text BLOB)")
        return _summary(_every(lambda: db.execute("INSERT INTO events (text) VALUES (?)", (event,)), events))


def _requests(server: Server, events: int) -> Sample:
    request = http_request(server, "/", part_event())
    with open_http(server, 1) as (connection,), timed(server):
        connection.setblocking(True)  # noqa: FBT003 - the standard library's signature
        answers = HttpAnswers()

        def ask() -> None:
            connection.sendall(request)
            while not answers.feed(data := connection.recv(_CHUNK)):
                if not data:
                    raise VerificationError("The server closed a connection.")

        return _summary(_every(ask, events))


def _every(act: Callable[[], object], times: int) -> Sequence[float]:
    """Does something at the rate of the events; how long it took each time, in milliseconds."""
    taken = []
    start = time.perf_counter()
    for number in range(times):
        time.sleep(max(0.0, start + number / _RATE - time.perf_counter()))
        began = time.perf_counter()
        act()
        taken.append((time.perf_counter() - began) * 1000)
    return taken


def _summary(delays: Sequence[float]) -> Sample:
    return {"p50": percentile(delays, 50), "p99": percentile(delays, 99)}


def _least(measured: Round, percent: str) -> float:
    return measured["commit"][percent] + measured["request"][percent]


_PARTIES: Final = ("bubble", "commit", "request")

LATENCY: Final = Figure(
    name="latency",
    open=_open,
    rows=(
        Row(
            title="append to delivery at 200/s, p99",
            unit="ms",
            parties=_PARTIES,
            ours=lambda measured: measured["bubble"]["p99"],
            reference=lambda measured: _least(measured, "p50"),
            against="a bare commit + a bare request, medians",
            bar=Bar(at_most=3),
        ),
        Row(
            title="append to delivery at 200/s, p99",
            unit="ms",
            parties=_PARTIES,
            ours=lambda measured: measured["bubble"]["p99"],
            reference=lambda measured: _least(measured, "p99"),
            against="a bare commit + a bare request, p99s",
        ),
        Row(
            title="append to delivery at 200/s, median",
            unit="ms",
            parties=_PARTIES,
            ours=lambda measured: measured["bubble"]["p50"],
            reference=lambda measured: _least(measured, "p50"),
            against="a bare commit + a bare request, medians",
        ),
    ),
)
