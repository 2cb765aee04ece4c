"""Ten thousand comings and goings over real sockets: no task, socket or memory is left over."""

from __future__ import annotations

import asyncio
import gc
import os
from pathlib import Path

import pytest

from tests.server.websocket.live import Live, serving
from tests.server.websocket.raw_reader import RawReader

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(600)]

CYCLES_PER_SOCKET = 10
ROUNDS = 900
DESCRIPTORS = Path("/proc/self/fd")


async def _come_and_go(live: Live) -> None:
    reader = RawReader(live.port)
    await reader.open()
    for cycle in range(CYCLES_PER_SOCKET):
        await reader.send('{"type":"thread.subscribe","threadId":"t1","fromSeq":2}')
        await reader.seqs(2)
        if cycle % 2:
            await reader.send('{"type":"thread.unsubscribe","threadId":"t1"}')
        else:
            reader.close()
            reader = RawReader(live.port)
            await reader.open()
    reader.close()


async def _all_gone(live: Live) -> None:
    async with asyncio.timeout(20):
        while live.app.services.hub.statistics().connections:
            await live.http.get("/healthz")


def _footprint() -> tuple[int, int, int]:
    gc.collect()
    descriptors = len(os.listdir(DESCRIPTORS)) if DESCRIPTORS.exists() else 0  # noqa: PTH208 - only how many
    return len(asyncio.all_tasks()), descriptors, len(gc.get_objects())


@pytest.mark.parametrize("skin", ["direct", "asgi"])
async def test_ten_thousand_cycles_leave_nothing(skin: str) -> None:
    async with serving(skin=skin) as live:
        await live.thread("t1")
        for _ in range(100):
            await _come_and_go(live)
        await _all_gone(live)
        tasks, descriptors, objects = _footprint()
        for _ in range(ROUNDS):
            await _come_and_go(live)
        await _all_gone(live)
        tasks_after, descriptors_after, objects_after = _footprint()
        statistics = live.app.services.hub.statistics()
        assert (statistics.subscriptions, statistics.tails) == (0, 0)
        assert tasks_after <= tasks
        assert descriptors_after <= descriptors
        assert objects_after - objects < ROUNDS, "something stays behind of each coming and going"
