"""What a connector adds between a thread and an agent, and what it costs to attend to threads on which nothing happens.

A question is heard, then the reply's `run_started` is made durable, then the agent is called: less than that cannot be had, so it is held
against a bare client that hears the question and appends one event. What an agent says is held against a bare append of the same size.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final

from bench.figure import Bar, Bench, Figure, Parties, Round, Row, Sample
from bench.load.events import ADMIN
from bench.load.paced import percentile
from bench.servers.connector import BOT, CHUNKS, ConnectorProcess, connector_process
from bench.servers.process import Server, bubble_server
from bubble.client import BubbleConnection
from bubble.protocol.events import MessagePart, RunStarted, raw

__all__ = ["CONNECTOR_IDLE", "CONNECTOR_LATENCY"]

_QUESTIONS: Final = 300
_THREADS: Final = 500
_BEFORE: Final = 100
_SETTLING_SECONDS: Final = 6.0
_IDLE_SECONDS: Final = 3.0
_KIB: Final = 1024


def _client(server: Server) -> BubbleConnection:
    return BubbleConnection(f"http://{server.host}:{server.port}", token=server.token)


async def _new_bot(bubble: BubbleConnection) -> str:
    await bubble.create_principal(BOT, kind="bot")
    return (await bubble.mint_token(BOT)).token


async def _new_threads(bubble: BubbleConnection, count: int) -> list[str]:
    return [(await bubble.create_thread(participants={BOT: "participant"})).thread_id for _ in range(count)]


# --- latency --------------------------------------------------------------------------------------------------------------------


def _open_latency(bench: Bench, stack: ExitStack) -> Parties:
    questions = bench.scale.count(_QUESTIONS)
    server = stack.enter_context(bubble_server(bench.directory, store=bench.store))
    token, thread_id = asyncio.run(_prepare(server))
    connector = stack.enter_context(connector_process(server, token, _place(bench)))
    connector.attends(1)
    return {
        "connector": lambda: asyncio.run(_ask(server, thread_id, questions)),
        "bare": lambda: asyncio.run(_hear_and_append(server, questions)),
    }


async def _prepare(server: Server) -> tuple[str, str]:
    async with _client(server) as bubble:
        token = await _new_bot(bubble)
        return token, (await _new_threads(bubble, 1))[0]


async def _ask(server: Server, thread_id: str, questions: int) -> Sample:
    called, taken = [], []
    async with _client(server) as bubble:
        head = (await bubble.get_thread(thread_id)).head_seq
        async with bubble.subscribe_thread(thread_id, from_seq=head + 1) as events:
            for number in range(questions):
                asked = time.perf_counter()
                await bubble.send_message(thread_id, f"question {number}")
                times: dict[str, object] = {}
                async for stored in events:
                    event = stored.to_dict()
                    part = event.get("part")
                    if isinstance(part, dict) and part.get("name") == "times":
                        times = part["data"]  # type: ignore[assignment]
                    if event["type"] == "run_finished" and event["principalId"] == BOT:
                        break
                assert times["question"] == f"question {number}", "The connector answered another question."
                called.append((float(str(times["called"])) - asked) * 1000)
                taken += [each * 1000 for each in times["taken"]]  # type: ignore[attr-defined]
    return {**_percentiles("call", called), **_percentiles("chunk", taken)}


async def _hear_and_append(server: Server, questions: int) -> Sample:
    heard, appended = [], []
    async with _client(server) as asking, _client(server) as hearing:
        thread_id = (await asking.create_thread()).thread_id
        async with hearing.subscribe_thread(thread_id, from_seq=2) as events:
            for number in range(questions):
                asked = time.perf_counter()
                posting = asyncio.create_task(asking.send_message(thread_id, f"question {number}"))
                async for stored in events:
                    if stored.type == "run_finished":
                        break
                await hearing.append_event(thread_id, RunStarted(principal_id=ADMIN, run_id=f"r{id(hearing)}-{number}"))
                heard.append((time.perf_counter() - asked) * 1000)
                await posting
                appended += await _appends(hearing, thread_id, f"r{id(hearing)}-{number}")
    return {**_percentiles("call", heard), **_percentiles("chunk", appended)}


async def _appends(bubble: BubbleConnection, thread_id: str, run_id: str) -> list[float]:
    chunk = raw({"type": "text-delta", "id": "1", "delta": "Some words. "})
    part = MessagePart(principal_id=ADMIN, run_id=run_id, part=chunk, version="ai-sdk-v6")
    taken = []
    for _ in range(CHUNKS):
        began = time.perf_counter()
        await bubble.append_event(thread_id, part)
        taken.append((time.perf_counter() - began) * 1000)
    return taken


def _percentiles(name: str, values: Sequence[float]) -> Sample:
    return {f"{name} p50": percentile(values, 50), f"{name} p99": percentile(values, 99)}


def _latency_row(title: str, name: str, against: str) -> Row:
    return Row(
        title=title,
        unit="ms",
        parties=("connector", "bare"),
        ours=lambda measured: measured["connector"][name],
        reference=lambda measured: measured["bare"][name],
        against=against,
    )


_HEARS: Final = "a bare client that hears it and appends once"
_APPENDS: Final = "a bare append"

CONNECTOR_LATENCY: Final = Figure(
    name="connector-latency",
    open=_open_latency,
    rows=(
        _latency_row("question posted to agent called, median", "call p50", _HEARS),
        _latency_row("question posted to agent called, p99", "call p99", _HEARS),
        _latency_row("agent's words to durable event, median", "chunk p50", _APPENDS),
        _latency_row("agent's words to durable event, p99", "chunk p99", _APPENDS),
    ),
)


# --- idle -----------------------------------------------------------------------------------------------------------------------


def _open_idle(bench: Bench, stack: ExitStack) -> Parties:  # noqa: ARG001 - every measurement has a server of its own
    return {"connector": partial(_idle, bench, bench.scale.count(_THREADS), bench.scale.count(_BEFORE))}


def _idle(bench: Bench, threads: int, before: int) -> Sample:
    with bubble_server(bench.directory, store=bench.store) as server:
        token = asyncio.run(_with_client(server, _new_bot))
        asyncio.run(_with_client(server, partial(_new_threads, count=before)))
        with connector_process(server, token, _place(bench)) as connector:
            connector.attends(before)
            resident, theirs = connector.resident_bytes(), server.resident_bytes()
            asyncio.run(_with_client(server, partial(_new_threads, count=threads)))
            connector.attends(before + threads)
            used = _used_while_idle(connector)
            grown = connector.resident_bytes() - resident
            served = server.resident_bytes() - theirs
        return {
            "kib": grown / threads / _KIB,
            "server kib": served / threads / _KIB,
            "ms": used * 1000,
            "boot": _boot(server, token, before + threads, _place(bench)),
        }


async def _with_client(server: Server, work: Callable[[BubbleConnection], Awaitable[object]]) -> str:
    async with _client(server) as bubble:
        return str(await work(bubble))


def _used_while_idle(connector: ConnectorProcess) -> float:
    time.sleep(_SETTLING_SECONDS)  # checkpoints and receipts of the beginning
    began = connector.processor_seconds()
    time.sleep(_IDLE_SECONDS)
    return (connector.processor_seconds() - began) / _IDLE_SECONDS


def _boot(server: Server, token: str, threads: int, place: Path) -> float:
    with connector_process(server, token, place) as connector:
        connector.attends(1)
        began = time.perf_counter()
        connector.attends(threads)
        return (threads - 1) / (time.perf_counter() - began)


def _place(bench: Bench) -> Path:
    return Path(tempfile.mkdtemp(prefix="connector-", dir=bench.directory))


def _idle_row(title: str, unit: str, name: str, bar: Bar | None = None) -> Row:
    def ours(measured: Round) -> float:
        return measured["connector"][name]

    return Row(title=title, unit=unit, parties=("connector",), ours=ours, bar=bar)  # type: ignore[arg-type]


CONNECTOR_IDLE: Final = Figure(
    name="connector-idle",
    open=_open_idle,
    rows=(
        _idle_row("memory of an idle thread, in the connector", "KiB", "kib", Bar(of="value", at_most=40)),
        _idle_row("memory of an idle thread, in the server", "KiB", "server kib"),
        _idle_row("processor time of 500 idle threads, per second", "ms", "ms", Bar(of="value", at_most=20)),
        _idle_row("threads attended to after a start", "/s", "boot"),
    ),
)
