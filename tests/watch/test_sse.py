"""The stream of bytes: comments while nothing happens, one record at a time for whoever reads, and an end that says what it is."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import AsyncGenerator, AsyncIterator

import pytest

from bubble.protocol.errors import NotFound
from bubble.protocol.sse import KEEP_ALIVE, SseDecoder
from bubble.watch import BotEventsSse, WatchError, bot_events_sse, watch_bot
from bubble.watch.events import HeartbeatData, HeartbeatEvent, WatchEvent
from tests.watch.catalogue import BOT, SESSION, rows, said
from tests.watch.passing import passing_time
from tests.watch.upstreams import Held

pytestmark = pytest.mark.anyio

BEAT = HeartbeatEvent(data=HeartbeatData(server_time_ms="1"))


def streaming(source: Held, **options: int) -> tuple[BotEventsSse, AsyncIterator[bytes]]:
    stream = bot_events_sse(watch_bot(source, bot_id=BOT, session_id=SESSION), **options)
    return stream, aiter(stream)


async def ending_with(error: BaseException) -> AsyncGenerator[WatchEvent, None]:
    yield BEAT
    raise error


async def closed(pieces: AsyncIterator[bytes]) -> None:
    await pieces.aclose()  # type: ignore[attr-defined]


@pytest.mark.requirement("WA-29")
def test_the_headers_keep_caches_and_proxies_from_holding_the_stream_back() -> None:
    assert dict(bot_events_sse(ending_with(KeyError())).headers) == {
        "content-type": "text/event-stream; charset=utf-8",
        "cache-control": "no-cache, no-transform",
        "x-accel-buffering": "no",
    }


@pytest.mark.requirement("WA-28")
async def test_a_quiet_stream_gets_a_comment_every_15_seconds() -> None:
    with passing_time() as time:
        _, pieces = streaming(source := Held())
        for _ in range(3):
            step = asyncio.ensure_future(anext(pieces))
            await time.by(0)
            await time.by(14)
            assert not step.done()
            await time.by(1.5)
            assert step.done()
            assert await step == KEEP_ALIVE == b": keepalive\n\n"
        source.put({"heartbeat": {}})
        assert (await anext(pieces)).startswith(b"event: heartbeat\n")
        await closed(pieces)


@pytest.mark.requirement("WA-28")
@pytest.mark.parametrize("keep_alive_ms", [1, 1_000])
async def test_how_often_is_the_callers_to_say(keep_alive_ms: int) -> None:
    with passing_time() as time:
        _, pieces = streaming(Held(), keep_alive_ms=keep_alive_ms)
        step = asyncio.ensure_future(anext(pieces))
        await time.by(0)
        await time.by(keep_alive_ms / 1_000 + 0.1)
        assert await step == KEEP_ALIVE
        await closed(pieces)
    with pytest.raises(ValueError, match="positive"):
        bot_events_sse(ending_with(KeyError()), keep_alive_ms=0)


@pytest.mark.requirement("WA-67")
async def test_comments_leave_the_step_that_waits_alone() -> None:
    with passing_time() as time:
        _, pieces = streaming(source := Held())
        for _ in range(3):
            step = asyncio.ensure_future(anext(pieces))
            await time.by(0)
            await time.by(15.5)
            await step
        assert (len(source.opened), source.closed) == (1, 0)
        source.put({"heartbeat": {}})
        assert (await anext(pieces)).startswith(b"event: heartbeat\n")
        await closed(pieces)


@pytest.mark.requirement("WA-67")
async def test_nothing_is_pulled_for_a_reader_that_does_not_read() -> None:
    with passing_time() as time:
        _, pieces = streaming(source := Held())
        source.put(*(rows(said(number)) for number in range(1, 101)))
        first = await anext(pieces)
        await time.by(3_600)
        assert source.pulled == 1
        rest = [await anext(pieces) for _ in range(99)]
        assert KEEP_ALIVE not in [first, *rest]
        entries = SseDecoder().feed(b"".join([first, *rest]))
        assert [event.id for event in entries] == list(dict.fromkeys(event.id for event in entries))
        assert len(entries) == 100
        await closed(pieces)


@pytest.mark.requirement("WA-67")
async def test_what_came_while_the_reader_had_a_comment_to_take_is_the_next_record() -> None:
    with passing_time() as time:
        _, pieces = streaming(source := Held())
        step = asyncio.ensure_future(anext(pieces))
        await time.by(0)
        await time.by(15.5)
        await step
        source.put({"heartbeat": {}}, {"heartbeat": {}})
        await time.by(100)
        assert source.pulled == 1
        assert (await anext(pieces)).startswith(b"event: heartbeat\n")
        await closed(pieces)


@pytest.mark.requirement("WA-17")
async def test_a_clean_end_is_said() -> None:
    _, pieces = streaming(source := Held())
    source.put(None)
    assert [piece async for piece in pieces] == [b"event: stream.closed\ndata: {}\n\n"]
    assert source.closed == 1


@pytest.mark.requirement("WA-09", "WA-17", "WA-55")
async def test_resync_required_is_followed_by_the_end() -> None:
    _, pieces = streaming(source := Held())
    source.put({"cursorTooOld": {"agentId": BOT, "sessionId": SESSION}})
    names = [piece.partition(b"\n")[0] async for piece in pieces]
    assert names == [b"event: resync-required", b"event: stream.closed"]


@pytest.mark.requirement("WA-18", "WA-61")
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (WatchError("stream_truncated", "s3cret at 10.0.0.7"), "stream_truncated"),
        (NotFound("s3cret thread"), "not_found"),
        (KeyError("s3cret"), "internal"),
    ],
)
async def test_an_error_is_one_record_with_its_code_and_nothing_of_its_text(
    error: Exception, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="bubble"):
        *_, last = [piece async for piece in bot_events_sse(ending_with(error))]
    assert last == f'event: error\ndata: {{"code":"{code}"}}\n\n'.encode()
    assert "s3cret" in caplog.text  # it is not lost: whoever runs this can read it


@pytest.mark.requirement("WA-67")
async def test_closing_the_stream_closes_the_source_also_in_the_middle_of_a_step() -> None:
    for has_begun in (True, False):
        stream, pieces = streaming(source := Held())
        if has_begun:
            source.put({"heartbeat": {}})
            await anext(pieces)
        step = asyncio.ensure_future(anext(pieces))
        await source.waiting.wait()
        step.cancel()
        await asyncio.wait([step])
        assert source.closed == 1
        del stream


@pytest.mark.requirement("WA-67")
async def test_a_stream_that_is_dropped_closes_its_source() -> None:
    _, pieces = streaming(source := Held())
    source.put({"heartbeat": {}})
    await anext(pieces)
    del pieces, _
    gc.collect()
    async with asyncio.timeout(5):
        await source.let_go.wait()


@pytest.mark.requirement("WA-26")
async def test_events_may_come_from_any_iterator() -> None:
    class Once:
        def __init__(self) -> None:
            self.left = 1

        def __aiter__(self) -> Once:
            return self

        async def __anext__(self) -> WatchEvent:
            self.left -= 1
            if self.left < 0:
                raise StopAsyncIteration
            return BEAT

    assert len([piece async for piece in bot_events_sse(Once())]) == 2
