"""The figures of `bubble bench`: short, of one server and one client process on this machine, and said as such."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import repeat
from statistics import median, quantiles
from typing import Final

from msgspec import Raw

from bubble.cli.spawned import SpawnedServer
from bubble.cli.wire import HttpLine, SocketLine, text_frame
from bubble.client import BubbleConnection
from bubble.protocol.events import MessagePart, RunStarted, encode_event

__all__ = ["Figure", "measure"]

_EVENT_BYTES: Final = 250
_ADMIN: Final = "admin"
# After the creator has joined and the run has started.
_FIRST: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A measurement: `value` in `unit`, and how it was taken."""

    name: str
    value: float
    unit: str
    how: str


async def measure(server: SpawnedServer, *, seconds: float) -> AsyncIterator[Figure]:
    """Every figure, one after the other, each taken for about `seconds`."""
    yield await asyncio.to_thread(_commits, server, seconds)
    yield await _http(server, seconds, clients=1, batch=1)
    yield await _http(server, seconds, clients=32, batch=1)
    yield await _http(server, seconds, clients=4, batch=100)
    yield await _published(server, events=int(10_000 * seconds))
    for figure in await _latency(server, seconds, rate=200):
        yield figure
    yield await _fan_out(server, events=int(2_000 * seconds), readers=50)
    yield await _replay(server, events=int(20_000 * seconds))


def _commits(server: SpawnedServer, seconds: float) -> Figure:
    done, end = 0, time.perf_counter() + seconds / 2
    with tempfile.TemporaryFile(dir=server.directory) as file:
        while time.perf_counter() < end:
            file.write(b"x" * _EVENT_BYTES)
            file.flush()
            os.fdatasync(file.fileno())
            done += 1
    return Figure(
        name="one file made durable",
        value=done / (seconds / 2),
        unit="/s",
        how="write and fdatasync of 250 bytes, without Bubble: what this disk can do",
    )


async def _a_thread(server: SpawnedServer) -> str:
    async with BubbleConnection(server.url, token=server.admin_token) as bubble:
        thread = await bubble.create_thread(title="bench")
        await bubble.append_event(thread.thread_id, RunStarted(principal_id=_ADMIN, run_id="bench"))
        return thread.thread_id


def _event() -> bytes:
    def of(length: int) -> bytes:
        part = Raw(b'{"type":"text-delta","id":"1","delta":"%s"}' % (b"x" * length))
        return encode_event(MessagePart(principal_id=_ADMIN, run_id="bench", part=part, version="ai-sdk-v6"))

    return of(_EVENT_BYTES - len(of(0)))


async def _http(server: SpawnedServer, seconds: float, *, clients: int, batch: int) -> Figure:
    thread_id = await _a_thread(server)
    events = _event() if batch == 1 else b'{"events":[%s]}' % b",".join(repeat(_event(), batch))
    path = f"/v1/threads/{thread_id}/events" + ("" if batch == 1 else ":batch")
    end = time.perf_counter() + seconds

    async def client() -> int:
        done = 0
        async with HttpLine(server.url, server.admin_token) as line:
            request = line.request(path, events)
            while time.perf_counter() < end:
                await line.send(request)
                done += 1
        return done

    start = time.perf_counter()
    done = sum(await asyncio.gather(*(client() for _ in range(clients))))
    rate = done * batch / (time.perf_counter() - start)
    who = "1 client" if clients == 1 else f"{clients} clients"
    return Figure(
        name=f"durable appends, {who}" + ("" if batch == 1 else f", batches of {batch}"),
        value=rate,
        unit="/s",
        how="HTTP, keep-alive, each client waits for its answer",
    )


async def _publish(server: SpawnedServer, thread_id: str, events: int) -> None:
    frame = text_frame(b'{"type":"thread.append","threadId":"%s","event":%s}' % (thread_id.encode(), _event()))
    async with SocketLine(server.url, server.admin_token) as publisher:
        for _ in range(events // 50):
            publisher.write(frame * 50)
            await publisher.drain()
        publisher.write(frame * (events % 50))
        await publisher.drain()
        async with SocketLine(server.url, server.admin_token) as witness:
            await witness.subscribe(thread_id, from_seq=_FIRST)
            await witness.read_until(events)


async def _published(server: SpawnedServer, *, events: int) -> Figure:
    thread_id = await _a_thread(server)
    start = time.perf_counter()
    await _publish(server, thread_id, events)
    return Figure(
        name="durable appends over one WebSocket",
        value=events / (time.perf_counter() - start),
        unit="/s",
        how=f"{events} frames in a row, until a second WebSocket has read them all back",
    )


async def _latency(server: SpawnedServer, seconds: float, *, rate: int) -> Sequence[Figure]:
    thread_id = await _a_thread(server)
    sent: list[float] = []
    arrived: list[float] = []
    count = max(20, int(rate * seconds))
    async with SocketLine(server.url, server.admin_token) as reader, HttpLine(server.url, server.admin_token) as line:
        await reader.subscribe(thread_id, from_seq=_FIRST)
        request = line.request(f"/v1/threads/{thread_id}/events", _event())

        async def read() -> None:
            while len(arrived) < count:
                events = await reader.read_events()
                arrived.extend(repeat(time.perf_counter(), events))

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(read())
            start = time.perf_counter()
            for number in range(count):
                await asyncio.sleep(max(0.0, start + number / rate - time.perf_counter()))
                sent.append(time.perf_counter())
                await line.send(request)
    waits = [(there - here) * 1000 for here, there in zip(sent, arrived, strict=False)]
    how = f"HTTP append to WebSocket delivery, {rate} events/s"
    return (
        Figure(name="append to delivery, median", value=median(waits), unit="ms", how=how),
        Figure(name="append to delivery, p99", value=quantiles(waits, n=100)[98], unit="ms", how=how),
    )


async def _fan_out(server: SpawnedServer, *, events: int, readers: int) -> Figure:
    thread_id = await _a_thread(server)
    async with AsyncExitStack() as stack:
        lines = [await stack.enter_async_context(SocketLine(server.url, server.admin_token)) for _ in range(readers)]
        for line in lines:
            await line.subscribe(thread_id, from_seq=_FIRST)
        start = time.perf_counter()
        async with asyncio.TaskGroup() as tasks:
            for line in lines:
                tasks.create_task(line.read_until(events))
            tasks.create_task(_publish(server, thread_id, events))
        taken = time.perf_counter() - start
    return Figure(
        name=f"deliveries, 1 publisher to {readers} readers",
        value=events * readers / taken,
        unit="/s",
        how=f"{events} events to {readers} WebSockets in this one process, which has to read them all",
    )


async def _replay(server: SpawnedServer, *, events: int) -> Figure:
    thread_id = await _a_thread(server)
    await _publish(server, thread_id, events)
    async with SocketLine(server.url, server.admin_token) as reader:
        start = time.perf_counter()
        await reader.subscribe(thread_id, from_seq=_FIRST)
        await reader.read_until(events)
        taken = time.perf_counter() - start
    return Figure(
        name="replay over one WebSocket", value=events / taken, unit="/s", how=f"{events} events from the store"
    )
