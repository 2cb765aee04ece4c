"""Requests to an application without a network."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import anyio
import httpx2
import pytest
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from bubble.testing.asgi import StreamingASGITransport

pytestmark = pytest.mark.anyio

Handler = Callable[[Request], Awaitable[Response]]


def client(app: ASGIApp | Handler, **options: object) -> httpx2.AsyncClient:
    transport = StreamingASGITransport(app, **options)  # type: ignore[arg-type]
    return httpx2.AsyncClient(transport=transport, base_url="http://app.test")


def serving(handler: Handler) -> Starlette:
    return Starlette(routes=[Route("/{rest:path}", handler, methods=["GET", "POST", "HEAD"])])


async def test_the_application_sees_the_request_as_a_server_would_show_it() -> None:
    async def echo(request: Request) -> Response:
        return JSONResponse(
            {
                "method": request.method,
                "path": request.url.path,
                "query": request.url.query,
                "host": request.headers["host"],
                "client": request.client.host if request.client else None,
                "body": (await request.body()).decode(),
            },
            status_code=201,
        )

    async with client(serving(echo)) as http:
        answer = await http.post("/a%2Fb/ü?x=1&y=%20", content=b"hello")
    assert answer.status_code == 201
    assert answer.json() == {
        "method": "POST",
        "path": "/a/b/ü",
        "query": "x=1&y=%20",
        "host": "app.test",
        "client": "127.0.0.1",
        "body": "hello",
    }


async def test_a_mounted_application_gets_its_root_path() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse(f"{scope['root_path']} {scope['path']} {scope['state']['from']}")(scope, receive, send)

    async with client(app, root_path="/sub", state={"from": "lifespan"}) as http:
        assert (await http.get("/x")).text == "/sub /sub/x lifespan"


async def test_a_body_arrives_while_the_application_still_sends_it() -> None:
    go_on = asyncio.Event()

    async def stream(_: Request) -> Response:
        async def body() -> AsyncIterator[bytes]:
            yield b"data: 1\n\n"
            await go_on.wait()
            yield b"data: 2\n\n"

        return StreamingResponse(body(), media_type="text/event-stream")

    async with client(serving(stream)) as http, http.stream("GET", "/") as answer:
        chunks = answer.aiter_raw()
        with anyio.fail_after(10):
            assert await anext(chunks) == b"data: 1\n\n"
            go_on.set()
            assert [chunk async for chunk in chunks] == [b"data: 2\n\n"]


async def test_leaving_a_stream_is_a_disconnect_for_the_application() -> None:
    ended = asyncio.Event()

    async def stream(_: Request) -> Response:
        async def body() -> AsyncIterator[bytes]:
            try:
                yield b"first"
                await anyio.sleep_forever()
            finally:
                ended.set()

        return StreamingResponse(body())

    transport = StreamingASGITransport(serving(stream))
    async with httpx2.AsyncClient(transport=transport, base_url="http://app.test") as http:
        async with http.stream("GET", "/") as answer:
            assert await anext(answer.aiter_raw()) == b"first"
            assert transport.open_exchanges == 1
        with anyio.fail_after(10):
            await ended.wait()
        assert transport.open_exchanges == 0


async def test_a_reader_that_does_not_read_holds_the_application_up() -> None:
    sent = 0

    async def stream(_: Request) -> Response:
        async def body() -> AsyncIterator[bytes]:
            nonlocal sent
            for _number in range(1_000):
                yield b"x"
                sent += 1

        return StreamingResponse(body())

    async with client(serving(stream)) as http, http.stream("GET", "/") as answer:
        for _ in range(100):
            await asyncio.sleep(0)
        assert sent < 50
        assert len(await answer.aread()) == 1_000


async def test_an_application_that_takes_no_notice_of_the_disconnect_is_cancelled_after_the_grace() -> None:
    async def deaf(_: Scope, __: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x", "more_body": True})
        await anyio.sleep_forever()

    with anyio.fail_after(10):
        async with client(deaf, grace=0.01) as http, http.stream("GET", "/") as answer:
            assert await anext(answer.aiter_raw()) == b"x"


async def test_a_request_that_is_cancelled_ends_at_the_application_too() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def slow(_: Scope, receive: Receive, __: Send) -> None:
        begun.set()
        while (await receive())["type"] != "http.disconnect":
            pass
        ended.set()

    async with client(slow) as http:
        task = asyncio.create_task(http.get("/"))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert ended.is_set()


async def test_an_answer_that_takes_too_long_is_a_read_timeout() -> None:
    async def silent(_: Scope, receive: Receive, __: Send) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    async with client(silent) as http:
        with pytest.raises(httpx2.ReadTimeout):
            await http.get("/", timeout=0.01)


async def test_what_the_application_raises_reaches_the_test() -> None:
    async def broken(_: Request) -> Response:
        raise LookupError("no such row")

    async with client(serving(broken)) as http:
        with pytest.raises(LookupError, match="no such row"):
            await http.get("/")


async def test_what_the_application_raises_can_be_a_500_as_on_a_server() -> None:
    async def broken(_: Scope, __: Receive, ___: Send) -> None:
        raise LookupError("no such row")

    async with client(broken, raise_app_exceptions=False) as http:
        assert (await http.get("/")).status_code == 500


async def test_what_the_application_raises_in_the_middle_reaches_the_reader() -> None:
    async def broken(_: Scope, __: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        raise LookupError("no such row")

    async with client(broken) as http, http.stream("GET", "/") as answer:
        with pytest.raises(LookupError, match="no such row"):
            await answer.aread()
    async with client(broken, raise_app_exceptions=False) as http, http.stream("GET", "/") as answer:
        with pytest.raises(httpx2.RemoteProtocolError, match="middle"):
            await answer.aread()


async def test_an_application_that_does_not_answer_is_told_on() -> None:
    async def mute(_: Scope, __: Receive, ___: Send) -> None:
        return

    async with client(mute) as http:
        with pytest.raises(RuntimeError, match="without an answer"):
            await http.get("/")


async def test_an_upload_is_passed_on_piece_by_piece() -> None:
    async def count(request: Request) -> Response:
        return JSONResponse([len(chunk) async for chunk in request.stream() if chunk])

    async def upload() -> AsyncIterator[bytes]:
        for size in (1, 2, 3):
            yield b"x" * size

    async with client(serving(count)) as http:
        assert (await http.post("/", content=upload())).json() == [1, 2, 3]


async def test_work_after_the_answer_is_waited_for() -> None:
    done = asyncio.Event()

    async def later() -> None:
        await asyncio.sleep(0)
        done.set()

    async def handler(_: Request) -> Response:
        return PlainTextResponse("now", background=BackgroundTask(later))

    async with client(serving(handler)) as http:
        assert (await http.get("/")).text == "now"
    assert done.is_set()


async def test_the_answer_to_head_has_no_body() -> None:
    async def handler(_: Request) -> Response:
        return PlainTextResponse("body")

    async with client(serving(handler)) as http:
        answer = await http.head("/")
    assert (answer.content, answer.headers["content-length"]) == (b"", "4")
