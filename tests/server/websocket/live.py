"""A real server on 127.0.0.1, with either WebSocket skin, and a bare client that shows every frame."""

from __future__ import annotations

import asyncio
import json
import socket as sockets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
import uvicorn
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as open_socket
from websockets.exceptions import ConnectionClosed

from bubble.server.app import BubbleApp, create_app
from bubble.server.settings import Settings
from bubble.server.websocket.uvicorn_skin import BubbleWebSocketProtocol
from bubble.store.base import BubbleStore

ADMIN_TOKEN = "an-admin-token-for-tests-only-0123456789"
SECONDS = 10.0

Frame = dict[str, Any]


class Peer:
    """One WebSocket of a client."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.seen: list[Frame] = []

    async def send(self, frame: Mapping[str, object] | str | bytes) -> None:
        await self.socket.send(frame if isinstance(frame, str | bytes) else json.dumps(frame))

    async def frame(self) -> Frame:
        """The next frame."""
        async with asyncio.timeout(SECONDS):
            text = await self.socket.recv()
        assert isinstance(text, str)
        frame: Frame = json.loads(text)
        self.seen.append(frame)
        return frame

    async def frame_of(self, kind: str) -> Frame:
        """The next frame of a type; those before it are in `seen`."""
        while True:
            frame = await self.frame()
            if frame["type"] == kind:
                return frame

    async def subscribe(self, thread_id: str, *, from_seq: int | None = None) -> Frame:
        """Subscribes; the `subscription_opened`."""
        bound = {} if from_seq is None else {"fromSeq": from_seq}
        await self.send({"type": "thread.subscribe", "threadId": thread_id, **bound})
        return await self.frame()

    async def append(self, thread_id: str, event: Mapping[str, object], **more: object) -> None:
        await self.send({"type": "thread.append", "threadId": thread_id, "event": event, **more})

    async def events(self, count: int) -> list[Frame]:
        """The next `count` events; any other frame is a failure."""
        frames = [await self.frame() for _ in range(count)]
        assert [frame["type"] for frame in frames] == ["thread.event"] * count, frames
        return [frame["event"] for frame in frames]

    async def settled(self) -> list[Frame]:
        """All frames that come before the answer to a frame sent now: what was asked before has then been carried out."""
        await self.send("{}")
        frames = []
        while (frame := await self.frame()) != _ANSWER_TO_NOTHING:
            frames.append(frame)
        return frames

    async def _frames_until_closed(self) -> None:
        while True:
            await self.frame()

    async def closing(self) -> tuple[int, str]:
        """Reads until the server closes: code and reason; the frames before are in `seen`."""
        with pytest.raises(ConnectionClosed) as closed:
            await self._frames_until_closed()
        assert closed.value.rcvd is not None, "the connection was cut"
        return closed.value.rcvd.code, closed.value.rcvd.reason


_ANSWER_TO_NOTHING = {
    "type": "error",
    "code": "invalid_request",
    "message": "Object missing required field `type` - at `$`.",
}


class Live:
    """A running server and its admin."""

    def __init__(self, app: BubbleApp, port: int, http: httpx2.AsyncClient) -> None:
        self.app = app
        self.port = port
        self.http = http

    async def call(self, method: str, path: str, body: object = None, *, token: str = ADMIN_TOKEN) -> Any:  # noqa: ANN401
        """The JSON answer of a request that must succeed."""
        answer = await self.http.request(method, path, json=body, headers={"Authorization": f"Bearer {token}"})
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    async def person(self, name: str, *, kind: str = "user", **token: object) -> str:
        """A new principal's bearer."""
        owner = {"ownerPrincipalId": "admin"} if kind == "bot" else {}
        await self.call("POST", "/v1/principals", {"principalId": name, "kind": kind, "displayName": name, **owner})
        return await self.token(name, **token)

    async def token(self, name: str, **token: object) -> str:
        """Another bearer of a principal."""
        minted = await self.call("POST", f"/v1/principals/{name}/tokens", token)
        return str(minted["token"])

    async def thread(self, thread_id: str, **roles: str) -> str:
        """A thread of the admin, with an open run `r` of the admin (seqs 1 and 2, after its participants')."""
        participants = [{"principalId": name, "role": role} for name, role in roles.items()]
        await self.call("POST", "/v1/threads", {"threadId": thread_id, "participants": participants})
        await self.append(thread_id, {"type": "run_started", "principalId": "admin", "runId": "r"})
        return thread_id

    async def append(self, thread_id: str, event: Mapping[str, object], *, token: str = ADMIN_TOKEN) -> Frame:
        stored: Frame = await self.call("POST", f"/v1/threads/{thread_id}/events", event, token=token)
        return stored

    async def page(self, thread_id: str, *, from_seq: int = 1) -> list[Frame]:
        page = await self.call("GET", f"/v1/threads/{thread_id}/events?fromSeq={from_seq}&limit=1000")
        events: list[Frame] = page["events"]
        return events

    @asynccontextmanager
    async def peer(self, token: str | None = ADMIN_TOKEN, *, query: str = "", **headers: str) -> AsyncIterator[Peer]:
        """A connected client; without a token, none is sent."""
        bearer = {} if token is None else {"Authorization": f"Bearer {token}"}
        async with open_socket(
            f"ws://127.0.0.1:{self.port}/v1/ws{query}",
            additional_headers={**bearer, **headers},
            max_size=None,
            max_queue=None,  # else a peer that has not read everything is deaf to the answer when it closes
            ping_interval=None,
            compression=None,
            proxy=None,
        ) as socket:
            yield Peer(socket)


@asynccontextmanager
async def serving(*, skin: str = "direct", store: BubbleStore | None = None, **options: object) -> AsyncIterator[Live]:
    """A server with these settings on a free port, with the `direct` or the plain `asgi` skin."""
    settings = Settings.model_validate(
        {"admin_token": ADMIN_TOKEN, "store": "memory:", "port": 0, "log": {"level": "error"}, **options}
    )
    app = create_app(settings, store=store)
    config = uvicorn.Config(
        app,
        port=0,
        ws=BubbleWebSocketProtocol if skin == "direct" else "websockets-sansio",
        ws_max_size=settings.limits.frame_hard_bytes,
        ws_ping_interval=None,
        lifespan="off",
        log_config=None,
        access_log=False,
    )
    listening = config.bind_socket()
    # asyncio does so only where the socket names TCP as its protocol; this one says 0, and accepted ones are like it.
    listening.setsockopt(sockets.IPPROTO_TCP, sockets.TCP_NODELAY, 1)
    port = listening.getsockname()[1]
    async with app, httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=SECONDS) as http:
        server = uvicorn.Server(config)
        config.load()
        server.lifespan = config.lifespan_class(config)
        await server.startup(sockets=[listening])
        ticking = asyncio.create_task(server.main_loop())
        try:
            yield Live(app, port, http)
        finally:
            # Nothing here waits for a tick: uvicorn looks up ten times a second, and there are hundreds of such servers.
            ticking.cancel()
            await http.aclose()
            await app.drain()
            await server.shutdown(sockets=[listening])


def part(text: str = "x", *, run_id: str = "r", by: str = "admin") -> dict[str, object]:
    """A text delta."""
    return {
        "type": "message_part",
        "principalId": by,
        "runId": run_id,
        "part": {"type": "text-delta", "id": "t", "delta": text},
        "version": "ai-sdk-v6",
    }
