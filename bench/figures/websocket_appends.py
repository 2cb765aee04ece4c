"""Durable appends per second from one WebSocket, held against what 32 HTTP clients reach in the same minute.

The publisher sends as fast as the server takes it. The time ends when a second WebSocket, opened before, has read the last event: only
what is durable is delivered.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import Final

from bench.figure import Bar, Bench, Figure, Parties, Row, Sample
from bench.figures.http_appends import append_over_http
from bench.load.events import Deliveries, part_event, verify_deliveries
from bench.load.loops import timed
from bench.load.readers import Sender, Witness, fan_out
from bench.load.threads import FIRST, new_thread
from bench.load.wire import append_frame, open_websockets, subscribe
from bench.servers.process import Server, bubble_server

__all__ = ["WEBSOCKET_APPENDS"]

_EVENTS: Final = 100_000
_SECONDS: Final = 2.0
_CLIENTS: Final = 32


def _open(bench: Bench, stack: ExitStack) -> Parties:
    server = stack.enter_context(bubble_server(bench.directory, store=bench.store))
    return {
        "bubble": partial(_publish, server, events=bench.scale.count(_EVENTS)),
        "http": partial(append_over_http, server, seconds=bench.scale.seconds(_SECONDS), clients=_CLIENTS),
    }


def _publish(server: Server, *, events: int) -> Sample:
    thread_id = new_thread(server)
    deliveries = Deliveries(thread_id)
    last = FIRST + events - 1
    with open_websockets(server, 2) as (publisher, reader):
        subscribe([reader], [thread_id], from_seq=FIRST)
        witness = Witness(reader, deliveries.total(FIRST, last))
        with timed(server) as watch:
            fan_out([witness], Sender(publisher, append_frame(thread_id, part_event()), events))
    verify_deliveries(witness.received, deliveries, first=FIRST, last=last)
    return {"rate": events / watch.seconds, **watch.busy()}


WEBSOCKET_APPENDS: Final = Figure(
    name="websocket-appends",
    open=_open,
    rows=(
        Row(
            title="durable WebSocket appends, 1 publisher",
            unit="/s",
            parties=("bubble", "http"),
            ours=lambda measured: measured["bubble"]["rate"],
            reference=lambda measured: measured["http"]["rate"],
            against="durable HTTP appends, 32 clients",
            bar=Bar(at_least=3),
        ),
    ),
)
