"""Durable appends per second over HTTP: clients on kept-alive connections, each waiting for its answer before it sends the next event.

Held against an endpoint on the same server stack that reads the body and answers with it, and against `XADD` to a Redis Stream with
`appendfsync always` where `redis-server` is installed. Every client appends to the same thread; what was counted must be its head.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import Final

from bench.figure import Bar, Bench, Figure, Parties, Row, Sample
from bench.load.closed import ask_for
from bench.load.events import part_event
from bench.load.loops import timed
from bench.load.redis import RedisAnswers, xadd
from bench.load.threads import FIRST, append_url, batch_body, new_thread, require_head
from bench.load.wire import http_request, open_http
from bench.servers.process import Server, bare_server, bubble_server
from bench.servers.redis import redis_is_installed, redis_server

__all__ = ["HTTP_APPENDS_1", "HTTP_APPENDS_32", "HTTP_BATCHES", "append_over_http"]

_SECONDS: Final = 2.0
_BATCH: Final = 100


def _open(bench: Bench, stack: ExitStack, *, clients: int, batch: int) -> Parties:
    seconds = bench.scale.seconds(_SECONDS)
    bubble = stack.enter_context(bubble_server(bench.directory, store=bench.store))
    bare = stack.enter_context(bare_server(bench.directory))
    parties = {
        "bubble": partial(append_over_http, bubble, seconds=seconds, clients=clients, batch=batch),
        "bare": partial(_post, bare, seconds=seconds, clients=clients, batch=batch),
    }
    if batch == 1 and redis_is_installed():
        redis = stack.enter_context(redis_server(bench.directory))
        parties["redis"] = partial(_add_to_redis, redis, seconds=seconds, clients=clients)
    return parties


def append_over_http(server: Server, *, seconds: float, clients: int, batch: int = 1) -> Sample:
    """Appends to a new thread for so long; `rate` is in events per second."""
    thread_id = new_thread(server)
    events = part_event() if batch == 1 else batch_body(batch)
    request = http_request(server, append_url(thread_id, batch=batch > 1), events)
    with open_http(server, clients) as connections, timed(server) as watch:
        answered = ask_for(seconds, connections, request)
    require_head(server, thread_id, FIRST - 1 + answered * batch)
    return {"rate": answered * batch / watch.seconds, **watch.busy()}


def _post(server: Server, *, seconds: float, clients: int, batch: int) -> Sample:
    request = http_request(server, "/", part_event() if batch == 1 else batch_body(batch))
    with open_http(server, clients) as connections, timed(server) as watch:
        answered = ask_for(seconds, connections, request)
    return {"rate": answered * batch / watch.seconds, **watch.busy()}


def _add_to_redis(server: Server, *, seconds: float, clients: int) -> Sample:
    with open_http(server, clients) as connections, timed(server) as watch:
        answered = ask_for(seconds, connections, xadd(part_event()), RedisAnswers)
    return {"rate": answered / watch.seconds, **watch.busy()}


def _figure(name: str, title: str, *, clients: int, batch: int = 1, bar: Bar | None = None) -> Figure:
    rows = [
        Row(
            title=title,
            unit="/s",
            parties=("bubble", party),
            ours=lambda measured: measured["bubble"]["rate"],
            reference=lambda measured, party=party: measured[party]["rate"],  # type: ignore[misc]
            against=against,
            bar=bar if party == "bare" else None,
        )
        for party, against in (
            ("bare", "an endpoint that reads the body and answers"),
            ("redis", "Redis Streams, appendfsync always"),
        )
    ]
    return Figure(name=name, open=partial(_open, clients=clients, batch=batch), rows=rows)


HTTP_APPENDS_1: Final = _figure("http-appends-1", "durable HTTP appends, 1 client", clients=1)
HTTP_APPENDS_32: Final = _figure(
    "http-appends-32", "durable HTTP appends, 32 clients", clients=32, bar=Bar(at_least=0.7)
)
HTTP_BATCHES: Final = _figure(
    "http-batches", f"durable HTTP appends in batches of {_BATCH}, 4 clients", clients=4, batch=_BATCH
)
