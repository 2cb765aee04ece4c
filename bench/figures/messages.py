"""Messages over HTTP: the newest page of a thread with 5,000 and with 1,000,000 events, and how soon a viewer is shown what was appended.

A page is 50 messages of 50 events each, so the shorter thread is two pages long; that the longer one costs no more is the point. A viewer
is shown short messages, one after the other, at a steady rate; each counts from its append until the event that brings it is there.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from http.client import HTTPConnection, HTTPResponse
from itertools import count
from typing import Final

from bench.figure import Bar, Bench, Figure, Parties, Row, Sample
from bench.load.events import VerificationError
from bench.load.loops import timed
from bench.load.paced import percentile
from bench.servers.process import Server, bubble_server

__all__ = ["MESSAGES"]

_SHORT: Final = 5_000
_LONG: Final = 1_000_000
_PAGES: Final = 20
_SHOWN: Final = 200
_RATE: Final = 50
_EVENTS_OF_A_RUN: Final = 50
_RUNS_AT_ONCE: Final = 20
_SECONDS: Final = 60.0


def _open(bench: Bench, stack: ExitStack) -> Parties:
    server = stack.enter_context(bubble_server(bench.directory, store=bench.store))
    pages = bench.scale.count(_PAGES)
    return {
        "short": partial(_pages, server, _filled(server, bench.scale.count(_SHORT, least=1_000)), pages),
        "long": partial(_pages, server, _filled(server, bench.scale.count(_LONG, least=1_000)), pages),
        "viewer": partial(_shown, server, bench.scale.count(_SHOWN)),
    }


def _filled(server: Server, events: int) -> str:
    """A thread of runs that say one text each."""
    with closing(_connect(server)) as connection:
        thread_id = str(_ask(server, connection, "POST", "/v1/threads", {})["threadId"])
        for first in range(0, events // _EVENTS_OF_A_RUN, _RUNS_AT_ONCE):
            runs = [_run(str(first + number), deltas=_EVENTS_OF_A_RUN - 3) for number in range(_RUNS_AT_ONCE)]
            _append(server, connection, thread_id, [event for run in runs for event in run])
    return thread_id


def _run(run_id: str, *, deltas: int) -> list[dict[str, object]]:
    of_run = {"principalId": "admin", "runId": run_id}
    delta: dict[str, object] = {"type": "text-delta", "id": "1", "delta": "a word or two "}
    chunks: list[dict[str, object]] = [{"type": "text-start", "id": "1"}, *([delta] * deltas)]
    said: list[dict[str, object]] = [
        {"type": "message_part", "version": "ai-sdk-v6", "part": chunk, **of_run} for chunk in chunks
    ]
    return [{"type": "run_started", **of_run}, *said, {"type": "run_finished", **of_run}]


def _pages(server: Server, thread_id: str, pages: int) -> Sample:
    taken = []
    with closing(_connect(server)) as connection, timed(server):
        for _ in range(pages):
            began = time.perf_counter()
            page = _ask(server, connection, "GET", f"/v1/threads/{thread_id}/messages", None)
            taken.append((time.perf_counter() - began) * 1000)
            _require_whole(page)
    return {"ms": percentile(taken, 50)}


def _require_whole(page: dict[str, object]) -> None:
    messages = page["messages"]
    there = 1 + (int(str(page["headSeq"])) - 1) // _EVENTS_OF_A_RUN
    if not isinstance(messages, list) or len(messages) != min(50, there):
        raise VerificationError("A page has another number of messages than the thread has.")


def _shown(server: Server, shown: int) -> Sample:
    delays = []
    with closing(_connect(server)) as connection:
        thread_id = str(_ask(server, connection, "POST", "/v1/threads", {})["threadId"])
        with _watching(server, thread_id) as ids, timed(server):
            start = time.perf_counter()
            for number in range(shown):
                time.sleep(max(0.0, start + number / _RATE - time.perf_counter()))
                began = time.perf_counter()
                last = _append(server, connection, thread_id, _run(str(number), deltas=1))
                while next(ids) < last:
                    pass
                delays.append((time.perf_counter() - began) * 1000)
    return {"p50": percentile(delays, 50), "p99": percentile(delays, 99)}


@contextmanager
def _watching(server: Server, thread_id: str) -> Iterator[Iterator[int]]:
    """The ids that a viewer gets, from the first that is live on."""
    with closing(_connect(server)) as connection:
        connection.request("GET", f"/v1/threads/{thread_id}/messages/stream", headers=_headers(server))
        ids = _ids(connection.getresponse())
        next(ids)  # of the page
        yield ids


def _ids(answer: HTTPResponse) -> Iterator[int]:
    for _ in count():
        line = answer.readline()
        if not line:
            raise VerificationError("The stream has ended.")
        if line.startswith(b"id: "):
            data = answer.readline()
            if not data.startswith(b"data: "):
                raise VerificationError(f"After an id came {data[:80]!r}.")
            yield int(line[4:])


def _append(server: Server, connection: HTTPConnection, thread_id: str, events: list[dict[str, object]]) -> int:
    stored = _ask(server, connection, "POST", f"/v1/threads/{thread_id}/events:batch", {"events": events})["events"]
    if not isinstance(stored, list):
        raise VerificationError("A batch was not answered with its events.")
    return int(stored[-1]["seq"])


def _connect(server: Server) -> HTTPConnection:
    return HTTPConnection(server.host, server.port, timeout=_SECONDS)


def _headers(server: Server) -> dict[str, str]:
    return {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"}


def _ask(server: Server, connection: HTTPConnection, method: str, path: str, body: object) -> dict[str, object]:
    connection.request(method, path, None if body is None else json.dumps(body), _headers(server))
    answer = connection.getresponse()
    content = answer.read()
    if answer.status not in (200, 201):
        raise VerificationError(f"{method} {path} was answered with {answer.status}: {content[:200]!r}.")
    found: dict[str, object] = json.loads(content)
    return found


MESSAGES: Final = Figure(
    name="messages",
    open=_open,
    rows=(
        Row(
            title=f"newest page of messages of {_LONG:,} events",
            unit="ms",
            parties=("long", "short"),
            ours=lambda measured: measured["long"]["ms"],
            reference=lambda measured: measured["short"]["ms"],
            against=f"the same of {_SHORT:,} events",
            bar=Bar(at_most=1.5),
        ),
        Row(
            title=f"append to a shown message at {_RATE}/s, median",
            unit="ms",
            parties=("viewer",),
            ours=lambda measured: measured["viewer"]["p50"],
        ),
        Row(
            title=f"append to a shown message at {_RATE}/s, p99",
            unit="ms",
            parties=("viewer",),
            ours=lambda measured: measured["viewer"]["p99"],
            bar=Bar(of="value", at_most=20),
        ),
    ),
)
