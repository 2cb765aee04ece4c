"""Resuming at every seq of a long thread, over each way to read it: complete, each event exactly once."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bubble.store.opening import open_store
from tests.server.websocket.live import ADMIN_TOKEN, Live, part, serving
from tests.server.websocket.raw_reader import RawReader

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(300)]

LENGTH = 2_000
BEARER = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
_SEQ = re.compile(rb'{"seq":(\d+),"createdAt"')


@pytest.fixture
async def live(tmp_path: Path) -> AsyncIterator[Live]:
    async with (
        await open_store(f"sqlite:///{tmp_path / 'bubble.db'}") as store,
        serving(store=store, rates={"requests_per_second": 0}) as started,
    ):
        await started.thread("t1")
        for first in range(2, LENGTH, 500):
            events = [part(str(seq)) for seq in range(first + 1, min(first + 500, LENGTH) + 1)]
            await started.call("POST", "/v1/threads/t1/events:batch", {"events": events})
        yield started


async def test_over_one_websocket(live: Live) -> None:
    reader = RawReader(live.port, receive_buffer=1024 * 1024)
    await reader.open()
    last = (await live.http.get(f"/v1/threads/t1/events?fromSeq={LENGTH}", headers=BEARER)).content
    end = last[last.index(b'{"seq"') : last.rindex(b"]")] + b"}"
    for from_seq in range(1, LENGTH + 1):
        await reader.send(f'{{"type":"thread.subscribe","threadId":"t1","fromSeq":{from_seq}}}')
        received = await reader.bytes_until(end)
        assert received.count(b"thread.subscription_opened") == 1
        assert list(map(int, _SEQ.findall(received))) == list(range(from_seq, LENGTH + 1))
        await reader.send('{"type":"thread.unsubscribe","threadId":"t1"}')
    reader.close()


@pytest.mark.requirement("EV-57")
async def test_over_http_pages(live: Live) -> None:
    for from_seq in range(1, LENGTH + 1):
        found: list[int] = []
        following: int | None = from_seq
        while following is not None:
            page = await live.http.get(f"/v1/threads/t1/events?fromSeq={following}&limit=1000", headers=BEARER)
            found += map(int, _SEQ.findall(page.content))
            following = page.json()["nextSeq"]
        assert found == list(range(from_seq, LENGTH + 1))


@pytest.mark.parametrize("by", ["fromSeq", "Last-Event-ID"])
async def test_over_server_sent_events(live: Live, by: str) -> None:
    for from_seq in range(2, LENGTH + 1, 1 if by == "fromSeq" else 7):
        headers = BEARER if by == "fromSeq" else {**BEARER, "Last-Event-ID": str(from_seq - 1)}
        query = f"?fromSeq={from_seq}" if by == "fromSeq" else "?fromSeq=1"
        received = b""
        async with (
            asyncio.timeout(20),
            live.http.stream("GET", f"/v1/threads/t1/events/stream{query}", headers=headers) as stream,
        ):
            async for chunk in stream.aiter_raw():
                received += chunk
                if received.endswith(b"\n\n") and b"id: %d\n" % LENGTH in received[-1_000:]:
                    break
        assert list(map(int, _SEQ.findall(received))) == list(range(from_seq, LENGTH + 1))
