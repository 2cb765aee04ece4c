"""WebSockets to an application without a network."""

from __future__ import annotations

import asyncio

import anyio
import pytest
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from bubble.client import Socket, SocketClosed
from bubble.protocol.errors import Forbidden, NotFound, RateLimited
from bubble.testing.asgi_sockets import asgi_connector

pytestmark = pytest.mark.anyio

URL = "ws://app.test/v1/ws?ticket=a%20b"


async def opened(app: ASGIApp, **options: object) -> Socket:
    connect = asgi_connector(app, **options)  # type: ignore[arg-type]
    return await connect(URL, {"Authorization": "Bearer t"})


async def echo(socket: WebSocket) -> None:
    await socket.accept()
    try:
        while True:
            await socket.send_text(await socket.receive_text())
    except WebSocketDisconnect:
        pass


ECHO = Starlette(routes=[WebSocketRoute("/v1/ws", echo)])


async def test_text_goes_both_ways() -> None:
    socket = await opened(ECHO)
    await socket.send("grüße".encode())
    with anyio.fail_after(10):
        assert (await socket.receive()).decode() == "grüße"
    await socket.close()


async def test_the_application_sees_the_handshake_as_a_server_would_show_it() -> None:
    async def tell(socket: WebSocket) -> None:
        await socket.accept()
        await socket.send_text(f"{socket.url.path} {socket.query_params['ticket']} {socket.headers['authorization']}")
        await socket.send_text(f"{socket.headers['host']} {socket.state.from_}")
        await socket.close()

    app = Starlette(routes=[WebSocketRoute("/v1/ws", tell)])
    socket = await opened(app, state={"from_": "lifespan"})
    assert await socket.receive() == b"/v1/ws a b Bearer t"
    assert await socket.receive() == b"app.test lifespan"
    await socket.close()


async def test_the_applications_close_code_arrives_after_what_it_sent() -> None:
    async def leave(socket: WebSocket) -> None:
        await socket.accept()
        await socket.send_text("last")
        await socket.close(4401, "gone")

    socket = await opened(Starlette(routes=[WebSocketRoute("/v1/ws", leave)]))
    assert await socket.receive() == b"last"
    for _ in range(2):
        with pytest.raises(SocketClosed) as closed:
            await socket.receive()
        assert (closed.value.code, closed.value.reason) == (4401, "gone")
    with pytest.raises(SocketClosed):
        await socket.send(b"too late")
    await socket.close()


async def test_closing_is_a_disconnect_for_the_application() -> None:
    codes: list[int] = []

    async def wait(socket: WebSocket) -> None:
        await socket.accept()
        try:
            await socket.receive_text()
        except WebSocketDisconnect as gone:
            codes.append(gone.code)

    socket = await opened(Starlette(routes=[WebSocketRoute("/v1/ws", wait)]))
    await socket.close()
    await socket.close()
    assert codes == [1000]
    with pytest.raises(SocketClosed):
        await socket.receive()


@pytest.mark.parametrize(
    ("response", "kind"),
    [
        (Response(status_code=404), NotFound),
        (Response(status_code=429, headers={"Retry-After": "9"}), RateLimited),
    ],
)
async def test_a_handshake_can_be_refused_with_a_status(response: Response, kind: type[Exception]) -> None:
    async def refuse(socket: WebSocket) -> None:
        await socket.send_denial_response(response)

    with pytest.raises(kind) as refused:
        await opened(Starlette(routes=[WebSocketRoute("/v1/ws", refuse)]))
    assert getattr(refused.value, "retry_after", 9) == 9


async def test_a_handshake_that_is_closed_is_forbidden() -> None:
    async def refuse(socket: WebSocket) -> None:
        await socket.close()

    with pytest.raises(Forbidden):
        await opened(Starlette(routes=[WebSocketRoute("/v1/ws", refuse)]))


async def test_what_the_application_raises_reaches_the_reader() -> None:
    async def broken(socket: WebSocket) -> None:
        await socket.accept()
        await socket.receive_text()
        raise LookupError("no such row")

    socket = await opened(Starlette(routes=[WebSocketRoute("/v1/ws", broken)]))
    await socket.send(b"x")
    with pytest.raises(LookupError, match="no such row"), anyio.fail_after(10):
        await socket.receive()
    await socket.close()


async def test_a_reader_that_does_not_read_holds_the_application_up() -> None:
    sent = 0

    async def flood(socket: WebSocket) -> None:
        nonlocal sent
        await socket.accept()
        for number in range(1_000):
            await socket.send_text(str(number))
            sent += 1

    socket = await opened(Starlette(routes=[WebSocketRoute("/v1/ws", flood)]))
    for _ in range(100):
        await asyncio.sleep(0)
    assert sent < 50
    assert [int(await socket.receive()) for _ in range(1_000)] == list(range(1_000))
    await socket.close()


async def test_an_application_that_takes_no_notice_of_the_disconnect_is_cancelled_after_the_grace() -> None:
    async def deaf(_: Scope, __: Receive, send: Send) -> None:
        await send({"type": "websocket.accept"})
        await anyio.sleep_forever()

    socket = await opened(deaf, grace=0.01)
    with anyio.fail_after(10):
        await socket.close()


async def test_an_application_that_just_ends_has_broken_the_connection_off() -> None:
    async def end(socket: WebSocket) -> None:
        await socket.accept()

    socket = await opened(Starlette(routes=[WebSocketRoute("/v1/ws", end)]))
    with pytest.raises(SocketClosed) as closed, anyio.fail_after(10):
        await socket.receive()
    assert closed.value.code == 1006
    await socket.close()
