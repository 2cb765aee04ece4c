"""What an idle connection with one subscription costs the server's memory: the growth of its resident size, per connection.

Once with all connections on the same thread, once with a thread for each. A few hundred connections come first and stay, so that what is
made once, and what the allocator keeps anyway, is not counted. For comparison: WebSockets of the bare server, with nothing on them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import repeat
from typing import Final

from bench.figure import Bar, Bench, Figure, Parties, Round, Row, Sample
from bench.load.threads import FIRST, new_thread
from bench.load.wire import open_websockets, subscribe
from bench.servers.process import Server, bare_server, bubble_server

__all__ = ["IDLE_MEMORY"]

_CONNECTIONS: Final = 2_000
_BEFORE: Final = 300
_SETTLING_SECONDS: Final = 1.0
_KIB: Final = 1024


def _open(bench: Bench, stack: ExitStack) -> Parties:  # noqa: ARG001 - every measurement has a server of its own
    count, before = bench.scale.count(_CONNECTIONS), bench.scale.count(_BEFORE)

    def on_the_same_thread() -> Sample:
        with bubble_server(bench.directory, store=bench.store) as server:
            return _followers(server, list(repeat(new_thread(server), before + count)), before=before)

    def on_threads_of_their_own() -> Sample:
        with bubble_server(bench.directory, store=bench.store) as server:
            return _followers(server, [new_thread(server) for _ in range(before + count)], before=before)

    def with_nothing() -> Sample:
        with bare_server(bench.directory) as server, open_websockets(server, before, path="/follow"):
            resident = _settled(server)
            with open_websockets(server, count, path="/follow"):
                return {"kib": (_settled(server) - resident) / count / _KIB}

    return {"same": on_the_same_thread, "own": on_threads_of_their_own, "bare": with_nothing}


def _followers(server: Server, threads: Sequence[str], *, before: int) -> Sample:
    count = len(threads) - before
    with open_websockets(server, before) as first:
        subscribe(first, threads[:before], from_seq=FIRST)
        resident = _settled(server)
        with open_websockets(server, count) as others:
            subscribe(others, threads[before:], from_seq=FIRST)
            return {"kib": (_settled(server) - resident) / count / _KIB}


def _settled(server: Server) -> int:
    """The server's resident size once it has nothing more to do."""
    time.sleep(_SETTLING_SECONDS)
    return server.resident_bytes()


def _bare(measured: Round) -> float:
    return measured["bare"]["kib"]


def _row(title: str, party: str) -> Row:
    return Row(
        title=f"memory of an idle connection, {title}",
        unit="KiB",
        parties=(party, "bare"),
        ours=lambda measured: measured[party]["kib"],
        reference=_bare,
        against="a bare WebSocket, no subscription",
        bar=Bar(of="value", at_most=20),
    )


IDLE_MEMORY: Final = Figure(
    name="idle-memory",
    open=_open,
    rows=(_row("all following one thread", "same"), _row("each following its own", "own")),
)
