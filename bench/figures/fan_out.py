"""Deliveries per second: one WebSocket publishes as fast as the server takes it, many WebSockets read.

The time is from the first byte that is sent until the last reader has everything, so commit, fan-out and every write are in it. It is held
against the same product through plain ASGI, and against a bare loop over the readers that neither stores nor checks anything.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Final

from bench.figure import Bar, Bench, Figure, Parties, Round, Row, Sample
from bench.load.events import Deliveries, part_event, verify_deliveries
from bench.load.loops import timed
from bench.load.readers import Reader, Sender, Witness, fan_out, verify_ends
from bench.load.threads import FIRST, new_thread
from bench.load.wire import append_frame, open_websockets, subscribe, text_frame
from bench.servers.process import Server, asgi_server, bare_server, bubble_server

__all__ = ["FAN_OUT_100", "FAN_OUT_1000"]

# Deliveries in one measurement: a second or two each, by what the three are expected to do.
_OURS: Final = 2_500_000
_THEIRS: Final = 200_000


def _open(bench: Bench, stack: ExitStack, *, readers: int) -> Parties:
    ours, theirs = (bench.scale.count(full // readers, least=20) for full in (_OURS, _THEIRS))
    followers = bench.scale.count(readers, least=3)
    bubble = stack.enter_context(bubble_server(bench.directory, store=bench.store))
    asgi = stack.enter_context(asgi_server(bench.directory, store=bench.store))
    bare = stack.enter_context(bare_server(bench.directory))
    return {
        "bubble": lambda: _product(bubble, readers=followers, events=ours),
        "asgi": lambda: _product(asgi, readers=followers, events=theirs),
        "bare": lambda: _loop(bare, readers=followers, messages=theirs),
    }


def _product(server: Server, *, readers: int, events: int) -> Sample:
    thread_id = new_thread(server)
    deliveries = Deliveries(thread_id)
    last = FIRST + events - 1
    expected = deliveries.total(FIRST, last)
    with open_websockets(server, 1) as (publisher,), open_websockets(server, readers) as followers:
        subscribe(followers, [thread_id] * readers, from_seq=FIRST)
        witness = Witness(followers[0], expected)
        all_readers = [witness, *(Reader(each, expected) for each in followers[1:])]
        sender = Sender(publisher, append_frame(thread_id, part_event()), events)
        with timed(server) as watch:
            fan_out(all_readers, sender)
    verify_deliveries(witness.received, deliveries, first=FIRST, last=last)
    verify_ends(all_readers, witness.received)
    return {"rate": events * readers / watch.seconds, **watch.busy()}


def _loop(server: Server, *, readers: int, messages: int) -> Sample:
    # Messages as large as the product's deliveries.
    payload = b"x" * (Deliveries("0" * 32).size(1000) - 4)
    delivered = b"\x81\x7e%b%b" % (len(payload).to_bytes(2, "big"), payload)
    expected = len(delivered) * messages
    with (
        open_websockets(server, 1, path="/publish") as (publisher,),
        open_websockets(server, readers, path="/follow") as followers,
    ):
        witness = Witness(followers[0], expected)
        all_readers = [witness, *(Reader(each, expected) for each in followers[1:])]
        with timed(server) as watch:
            fan_out(all_readers, Sender(publisher, text_frame(payload), messages))
    assert witness.received == delivered * messages
    verify_ends(all_readers, witness.received)
    return {"rate": messages * readers / watch.seconds, **watch.busy()}


def _ours(measured: Round) -> float:
    return measured["bubble"]["rate"]


def _figure(readers: int, bar: Bar | None) -> Figure:
    title = f"deliveries, 1 publisher to {readers:,} readers"
    return Figure(
        name=f"fan-out-{readers}",
        open=lambda bench, stack: _open(bench, stack, readers=readers),
        rows=(
            Row(
                title=title,
                unit="/s",
                parties=("bubble", "asgi"),
                ours=_ours,
                reference=lambda measured: measured["asgi"]["rate"],
                against="the same, one ASGI send per event",
                bar=bar,
            ),
            Row(
                title=title,
                unit="/s",
                parties=("bubble", "bare"),
                ours=_ours,
                reference=lambda measured: measured["bare"]["rate"],
                against="a bare loop, one ASGI send per event",
            ),
        ),
    )


FAN_OUT_100: Final = _figure(100, Bar(at_least=10))
FAN_OUT_1000: Final = _figure(1000, None)
