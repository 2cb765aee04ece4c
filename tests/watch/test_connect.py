"""The source over the Connect protocol, against a service that speaks it."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import ASGIApp

from bubble.protocol.jsontext import JSONValue
from bubble.testing.asgi import StreamingASGITransport
from bubble.watch import ConnectSource, WatchCursor, WatchError, bot_events_sse, watch_bot
from bubble.watch.envelopes import EnvelopeDecoder, envelope
from bubble.watch.events import WatchEvent
from tests.watch.catalogue import BOT, CATALOGUE, SESSION, cursor_text, rows, said
from tests.watch.passing import passing_time
from tests.watch.service import COMPRESSED, END, Service, Talking, end, message

pytestmark = pytest.mark.anyio

URL = "http://service/some.v1.BotService/Watch"


def ask_for(bot_id: str, session_id: str, cursor: WatchCursor | None) -> Mapping[str, JSONValue]:
    after = "0" if cursor is None else str(cursor.after_updated_seq)
    return {"cursors": [{"agentId": bot_id, "sessionId": session_id, "afterUpdatedSeq": after}]}


@asynccontextmanager
async def source_of(service: ASGIApp, *, max_frame_bytes: int = 1_000_000) -> AsyncIterator[ConnectSource]:
    async with httpx2.AsyncClient(transport=StreamingASGITransport(service)) as client:
        yield ConnectSource(
            URL, ask_for=ask_for, headers={"Authorization": "Bearer t"}, client=client, max_frame_bytes=max_frame_bytes
        )


async def watched(
    service: Service, *, resume_from: str | None = None, max_frame_bytes: int = 1_000_000
) -> list[WatchEvent]:
    async with source_of(service, max_frame_bytes=max_frame_bytes) as source:
        return [e async for e in watch_bot(source, bot_id=BOT, session_id=SESSION, resume_from=resume_from)]


async def failure(service: Service, *, max_frame_bytes: int = 1_000_000) -> WatchError:
    with pytest.raises(WatchError) as ended:
        await watched(service, max_frame_bytes=max_frame_bytes)
    return ended.value


@pytest.mark.requirement("WA-73")
async def test_a_stream_of_every_frame_to_its_clean_end() -> None:
    service = Service(chunks=[message(line.frame) for line in CATALOGUE[:-1]] + [end(metadata={"x": ["1"]})])
    assert [event.type for event in await watched(service)] == [line.type for line in CATALOGUE[:-1]]


@pytest.mark.requirement("WA-73")
async def test_it_asks_as_the_protocol_wants_with_the_callers_path_headers_and_message() -> None:
    service = Service(chunks=[end()])
    await watched(service, resume_from=cursor_text(22))
    assert service.path == "/some.v1.BotService/Watch"
    assert service.asked == [{"cursors": [{"agentId": BOT, "sessionId": SESSION, "afterUpdatedSeq": "22"}]}]
    assert service.headers["content-type"] == "application/connect+json"
    assert service.headers["connect-protocol-version"] == "1"
    assert service.headers["accept-encoding"] == "identity"
    assert service.headers["authorization"] == "Bearer t"


@pytest.mark.requirement("WA-73")
async def test_envelopes_may_be_cut_at_every_byte() -> None:
    stream = message({"connected": {}}) + message(rows(said(1, "é"))) + message({}) + end()
    whole = await watched(Service(chunks=[stream]))
    assert [event.type for event in whole] == ["connected", "message"]
    for cut in range(1, len(stream)):
        assert await watched(Service(chunks=[stream[:cut], stream[cut:]])) == whole
    assert await watched(Service(chunks=[stream[at : at + 1] for at in range(len(stream))])) == whole


@pytest.mark.requirement("WA-61", "WA-73")
@pytest.mark.parametrize(
    ("said_code", "code"),
    [("unauthenticated", "unauthenticated"), ("resource_exhausted", "resource_exhausted"), ("made_up", "unknown")],
)
async def test_an_error_at_the_end_is_raised_with_its_code(said_code: str, code: str) -> None:
    chunks = [message(rows(said(1))), end(error={"code": said_code, "message": "no more"})]
    error = await failure(Service(chunks=chunks))
    assert error.code == code
    assert "no more" in error.message


@pytest.mark.requirement("WA-61", "WA-73")
@pytest.mark.parametrize("kept", range(0, 60, 7))
async def test_a_stream_without_its_end_was_cut_off(kept: int) -> None:
    stream = message(rows(said(1))) + message({"heartbeat": {}})
    assert (await failure(Service(chunks=[stream[: len(stream) - kept]]))).code == "stream_truncated"


@pytest.mark.requirement("WA-61", "WA-73")
async def test_an_end_that_is_itself_cut_off_is_none() -> None:
    assert (await failure(Service(chunks=[end()[:-1]]))).code == "stream_truncated"


@asynccontextmanager
async def cut_connection(sent: bytes) -> AsyncIterator[str]:
    """A server that sends the bytes and hangs up in the middle of a chunk."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/connect+json\r\ntransfer-encoding: chunked\r\n\r\n"
        writer.write(head + b"%x\r\n" % (len(sent) + 10) + sent)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"


@pytest.mark.requirement("WA-61", "WA-73")
async def test_a_connection_that_breaks_is_a_stream_that_was_cut_off() -> None:
    async with cut_connection(message(rows(said(1)))) as url:
        watch = watch_bot(ConnectSource(url, ask_for=ask_for), bot_id=BOT, session_id=SESSION)
        assert (await anext(watch)).id == cursor_text(1)
        with pytest.raises(WatchError) as ended:
            await anext(watch)
    assert ended.value.code == "stream_truncated"


@pytest.mark.requirement("WA-73")
@pytest.mark.parametrize("flags", [COMPRESSED, COMPRESSED | END, 4, 128])
async def test_a_compressed_envelope_or_an_unknown_flag_is_refused(flags: int) -> None:
    error = await failure(Service(chunks=[message(gzip.compress(b"{}"), flags=flags), end()]))
    assert error.code == "protocol_error"


@pytest.mark.requirement("WA-52", "WA-73")
@pytest.mark.parametrize("chunk", [message(b"{"), message([]), message({"rows": 1}), message(b"", flags=END)])
async def test_an_envelope_with_something_else_in_it_is_against_the_protocol(chunk: bytes) -> None:
    assert (await failure(Service(chunks=[chunk]))).code == "protocol_error"


@pytest.mark.requirement("WA-73")
@pytest.mark.parametrize("ending", [[], 1, {"error": "x"}, {"error": []}])
async def test_an_end_that_is_none_is_against_the_protocol(ending: object) -> None:
    assert (await failure(Service(chunks=[message(ending, flags=END)]))).code == "protocol_error"


@pytest.mark.requirement("WA-73")
async def test_a_frame_that_is_too_large_is_refused_before_it_is_read() -> None:
    service = Service(chunks=[message(rows(said(1, "x" * 2_000)))[:100]], stays_open=True)
    assert (await failure(service, max_frame_bytes=1_000)).code == "resource_exhausted"


@pytest.mark.requirement("WA-62", "WA-73")
async def test_a_frame_that_is_too_large_is_not_asked_for_again() -> None:
    service = Service(chunks=[message(rows(said(1, "x" * 2_000))), end()])
    async with source_of(service, max_frame_bytes=1_000) as source:
        with pytest.raises(WatchError) as ended:
            await anext(watch_bot(source, bot_id=BOT, session_id=SESSION, reconnecting=True))
    assert ended.value.code == "resource_exhausted"
    assert len(service.asked) == 1


@pytest.mark.requirement("WA-62", "WA-73")
@pytest.mark.parametrize(
    "url",
    ["ftp://127.0.0.1/", "127.0.0.1", "http://127.0.0.1:x/", "http://127.0.0.1/\n", "http://127.0.0.1:99999/"],
)
async def test_a_request_that_cannot_even_be_sent_is_not_tried_again(url: str) -> None:
    source = ConnectSource(url, ask_for=ask_for)
    with pytest.raises(WatchError) as ended:
        await anext(watch_bot(source, bot_id=BOT, session_id=SESSION, reconnecting=True))
    assert ended.value.code == "invalid_argument"


@pytest.mark.requirement("WA-62", "WA-73")
@pytest.mark.parametrize("headers", [{"authorization": "Bearer €"}, {"x": "é"}, {"x": None}, {"é": "x"}])
async def test_a_header_that_cannot_be_sent_is_not_tried_again(headers: Any) -> None:  # noqa: ANN401
    source = ConnectSource("http://127.0.0.1:1/", ask_for=ask_for, headers=headers)
    with pytest.raises(WatchError) as ended:
        await anext(watch_bot(source, bot_id=BOT, session_id=SESSION, reconnecting=True))
    assert ended.value.code == "invalid_argument"


@pytest.mark.requirement("WA-62", "WA-73")
@pytest.mark.parametrize("asked", [{"x": float("nan")}, {"x": {1}}, [5]], ids=str)
async def test_a_message_that_is_no_json_object_is_not_sent(asked: Any) -> None:  # noqa: ANN401
    source = ConnectSource(URL, ask_for=lambda *_: asked)
    with pytest.raises(WatchError) as ended:
        await anext(watch_bot(source, bot_id=BOT, session_id=SESSION, reconnecting=True))
    assert ended.value.code == "invalid_argument"


@pytest.mark.requirement("WA-70", "WA-73")
@pytest.mark.parametrize("last", [message(b"x" * 1_001), message(b"x" * 1_000_000), message(b"{", flags=COMPRESSED)])
async def test_what_comes_before_a_bad_envelope_comes_however_the_bytes_are_cut(last: bytes) -> None:
    stream = message(rows(said(1))) + message(rows(said(2))) + last
    for size in (1, 7, len(stream)):
        chunks = [stream[start : start + size] for start in range(0, len(stream), size)]
        async with source_of(Service(chunks=chunks), max_frame_bytes=1_000) as source:
            watch = watch_bot(source, bot_id=BOT, session_id=SESSION)
            assert [(await anext(watch)).id for _ in range(2)] == [cursor_text(1), cursor_text(2)]
            with pytest.raises(WatchError):
                await anext(watch)


@pytest.mark.requirement("WA-73")
async def test_what_comes_after_the_end_is_not_looked_at() -> None:
    await watched(Service(chunks=[end() + message(b"x" * 2_000)]), max_frame_bytes=1_000)


@pytest.mark.requirement("WA-70", "WA-73")
@given(st.lists(st.integers(0, 14), max_size=6), st.data())
def test_envelopes_at_the_limit_are_the_same_however_the_bytes_are_cut(sizes: list[int], data: st.DataObject) -> None:
    stream = b"".join(envelope(b"x" * size, flags=size % 4) for size in sizes)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    fit = next((index for index, size in enumerate(sizes) if size > 10), None)
    decoder, found = EnvelopeDecoder(max_bytes=10), list[bytes]()
    refused = False
    try:
        for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True):
            found.extend(each.data for each in decoder.feed(stream[start:stop]))
    except WatchError:
        refused = True
    assert found == [b"x" * size for size in sizes[:fit]]
    assert refused is (fit is not None)


@pytest.mark.requirement("WA-61", "WA-65", "WA-73")
@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (401, b'{"code":"unauthenticated","message":"who?"}', "unauthenticated"),
        (404, b'{"code":"not_found"}', "not_found"),
        (400, b"<html>", "internal"),
        (401, b"", "unauthenticated"),
        (403, b"[]", "permission_denied"),
        (404, b"\xff", "unimplemented"),
        (429, b"", "unavailable"),
        (502, b"", "unavailable"),
        (503, b"x" * 100_000, "unavailable"),
        (418, b"", "unknown"),
        (302, b"", "unknown"),
    ],
)
async def test_a_refusal_has_the_code_of_its_body_or_of_its_status(status: int, body: bytes, code: str) -> None:
    assert (await failure(Service(status=status, chunks=[body], content_type="application/json"))).code == code


@pytest.mark.requirement("WA-73")
async def test_an_answer_that_is_no_stream_is_against_the_protocol() -> None:
    assert (await failure(Service(chunks=[b"<html>"], content_type="text/html"))).code == "protocol_error"


@pytest.mark.requirement("WA-61", "WA-73")
async def test_a_service_that_is_not_there_is_unavailable() -> None:
    server = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    source = ConnectSource(f"http://127.0.0.1:{port}/", ask_for=ask_for)
    with pytest.raises(WatchError) as ended:
        await anext(watch_bot(source, bot_id=BOT))
    assert ended.value.code == "unavailable"


@pytest.mark.requirement("WA-61", "WA-73")
async def test_a_service_that_falls_silent_has_stalled() -> None:
    service = Service(chunks=[message({"connected": {}})], stays_open=True)
    with passing_time() as time:
        async with source_of(service) as source, watch_bot(source, bot_id=BOT, session_id=SESSION) as watch:
            assert (await anext(watch)).type == "connected"
            step = asyncio.ensure_future(anext(watch))
            await time.by(0)
            await time.by(61)
            with pytest.raises(WatchError) as ended:
                await step
    assert ended.value.code == "stalled"


@pytest.mark.requirement("WA-52", "WA-61", "WA-73")
async def test_a_frame_that_says_nothing_known_here_is_a_sign_of_life() -> None:
    source = Talking()
    with passing_time() as time:
        async with source_of(source) as frames, watch_bot(frames, bot_id=BOT, session_id=SESSION) as watch:
            step = asyncio.ensure_future(anext(watch))
            for unknown in ({}, {"somethingNew": {"n": 1}}, {"rows": None}):
                await time.by(40)
                await source.say(message(unknown))
                await time.by(0)
            await time.by(40)
            assert not step.done()
            await source.say(message({"heartbeat": {}}))
            assert (await step).type == "heartbeat"


@pytest.mark.requirement("WA-18", "WA-61")
async def test_over_sse_a_cut_stream_is_one_error_and_nothing_of_the_upstream() -> None:
    service = Service(chunks=[message(rows(said(1))), end(error={"code": "internal", "message": "db at 10.0.0.7"})])
    async with source_of(service) as source:
        stream = bot_events_sse(watch_bot(source, bot_id=BOT, session_id=SESSION))
        pieces = [piece async for piece in stream]
    assert len(pieces) == 2
    assert pieces[-1] == b'event: error\ndata: {"code":"internal"}\n\n'


@pytest.mark.requirement("WA-62", "WA-73")
async def test_a_reconnecting_watch_asks_for_what_it_has_not_got() -> None:
    service = Service(chunks=[message(rows(said(1), said(2)))])
    async with source_of(service) as source:
        watch = watch_bot(source, bot_id=BOT, session_id=SESSION, reconnecting=True)
        with passing_time() as time:
            await anext(watch)
            await anext(watch)
            step = asyncio.ensure_future(anext(watch))
            await time.by(0)
            service.chunks = [message(rows(said(2), said(3))), end()]
            await time.by(30)
            assert (await step).id == cursor_text(3)
            with contextlib.suppress(StopAsyncIteration):
                await anext(watch)
    assert [json.dumps(asked["cursors"][0]["afterUpdatedSeq"]) for asked in service.asked] == ['"0"', '"2"']
