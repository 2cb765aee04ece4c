"""Replay: how fast a thread of 100,000 events comes out, over one WebSocket, over HTTP pages, and raw.

Over a WebSocket the time is from the subscription until the last byte; against the same product through plain ASGI, and against reading
the rows through the store and doing nothing with them.
"""

from __future__ import annotations

import asyncio
import select
import socket
from contextlib import ExitStack
from functools import partial
from typing import Final

from bench.figure import Bar, Bench, Figure, Measure, Parties, Row, Sample
from bench.load.closed import HttpAnswers
from bench.load.events import Deliveries, VerificationError, verify_deliveries
from bench.load.loops import polled, timed
from bench.load.readers import Witness, fan_out
from bench.load.threads import FIRST, append_url, new_thread
from bench.load.wire import http_request, open_http, open_websockets, subscribe
from bench.servers.process import Server, asgi_server, bubble_server
from bubble.store.opening import open_store

__all__ = ["REPLAY"]

_EVENTS: Final = 100_000
_PAGE: Final = 1_000
_PAGE_BYTES: Final = 4 * 1024 * 1024
_CHUNK: Final = 1024 * 1024


def _open(bench: Bench, stack: ExitStack) -> Parties:
    events = bench.scale.count(_EVENTS)
    bubble = stack.enter_context(bubble_server(bench.directory, store=bench.store))
    asgi = stack.enter_context(asgi_server(bench.directory, store=bench.store))
    thread_id = new_thread(bubble, events=events)
    parties: dict[str, Measure] = {
        "bubble": partial(_over_a_websocket, bubble, thread_id, events),
        "asgi": partial(_over_a_websocket, asgi, new_thread(asgi, events=events), events),
        "pages": partial(_over_pages, bubble, thread_id, events),
    }
    if bench.store is None:
        data = bench.directory / "raw"
        with bubble_server(bench.directory, data=data) as filling:
            raw_thread = new_thread(filling, events=events)
        parties["raw"] = lambda: asyncio.run(_raw(f"sqlite:///{data / 'bubble.db'}", raw_thread, events))
    return parties


def _over_a_websocket(server: Server, thread_id: str, events: int) -> Sample:
    deliveries = Deliveries(thread_id)
    last = FIRST + events - 1
    with open_websockets(server, 1) as (connection,):
        witness = Witness(connection, deliveries.total(FIRST, last))
        connection.setblocking(True)  # noqa: FBT003 - the standard library's signature
        with timed(server) as watch:
            subscribe([connection], [thread_id], from_seq=FIRST)
            connection.setblocking(False)  # noqa: FBT003
            fan_out([witness])
    verify_deliveries(witness.received, deliveries, first=FIRST, last=last)
    return {"rate": events / watch.seconds, **watch.busy()}


def _over_pages(server: Server, thread_id: str, events: int) -> Sample:
    url = append_url(thread_id)
    read, next_seq, page = 0, FIRST, b""
    with open_http(server, 1) as (connection,), timed(server) as watch:
        while next_seq:
            query = f"{url}?fromSeq={next_seq}&limit={_PAGE}"
            page = _ask(connection, http_request(server, query, b"", method="GET"))
            read += page.count(b'{"seq":')
            after = page[page.rindex(b'"nextSeq":') + len(b'"nextSeq":') : -1]
            next_seq = 0 if after == b"null" else int(after)
    if read != events or not page.rfind(b'{"seq":%d,' % (FIRST + events - 1)) > 0:
        raise VerificationError(f"The pages held {read} events instead of {events}.")
    return {"rate": events / watch.seconds, **watch.busy()}


def _ask(connection: socket.socket, request: bytes) -> bytes:
    connection.sendall(request)
    answers, pieces = HttpAnswers(b"HTTP/1.1 200 "), []
    with select.epoll() as poll:
        poll.register(connection.fileno(), select.EPOLLIN)
        while True:
            polled(poll)
            pieces.append(connection.recv(_CHUNK))
            if answers.feed(pieces[-1]):
                return b"".join(pieces)


async def _raw(url: str, thread_id: str, events: int) -> Sample:
    async with await open_store(url) as store:
        read, last = 0, FIRST + events - 1
        with timed(None) as watch:
            while read < events:
                texts = await store.read(
                    thread_id, from_seq=FIRST + read, to_seq=last, limit=_PAGE, max_bytes=_PAGE_BYTES
                )
                read += len(texts)
    return {"rate": read / watch.seconds}


REPLAY: Final = Figure(
    name="replay",
    open=_open,
    rows=(
        Row(
            title="replay of 100,000 events over one WebSocket",
            unit="/s",
            parties=("bubble", "asgi"),
            ours=lambda measured: measured["bubble"]["rate"],
            reference=lambda measured: measured["asgi"]["rate"],
            against="the same, one ASGI send per event",
            bar=Bar(at_least=5),
        ),
        Row(
            title="replay of 100,000 events over one WebSocket",
            unit="/s",
            parties=("bubble", "raw"),
            ours=lambda measured: measured["bubble"]["rate"],
            reference=lambda measured: measured["raw"]["rate"],
            against="reading the rows and no more",
        ),
        Row(
            title="replay of 100,000 events over HTTP pages",
            unit="/s",
            parties=("pages", "raw"),
            ours=lambda measured: measured["pages"]["rate"],
            reference=lambda measured: measured["raw"]["rate"],
            against="reading the rows and no more",
        ),
    ),
)
