"""The page in a browser: how soon an appended delta is a pixel, how soon a long thread is seen, what an hour of deltas leaves in the page's
memory, and what an open page costs the server.

A delta counts from the beginning of the request that appends it until the frame is painted in which the text has it. The page is
measured from inside; what that costs is in the figure. An hour's worth of deltas comes as fast as the server takes it,
while the page shows what it can. An open page costs what it asks for while nothing happens: a held stream, the list of threads, the runs.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from functools import partial
from http.client import HTTPConnection
from typing import Final

from playwright.sync_api import Page

from bench.figure import Bench, Figure, Parties, Row, Sample, Unit
from bench.load.events import VerificationError
from bench.load.loops import timed
from bench.load.paced import percentile
from bench.servers.browser import CHROMIUM, a_browser, a_page
from bench.servers.process import Server, bubble_server

__all__ = ["PAGE"]

_RATE: Final = 50
_DELTAS: Final = 500
_MESSAGES: Final = 10_000
_HOUR: Final = 3_600 * _RATE
_DELTAS_OF_A_MESSAGE: Final = 500
_PAGES: Final = 6
_IDLE_SECONDS: Final = 20.0
_BATCH: Final = 1_000
_KIB: Final = 1024

# Notes, for each number that the newest message ends with, when the frame was painted in which it first did: the page changes
# at the beginning of a frame, so a message to oneself comes once that frame is painted.
_WATCH: Final = """
globalThis.painted = [];
let last = -1;
const { port1, port2 } = new MessageChannel();
port1.onmessage = ({ data }) => painted.push([data, performance.timeOrigin + performance.now()]);
new MutationObserver(() => {
  const text = [...document.querySelectorAll(".message .rich")].at(-1)?.textContent ?? "";
  const number = Number(/(\\d+)\\s*$/.exec(text)?.[1] ?? -1);
  if (number <= last) return;
  last = number;
  globalThis.firstPaint ??= performance.now();
  port2.postMessage(number);
}).observe(document, { subtree: true, childList: true, characterData: true });
"""


def _open(bench: Bench, stack: ExitStack) -> Parties:
    if CHROMIUM is None:
        return {}
    server = stack.enter_context(bubble_server(bench.directory, store=bench.store))
    messages = bench.scale.count(_MESSAGES, least=100)
    long = _new_thread(server)
    _append(server, long, [event for number in range(messages) for event in _message(number)])
    return {
        "pixel": partial(_pixels, server, bench.scale.count(_DELTAS)),
        "view": partial(_first_view, server, long, messages),
        "hour": partial(_hour, server, bench.scale.count(_HOUR, least=_DELTAS_OF_A_MESSAGE)),
        "idle": partial(
            _idle, server, bench.scale.count(_PAGES, least=1), bench.scale.seconds(_IDLE_SECONDS, least=1.0)
        ),
    }


# --- from delta to pixel --------------------------------------------------------------------------------------------------------


def _pixels(server: Server, deltas: int) -> Sample:
    thread_id = _new_thread(server)
    with a_browser() as browser:
        page = a_page(browser, server, script=_WATCH)
        page.goto(_url(server, thread_id))
        _append(server, thread_id, _begin("0", [*_opening(), _delta("0 ")]))
        page.wait_for_function("() => globalThis.painted.length === 1")
        with closing(_connect(server)) as connection, timed(server):
            sent = [time.time() * 1000]
            start = time.perf_counter()
            for number in range(1, deltas + 1):
                time.sleep(max(0.0, start + number / _RATE - time.perf_counter()))
                sent.append(time.time() * 1000)
                _post(server, connection, thread_id, _parts("0", [_delta(f"{number} ")]))
        page.wait_for_function(f"() => globalThis.painted.at(-1)[0] === {deltas}")
        painted: list[tuple[int, float]] = page.evaluate("globalThis.painted")
    delays = _delays(sent, painted)
    return {"p50": percentile(delays, 50), "p99": percentile(delays, 99)}


def _delays(sent: Sequence[float], painted: Sequence[tuple[int, float]]) -> list[float]:
    """What each delta but the first took; several may have come with one frame."""
    delays: list[float] = []
    shown = 0
    for number, at in painted:
        delays += [at - sent[each] for each in range(shown + 1, number + 1)]
        shown = max(shown, number)
    return delays


# --- a long thread --------------------------------------------------------------------------------------------------------------


def _first_view(server: Server, thread_id: str, messages: int) -> Sample:
    with a_browser() as browser, timed(server):
        page = a_page(browser, server, script=_WATCH)
        page.goto(_url(server, thread_id))
        page.wait_for_function(f"() => globalThis.painted.at(-1)?.[0] === {messages - 1}")
        shown: float = page.evaluate("globalThis.firstPaint")
        elements: int = page.evaluate("document.querySelectorAll('.message').length")
    if elements > messages // 2 + 200:
        raise VerificationError(f"{elements} messages were made for a view of the newest.")
    return {"ms": shown}


# --- an hour --------------------------------------------------------------------------------------------------------------------


def _hour(server: Server, deltas: int) -> Sample:
    thread_id = _new_thread(server)
    count = deltas // _DELTAS_OF_A_MESSAGE
    with a_browser() as browser:
        page = a_page(browser, server)
        page.goto(_url(server, thread_id))
        _append(server, thread_id, _long_message("warm"))
        page.wait_for_function("() => document.querySelectorAll('.message .rich').length > 0")
        before = _used(page)
        for number in range(count):
            _append(server, thread_id, _long_message(str(number)))
        _append(server, thread_id, _message(count))
        page.get_by_text(f"This is message {count}", exact=True).wait_for()
        return {"kib": max(0.0, (_used(page) - before) / _KIB)}


def _used(page: Page) -> float:
    """What the page's scripts and elements hold, once the garbage is gone."""
    devtools = page.context.new_cdp_session(page)
    devtools.send("HeapProfiler.enable")
    devtools.send("HeapProfiler.collectGarbage")
    return float(devtools.send("Runtime.getHeapUsage")["usedSize"])


# --- what an open page costs ----------------------------------------------------------------------------------------------------


def _idle(server: Server, pages: int, seconds: float) -> Sample:
    thread_id = _new_thread(server)
    _append(server, thread_id, _message(0))
    with a_browser() as browser:
        resident = server.resident_bytes()
        for _ in range(pages):
            page = a_page(browser, server)
            page.goto(_url(server, thread_id))
            page.get_by_text("This is message 0", exact=True).wait_for()
        grown = server.resident_bytes() - resident
        used = server.processor_seconds()
        time.sleep(seconds)
        used = server.processor_seconds() - used
    return {"us": used / pages / seconds * 1e6, "kib": max(0, grown) / pages / _KIB}


# --- threads --------------------------------------------------------------------------------------------------------------------

_Event = dict[str, object]


def _opening() -> list[_Event]:
    return [{"type": "text-start", "id": "1"}]


def _delta(text: str) -> _Event:
    return {"type": "text-delta", "id": "1", "delta": text}


def _parts(run_id: str, chunks: Sequence[_Event]) -> list[_Event]:
    common = {"principalId": "admin", "runId": run_id}
    return [{"type": "message_part", "version": "ai-sdk-v6", "part": chunk, **common} for chunk in chunks]


def _begin(run_id: str, chunks: Sequence[_Event]) -> list[_Event]:
    return [{"type": "run_started", "principalId": "admin", "runId": run_id}, *_parts(run_id, chunks)]


def _whole(run_id: str, chunks: Sequence[_Event]) -> list[_Event]:
    return [*_begin(run_id, chunks), {"type": "run_finished", "principalId": "admin", "runId": run_id}]


def _message(number: int) -> list[_Event]:
    return _whole(f"m{number}", [*_opening(), _delta(f"This is message {number}")])


def _long_message(run_id: str) -> list[_Event]:
    return _whole(
        f"long-{run_id}", [*_opening(), *(_delta(f"word {number} ") for number in range(_DELTAS_OF_A_MESSAGE))]
    )


def _url(server: Server, thread_id: str) -> str:
    return f"http://{server.host}:{server.port}/?thread={thread_id}"


def _connect(server: Server) -> HTTPConnection:
    return HTTPConnection(server.host, server.port, timeout=60)


def _ask(server: Server, connection: HTTPConnection, path: str, body: object) -> dict[str, object]:
    headers = {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"}
    connection.request("POST", path, json.dumps(body), headers)
    answer = connection.getresponse()
    content = answer.read()
    if answer.status != 201:
        raise VerificationError(f"POST {path} was answered with {answer.status}: {content[:200]!r}.")
    found: dict[str, object] = json.loads(content)
    return found


def _new_thread(server: Server) -> str:
    with closing(_connect(server)) as connection:
        return str(_ask(server, connection, "/v1/threads", {})["threadId"])


def _post(server: Server, connection: HTTPConnection, thread_id: str, events: Sequence[_Event]) -> None:
    _ask(server, connection, f"/v1/threads/{thread_id}/events:batch", {"events": events})


def _append(server: Server, thread_id: str, events: Sequence[_Event]) -> None:
    with closing(_connect(server)) as connection:
        for start in range(0, len(events), _BATCH):
            _post(server, connection, thread_id, events[start : start + _BATCH])


def _row(title: str, *, party: str, key: str, unit: Unit) -> Row:
    return Row(
        title=title,
        unit=unit,
        parties=(party,),
        ours=lambda measured: measured[party][key],
    )


PAGE: Final = Figure(
    name="page",
    open=_open,
    rows=(
        _row(f"append to pixel at {_RATE} deltas/s, median", party="pixel", key="p50", unit="ms"),
        _row(f"append to pixel at {_RATE} deltas/s, p99", party="pixel", key="p99", unit="ms"),
        _row(f"first view of a thread of {_MESSAGES:,} messages", party="view", key="ms", unit="ms"),
        _row("memory of the page after an hour of deltas", party="hour", key="kib", unit="KiB"),
        _row("server's time per second of an open page", party="idle", key="us", unit="us"),
        _row("server's memory of an open page", party="idle", key="kib", unit="KiB"),
    ),
)
