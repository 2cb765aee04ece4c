"""The application inside another one, on a store that somebody else opened, and started by whatever means."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.types import Message

from bubble.protocol.errors import InvalidRequest
from bubble.server.app import BubbleApp, create_app
from bubble.server.settings import Settings
from bubble.store.memory import MemoryStore
from bubble.testing.asgi import StreamingASGITransport
from tests.server.world import ADMIN_TOKEN, URL, World

pytestmark = pytest.mark.anyio

BEARER = {"Authorization": f"Bearer {ADMIN_TOKEN}"}


def an_app(**settings: object) -> BubbleApp:
    values = {"store": "memory:", "admin_token": ADMIN_TOKEN, **settings}
    return create_app(Settings(**values))  # type: ignore[arg-type]


async def test_it_is_mounted_under_a_prefix(world: World) -> None:
    outer = Starlette(routes=[Mount("/chat", app=world.app)])
    async with httpx2.AsyncClient(transport=StreamingASGITransport(outer), base_url=URL, headers=BEARER) as client:
        assert (await client.get("/chat/v1/whoami")).json()["principalId"] == "admin"
        assert (await client.post("/chat/v1/threads", json={})).status_code == 201
        assert (await client.get("/chat/nowhere")).json()["code"] == "not_found"
        assert (await client.get("/chat/docs")).status_code == 200
        assert (await client.put("/chat/v1/threads")).status_code == 405


async def test_a_host_starts_and_stops_it_in_its_own_lifespan() -> None:
    inner = an_app()

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with inner:
            yield

    outer = Starlette(routes=[Mount("/", app=inner)], lifespan=lifespan)
    async with outer.router.lifespan_context(outer):
        transport = StreamingASGITransport(outer)
        async with httpx2.AsyncClient(transport=transport, base_url=URL, headers=BEARER) as client:
            assert (await client.get("/v1/whoami")).status_code == 200
    assert inner.state == "stopped"


async def test_it_starts_and_stops_by_the_lifespan_of_asgi() -> None:
    app = an_app()
    to_app: asyncio.Queue[Message] = asyncio.Queue()
    from_app: asyncio.Queue[Message] = asyncio.Queue()
    running = asyncio.create_task(app({"type": "lifespan"}, to_app.get, from_app.put))
    async with asyncio.timeout(5):
        await to_app.put({"type": "lifespan.startup"})
        assert await from_app.get() == {"type": "lifespan.startup.complete"}
        assert app.state == "serving"
        await to_app.put({"type": "lifespan.shutdown"})
        assert await from_app.get() == {"type": "lifespan.shutdown.complete"}
        await running


async def test_a_start_that_fails_says_why() -> None:
    app = an_app(store="nonsense:")
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "lifespan.startup"}

    async def send(message: Message) -> None:
        sent.append(message)

    with pytest.raises(InvalidRequest):
        await app({"type": "lifespan"}, receive, send)
    assert sent[0]["type"] == "lifespan.startup.failed"
    assert "nonsense:" in sent[0]["message"]


async def test_a_store_that_was_given_stays_open() -> None:
    async with MemoryStore() as store:
        async with create_app(Settings(admin_token=ADMIN_TOKEN), store=store):
            pass
        await store.ping()


async def test_it_leaves_no_task_behind() -> None:
    before = asyncio.all_tasks()
    async with an_app():
        assert len(asyncio.all_tasks()) > len(before)
    assert asyncio.all_tasks() == before


async def test_stopping_twice_is_stopping_once() -> None:
    app = an_app()
    await app.startup()
    await app.shutdown()
    await app.shutdown()


async def test_using_it_before_it_was_started_is_a_clear_error() -> None:
    app = an_app()
    with pytest.raises(RuntimeError, match="not started"):
        _ = app.services
    async with httpx2.AsyncClient(transport=StreamingASGITransport(app), base_url=URL) as client:
        with pytest.raises(RuntimeError, match="not started"):
            await client.get("/healthz")


async def test_a_socket_on_another_path_is_turned_away(world: World) -> None:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        sent.append(message)

    await world.app({"type": "websocket", "path": "/v1/nowhere", "headers": []}, receive, send)
    assert [message["type"] for message in sent] == ["websocket.close"]
