"""Readers that read slowly, or not at all, or are gone without a word."""

from __future__ import annotations

import asyncio

import pytest

from bubble.hub.connection import TURN_BYTES
from bubble.server.websocket.keeper import CLOSE_NO_PONG, Keeper
from tests.server.websocket.live import Live, part, serving
from tests.server.websocket.raw_reader import RawReader

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("PR-7-10", "PR-7-11", "PR-7-12")
@pytest.mark.timeout(180)
async def test_a_reader_that_stops_reading_costs_no_memory_and_then_gets_everything(live: Live) -> None:
    await live.thread("t1")
    reader = RawReader(live.port)
    await reader.open()
    await reader.send('{"type":"thread.subscribe","threadId":"t1","fromSeq":1}')
    await reader.seqs(2)
    frozen_at = live.app.services.hub.statistics().deliveries
    event = {**part("y" * 5_000)}
    last = 0
    for _ in range(10):
        batch = await live.call("POST", "/v1/threads/t1/events:batch", {"events": [event] * 500})
        last = batch["events"][-1]["seq"]
    handed_out = live.app.services.hub.statistics().deliveries - frozen_at
    # 5,000 events of 5 KB were appended; what was written to the frozen reader fits its buffers, the kernel's included.
    assert handed_out * 5_000 < 12 * 1024 * 1024, handed_out
    assert await reader.seqs(last) == list(range(3, last + 1))
    reader.close()


async def test_the_write_buffer_of_a_frozen_reader_is_bounded() -> None:
    async with serving(streams={"high_water_bytes": 65_536}) as live:
        await live.thread("t1")
        reader = RawReader(live.port)
        await reader.open()
        await reader.send('{"type":"thread.subscribe","threadId":"t1","fromSeq":1}')
        await reader.seqs(2)
        event = part("y" * 5_000)
        for _ in range(4):
            await live.call("POST", "/v1/threads/t1/events:batch", {"events": [event] * 500})
        connections = list(live.app.services.hub._connections)
        buffered = [connection.sink._socket.buffered for connection in connections]  # type: ignore[attr-defined]
        assert len(buffered) == 1
        assert 0 < buffered[0] < 65_536 + TURN_BYTES + 6_000  # the mark, one turn beyond it, and one event
        reader.close()


class _Peer:
    def __init__(self) -> None:
        self.last_heard = 0.0
        self.bytes_taken = 0
        self.pings = 0
        self.closes: list[tuple[int, str]] = []

    def ping(self) -> None:
        self.pings += 1

    def close(self, code: int, reason: str) -> None:
        self.closes.append((code, reason))


async def _watched() -> tuple[Keeper, _Peer, float]:
    keeper, peer = Keeper(ping_interval=20, peer_timeout=60), _Peer()
    start = asyncio.get_running_loop().time()
    keeper.add(peer)
    return keeper, peer, start


@pytest.mark.requirement("PR-7-14", "PR-7-15")
async def test_a_silent_peer_is_pinged_every_20_s_and_closed_after_60() -> None:
    keeper, peer, start = await _watched()
    for second in range(1, 60):
        keeper.look(start + second)
    assert peer.pings == 2
    assert peer.closes == []
    keeper.look(start + 61)
    assert peer.closes == [(CLOSE_NO_PONG, "no pong")]
    keeper.look(start + 200)
    assert peer.pings == 2


@pytest.mark.requirement("PR-7-16")
@pytest.mark.parametrize("sign", ["frame", "byte"])
async def test_a_sign_of_life_keeps_a_peer(sign: str) -> None:
    keeper, peer, start = await _watched()
    for second in range(0, 600, 50):
        if sign == "frame":
            peer.last_heard = start + second
        else:
            peer.bytes_taken += 1
        keeper.look(start + second)
    assert peer.closes == []


@pytest.mark.requirement("PR-7-15", "PR-7-17")
async def test_a_peer_that_is_gone_is_closed_with_4408_and_resumes_without_loss() -> None:
    async with serving(streams={"ping_interval": 0.05, "peer_timeout": 0.3}) as live:
        await live.thread("t1")
        reader = RawReader(live.port)
        await reader.open()
        await reader.send('{"type":"thread.subscribe","threadId":"t1","fromSeq":1}')
        await reader.seqs(2)
        assert await reader.close_code() == CLOSE_NO_PONG
        last = (await live.append("t1", part()))["seq"]
        again = RawReader(live.port)
        await again.open()
        await again.send('{"type":"thread.subscribe","threadId":"t1","fromSeq":3}')
        assert await again.seqs(last) == [3]
        for each in (reader, again):
            each.close()


async def test_a_peer_that_answers_pings_stays() -> None:
    async with serving(streams={"ping_interval": 0.05, "peer_timeout": 0.2}) as live, live.peer() as peer:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await peer.socket.recv()
        assert await peer.settled() == []
