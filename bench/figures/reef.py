"""What the bridge to an A2A agent adds: from a question on the thread to the request at the agent, from the agent's words to the thread.

On the way to the agent lie the delivery of the question, the reply's `run_started`, made durable, and a request; on the way back an append
and a delivery. So they are held against a bare client that hears the question and appends once, and against a bare append and its delivery.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from bench.figure import Bench, Figure, Parties, Row, Sample
from bench.load.events import ADMIN
from bench.load.paced import percentile
from bench.servers.process import Server, bubble_server
from bench.servers.reef import PIECES, TimedAgent, reef_process
from bubble.client import BubbleConnection, ThreadSubscription
from bubble.protocol.events import MessagePart, RunStarted, raw

__all__ = ["REEF_LATENCY"]

_QUESTIONS: Final = 200
_BOT: Final = "reef"


def _open(bench: Bench, stack: ExitStack) -> Parties:
    questions = bench.scale.count(_QUESTIONS)
    server = stack.enter_context(bubble_server(bench.directory, store=bench.store))
    token, thread_id = asyncio.run(_prepare(server))
    place = Path(
        tempfile.mkdtemp(prefix="reef-", dir=bench.directory)
    )  # one store, so that each round goes on after the last one
    return {
        "reef": lambda: asyncio.run(_through_reef(server, token, thread_id, questions, place)),
        "bare": lambda: asyncio.run(_bare(server, questions)),
    }


def _client(server: Server) -> BubbleConnection:
    return BubbleConnection(f"http://{server.host}:{server.port}", token=server.token)


async def _prepare(server: Server) -> tuple[str, str]:
    async with _client(server) as bubble:
        await bubble.create_principal(_BOT, kind="bot")
        token = (await bubble.mint_token(_BOT)).token
        return token, (await bubble.create_thread(participants={_BOT: "participant"})).thread_id


async def _through_reef(server: Server, token: str, thread_id: str, questions: int, place: Path) -> Sample:
    agent, asked, heard = TimedAgent(), [], []
    async with (
        agent.serving() as url,
        _client(server) as bubble,
        reef_process(server, bot=_BOT, token=token, agent=url, directory=place),
    ):
        head = (await bubble.get_thread(thread_id)).head_seq
        async with bubble.subscribe_thread(thread_id, from_seq=head + 1) as events:
            await _ask(bubble, thread_id, events, agent)  # the connection is made
            for _ in range(questions):
                began, moments = await _ask(bubble, thread_id, events, agent)
                asked.append((agent.asked - began) * 1000)
                heard += [(got - said) * 1000 for said, got in zip(agent.spoke, moments, strict=True)]
    return {**_percentiles("request", asked), **_percentiles("words", heard)}


async def _ask(
    bubble: BubbleConnection, thread_id: str, events: ThreadSubscription, agent: TimedAgent
) -> tuple[float, list[float]]:
    began, moments = time.perf_counter(), []
    asking = asyncio.create_task(bubble.send_message(thread_id, "What is it?"))
    async for stored in events:
        event = stored.to_dict()
        if event.get("principalId") != _BOT:
            continue
        if '"text-delta"' in stored.text.decode():
            moments.append(time.perf_counter())
            agent.heard.put_nowait(None)
        if event["type"] == "run_finished":
            break
    await asking
    assert len(moments) == PIECES, "The answer is another one."
    return began, moments


async def _bare(server: Server, questions: int) -> Sample:
    asked, heard = [], []
    async with _client(server) as asking, _client(server) as hearing:
        thread_id = (await asking.create_thread()).thread_id
        async with hearing.subscribe_thread(thread_id, from_seq=2) as events:
            for number in range(questions):
                began = time.perf_counter()
                posting = asyncio.create_task(asking.send_message(thread_id, "What is it?"))
                await _until(events, "run_finished")
                run_id = f"r{id(hearing)}-{number}"
                await hearing.append_event(thread_id, RunStarted(principal_id=ADMIN, run_id=run_id))
                asked.append((time.perf_counter() - began) * 1000)
                await posting
                await _until(events, "run_started")
                heard += [await _append_and_hear(asking, thread_id, run_id, events) for _ in range(PIECES)]
    return {**_percentiles("request", asked), **_percentiles("words", heard)}


async def _append_and_hear(bubble: BubbleConnection, thread_id: str, run_id: str, events: ThreadSubscription) -> float:
    part = raw({"type": "text-delta", "id": "1", "delta": "Piece. "})
    event = MessagePart(principal_id=ADMIN, run_id=run_id, part=part, version="ai-sdk-v6")
    began = time.perf_counter()
    appending = asyncio.create_task(bubble.append_event(thread_id, event))
    await _until(events, "message_part")
    taken = time.perf_counter() - began
    await appending
    return taken * 1000


async def _until(events: ThreadSubscription, kind: str) -> None:
    async for stored in events:
        if stored.type == kind:
            return


def _percentiles(name: str, values: list[float]) -> Sample:
    return {f"{name} p50": percentile(values, 50), f"{name} p99": percentile(values, 99)}


def _row(title: str, name: str, against: str) -> Row:
    return Row(
        title=title,
        unit="ms",
        parties=("reef", "bare"),
        ours=lambda measured: measured["reef"][name],
        reference=lambda measured: measured["bare"][name],
        against=against,
    )


_HEARS: Final = "a bare client that hears it and appends once"
_APPENDS: Final = "a bare append and its delivery"

REEF_LATENCY: Final = Figure(
    name="reef-latency",
    open=_open,
    rows=(
        _row("question posted to request at the agent, median", "request p50", _HEARS),
        _row("question posted to request at the agent, p99", "request p99", _HEARS),
        _row("agent's words to those who follow, median", "words p50", _APPENDS),
        _row("agent's words to those who follow, p99", "words p99", _APPENDS),
    ),
)
