"""The client and the real server with a bad network between them: nothing is lost, nothing comes twice."""

from __future__ import annotations

import asyncio
import json
import random
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from bubble.client import Backoff, BubbleConnection
from bubble.protocol.events import MessagePart, RunInterruptRequested, RunStarted
from tests.faults.processes import ServerProcess
from tests.faults.proxy import FaultyProxy

pytestmark = pytest.mark.anyio

QUICK = Backoff(first=0.002, longest=0.02)
CUTS = 200


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ServerProcess]:
    """The real thing."""
    async with ServerProcess.running(tmp_path) as server:
        yield server


def client(server: ServerProcess, port: int | None = None) -> BubbleConnection:
    url = f"http://127.0.0.1:{server.port if port is None else port}"
    return BubbleConnection(url, token=server.admin_token, backoff=QUICK, retry_for=60)


@pytest.mark.requirement("WS-20", "PR-7-07")
async def test_a_reader_resumes_without_loss_or_double_across_two_hundred_cuts(server: ServerProcess) -> None:
    dice = random.Random(1)  # noqa: S311 - a test's dice
    events = 3_000

    async with (
        client(server) as direct,
        FaultyProxy.listening(server.port, fuse=lambda: dice.randint(150, 4_000), piece=97) as proxy,
        client(server, proxy.port) as reader,
    ):
        thread_id = (await direct.create_thread()).thread_id

        async def write() -> None:
            # Half of it is backlog when the reader comes, half is live; as long as it takes to cut often enough.
            for first in range(0, events, 10):
                batch = [RunStarted(principal_id="admin", run_id=f"r{number}") for number in range(first, first + 10)]
                await direct.append_events(thread_id, batch)

        seen: list[bytes] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(write)
            with anyio.fail_after(100):
                async with reader.subscribe_thread(thread_id) as subscription:
                    while proxy.cuts < CUTS or len(seen) < events + 1:
                        if len(seen) > events:
                            await direct.append_event(
                                thread_id, RunInterruptRequested(principal_id="admin", run_id="r1")
                            )
                            events += 1
                        seen.append((await anext(subscription)).text)
        kept = [event.text async for event in direct.iter_events(thread_id, to_seq=len(seen))]
    assert seen == kept
    assert proxy.cuts >= CUTS


@pytest.mark.requirement("PR-6-46")
async def test_a_run_says_everything_once_across_cuts(server: ServerProcess) -> None:
    dice = random.Random(3)  # noqa: S311 - a test's dice
    words = [f"word-{number} " for number in range(400)]
    async with (
        client(server) as direct,
        FaultyProxy.listening(server.port, fuse=lambda: dice.randint(200, 3_000)) as proxy,
        client(server, proxy.port) as writer,
    ):
        thread_id = (await direct.create_thread()).thread_id
        with anyio.fail_after(100):
            async with writer.run(thread_id) as run:
                for number, word in enumerate(words):
                    await run.text(word)
                    if number % 4 == 0:
                        await run.flush()
        assert proxy.cuts > 20
        stored = [event.event async for event in direct.iter_events(thread_id)]
    parts = [json.loads(bytes(event.part)) for event in stored if isinstance(event, MessagePart)]
    assert [part["delta"] for part in parts if part["type"] == "text-delta"] == words


async def test_a_stalled_connection_goes_on_where_it_stopped(server: ServerProcess) -> None:
    async with (
        client(server) as direct,
        FaultyProxy.listening(server.port) as proxy,
        client(server, proxy.port) as reader,
    ):
        thread_id = (await direct.create_thread()).thread_id
        async with reader.subscribe_thread(thread_id) as events:
            assert (await anext(events)).seq == 1
            proxy.stall()
            await direct.append_event(thread_id, RunStarted(principal_id="admin", run_id="r"))
            waiting = asyncio.ensure_future(anext(events))
            await direct.get_thread(thread_id)
            assert not waiting.done()
            proxy.flow()
            with anyio.fail_after(10):
                assert (await waiting).seq == 2
            proxy.cut_all()
            await direct.append_event(thread_id, RunStarted(principal_id="admin", run_id="s"))
            with anyio.fail_after(10):
                assert (await anext(events)).seq == 3


@pytest.mark.requirement("PR-7-18", "PR-7-27")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
async def test_readers_and_runs_go_on_across_a_restart_of_the_server(
    server: ServerProcess, how: signal.Signals
) -> None:
    async with client(server) as bubble:
        thread_id = (await bubble.create_thread()).thread_id
        seen: list[int] = []
        enough = asyncio.Event()

        async def read() -> None:
            async with bubble.subscribe_thread(thread_id) as events:
                async for event in events:
                    seen.append(event.seq)
                    if event.type == "run_finished":
                        return
                    if event.seq == 50:
                        enough.set()

        with anyio.fail_after(90):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(read)
                async with bubble.run(thread_id) as run:
                    for number in range(100):
                        await run.text(f"{number} ")
                        await run.flush()
                        if number == 60:
                            await enough.wait()
                            await server.stop(how)
                            tasks.start_soon(server.start)
        page = [event.seq async for event in bubble.iter_events(thread_id)]
    assert seen == page == list(range(1, 106))
