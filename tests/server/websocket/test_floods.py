"""Peers that send what is dear to handle, and do not read what comes back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
import uvloop

from bubble.server.websocket.fragments import Fragments
from tests.server.websocket.live import Live, part, serving
from tests.server.websocket.raw_reader import RawReader

pytestmark = pytest.mark.anyio

PING, TEXT, CONTINUATION, FINAL = 0x89, 0x01, 0x00, 0x80


def _frame(first: int, payload: bytes = b"") -> bytes:
    return bytes([first, 0x80 | len(payload)]) + bytes(4) + payload


@asynccontextmanager
async def _reader(live: Live) -> AsyncIterator[RawReader]:
    reader = RawReader(live.port)
    await reader.open()
    try:
        yield reader
    finally:
        reader.close()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("size", [0, 1])
async def test_a_message_of_very_many_fragments_costs_no_more_than_its_bytes(live: Live, size: int) -> None:
    await live.thread("t1")
    frame = {"type": "thread.subscribe", "threadId": "t1"}
    padding = b"".join(_frame(CONTINUATION, b" " * size) for _ in range(50_000))
    text = _frame(TEXT, b"{") + padding + _frame(FINAL | CONTINUATION, json.dumps(frame)[1:].encode())
    async with _reader(live) as reader:
        sending = asyncio.ensure_future(reader.send_raw(text))
        async with asyncio.timeout(30):
            assert await reader.seqs(2) == [1, 2]
            await sending


@pytest.mark.timeout(60)
async def test_pings_of_a_peer_that_takes_no_pongs_fill_no_memory() -> None:
    async with serving() as live, _reader(live) as reader:
        sending = asyncio.ensure_future(reader.send_raw(_frame(PING, b"p" * 125) * 150_000))
        (connection,) = live.app.services.hub._connections
        socket = connection.sink._socket  # type: ignore[attr-defined]
        largest = 0
        for _ in range(20_000):
            await asyncio.sleep(0)
            largest = max(largest, socket.buffered)
        assert 0 < largest < 1024 * 1024
        assert not sending.done(), "it would have been taken for ever"
        sending.cancel()


async def test_frames_behind_a_flood_of_control_frames_are_handled_in_order(live: Live) -> None:
    await live.thread("t1")
    async with _reader(live) as reader:
        await reader.send('{"type":"thread.subscribe","threadId":"t1"}')
        for number in range(10):
            append = {"type": "thread.append", "threadId": "t1", "event": part(str(number))}
            await reader.send_raw(_frame(PING) * 1_000)
            await reader.send(json.dumps(append))
        assert await reader.seqs(12) == list(range(1, 13))
    assert [each["part"]["delta"] for each in await live.page("t1", from_seq=3)] == [str(each) for each in range(10)]


@pytest.mark.parametrize("make_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_answers_to_a_peer_that_is_gone_are_dropped_in_silence(
    make_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    reported: list[object] = []

    async def come_and_go() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
        async with serving() as live:
            await live.thread("t1")
            for _ in range(5):
                async with live.peer() as peer:
                    for _ in range(200):
                        await peer.append("t1", part(run_id="never-started"))
                    peer.socket.transport.abort()
            await live.append("t1", part())  # what was submitted before has been answered by now

    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(come_and_go())
    assert reported == []


async def test_pieces_within_the_limit_are_joined_and_those_beyond_are_only_counted() -> None:
    kept, dropped = Fragments(), Fragments()
    for number in range(5_000):
        kept.add(b"%d," % (number % 10), limit=10_000)
        dropped.add(b"xx", limit=9_999)
    assert kept.joined() == b"0,1,2,3,4,5,6,7,8,9," * 500
    assert kept.dropped == 0
    assert dropped.dropped == 10_000
    assert dropped.joined() == b""
