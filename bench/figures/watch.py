"""A thousand watchers of one bot: rows delivered per second, and what an idle watcher costs the server's memory.

Everything is folded, decoded and written as server-sent events once for all of them. It is held against the same thread's events as
server-sent events, which need none of that. Time is from the first byte of the first append until the last watcher has the last row.
"""

from __future__ import annotations

import json
import time
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from typing import Final

from bench.figure import Bench, Figure, Parties, Row, Sample
from bench.load.events import VerificationError
from bench.load.loops import timed
from bench.load.streams import open_streams, read_to_marks
from bench.load.threads import append_url, new_thread
from bench.servers.process import Server, bubble_server

__all__ = ["WATCHERS"]

_WATCHERS: Final = 1_000
_BEFORE: Final = 100
_ROWS: Final = 300
_BATCH: Final = 20
_SETTLING_SECONDS: Final = 1.0
_KIB: Final = 1024
_SECONDS: Final = 60.0


def _open(bench: Bench, stack: ExitStack) -> Parties:
    watchers, rows = bench.scale.count(_WATCHERS, least=3), bench.scale.count(_ROWS, least=20)
    before = bench.scale.count(_BEFORE, least=2)
    server = stack.enter_context(bubble_server(bench.directory, store=bench.store))
    bot = _register_bot(server)

    def path(thread_id: str, *, watched: bool) -> str:
        return f"/v1/bots/{bot}/events?sessionId={thread_id}" if watched else f"{append_url(thread_id)}/stream"

    def deliveries(*, watched: bool) -> Sample:
        thread_id = new_thread(server)
        opened = b'"entryId":"~1"' if watched else b"subscription_opened"
        with open_streams(server, path(thread_id, watched=watched), watchers, opened=opened) as readers:
            with timed(server) as watch:
                _append(server, thread_id, rows)
                read_to_marks(readers, _mark(rows - 1))
            _verify(readers[0].kept, rows)
        return {"rate": rows * watchers / watch.seconds, **watch.busy()}

    def memory(*, watched: bool) -> Sample:
        with bubble_server(bench.directory, store=bench.store) as fresh:
            _register_bot(fresh)
            thread_id = new_thread(fresh)
            where = path(thread_id, watched=watched)
            opened = b'"entryId":"~1"' if watched else b"subscription_opened"
            with open_streams(fresh, where, before, opened=opened):
                resident = _settled(fresh)
                with open_streams(fresh, where, watchers, opened=opened):
                    return {"kib": (_settled(fresh) - resident) / watchers / _KIB}

    return {
        "watch": lambda: deliveries(watched=True),
        "events": lambda: deliveries(watched=False),
        "idle watch": lambda: memory(watched=True),
        "idle events": lambda: memory(watched=False),
    }


def _register_bot(server: Server) -> str:
    body = {"principalId": "bot", "kind": "bot", "displayName": "Bot", "ownerPrincipalId": "admin"}
    _post(server, "/v1/principals", json.dumps(body).encode())
    return "bot"


def _mark(number: int) -> bytes:
    return b'{"n":"row %d."}' % number


def _append(server: Server, thread_id: str, rows: int) -> None:
    for first in range(0, rows, _BATCH):
        events = b",".join(map(_event, range(first, min(rows, first + _BATCH))))
        _post(server, append_url(thread_id, batch=True), b'{"events":[%b]}' % events)


def _event(number: int) -> bytes:
    part = b'{"kind":"agent_event","name":"tick","data":%b}' % _mark(number)
    head = b'{"type":"message_part","principalId":"admin","runId":"bench","version":"bubble-v1","part":'
    return head + part + b"}"


def _post(server: Server, path: str, body: bytes) -> None:
    with closing(HTTPConnection(server.host, server.port, timeout=_SECONDS)) as connection:
        headers = {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"}
        connection.request("POST", path, body, headers)
        answer = connection.getresponse()
        said = answer.read()
    if answer.status != 201:
        raise VerificationError(f"POST {path} was answered with {answer.status}: {said[:200]!r}.")


def _verify(received: bytes, rows: int) -> None:
    """Each row came to the witness, once."""
    counts = [received.count(_mark(number)) for number in range(rows)]
    if counts != [1] * rows:
        raise VerificationError(f"Of {rows} rows, {counts.count(1)} came once.")


def _settled(server: Server) -> int:
    time.sleep(_SETTLING_SECONDS)
    return server.resident_bytes()


WATCHERS: Final = Figure(
    name="watchers",
    open=_open,
    rows=(
        Row(
            title="rows of a bot, 1 writer to 1,000 watchers",
            unit="/s",
            parties=("watch", "events"),
            ours=lambda measured: measured["watch"]["rate"],
            reference=lambda measured: measured["events"]["rate"],
            against="the events themselves, as server-sent events",
        ),
        Row(
            title="memory of an idle watcher of a bot",
            unit="KiB",
            parties=("idle watch", "idle events"),
            ours=lambda measured: measured["idle watch"]["kib"],
            reference=lambda measured: measured["idle events"]["kib"],
            against="a reader of the events",
        ),
    ),
)
