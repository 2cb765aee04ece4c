"""What an append costs on a thread with 10, 10,000 and 1,000,000 events behind it. It should not matter.

Each history has a server and a file of its own, and all are measured in short turns: 32 clients append a thousand events over HTTP. The
shorter histories begin anew with each turn, so that they stay short; the long one grows by a few percent.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import Final

from bench.figure import Bar, Bench, Figure, Parties, Row, Sample
from bench.load.closed import ask_times
from bench.load.events import part_event
from bench.load.loops import timed
from bench.load.threads import FIRST, append_url, new_thread, require_head
from bench.load.wire import http_request, open_http
from bench.servers.process import Server, bubble_server

__all__ = ["HISTORY"]

_SHORT: Final = 10
_MIDDLE: Final = 10_000
_LONG: Final = 1_000_000
_APPENDS: Final = 1_000
_CLIENTS: Final = 32
_TURNS: Final = 4


def _open(bench: Bench, stack: ExitStack) -> Parties:
    short, middle, long = (stack.enter_context(bubble_server(bench.directory, store=bench.store)) for _ in range(3))
    appends = bench.scale.count(_APPENDS)
    return {
        "short": partial(_with_a_new_thread, short, history=_SHORT, appends=appends),
        "middle": partial(_with_a_new_thread, middle, history=bench.scale.count(_MIDDLE), appends=appends),
        "long": _Long(long, history=bench.scale.count(_LONG), appends=appends),
    }


def _with_a_new_thread(server: Server, *, history: int, appends: int) -> Sample:
    return _append(server, new_thread(server, events=history), history=history, appends=appends)


class _Long:
    """The thread that is too long to be made anew each time."""

    def __init__(self, server: Server, *, history: int, appends: int) -> None:
        self._server = server
        self._thread_id = new_thread(server, events=history)
        self._history = history
        self._appends = appends

    def __call__(self) -> Sample:
        sample = _append(self._server, self._thread_id, history=self._history, appends=self._appends)
        self._history += self._appends
        return sample


def _append(server: Server, thread_id: str, *, history: int, appends: int) -> Sample:
    request = http_request(server, append_url(thread_id), part_event())
    with open_http(server, _CLIENTS) as connections, timed(server) as watch:
        ask_times(appends, connections, request)
    require_head(server, thread_id, FIRST - 1 + history + appends)
    return {"us": watch.seconds / appends * 1_000_000, **watch.busy()}


def _row(title: str, party: str) -> Row:
    return Row(
        title=f"time of an append after {title} events",
        unit="us",
        parties=(party, "short"),
        ours=lambda measured: measured[party]["us"],
        reference=lambda measured: measured["short"]["us"],
        against=f"the same after {_SHORT} events",
        bar=Bar(at_most=1.1),
    )


HISTORY: Final = Figure(
    name="history",
    open=_open,
    rows=(_row(f"{_MIDDLE:,}", "middle"), _row(f"{_LONG:,}", "long")),
    repeat=_TURNS,
)
