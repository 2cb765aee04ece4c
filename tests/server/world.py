"""A whole server on a store in memory, with people who call it over HTTP; time stands still unless a test lets it pass."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import httpx2

from bubble.hub.tail import Tail
from bubble.protocol.jsontext import JSONValue
from bubble.protocol.resources import PrincipalKind
from bubble.server.app import BubbleApp, create_app
from bubble.server.settings import Settings
from bubble.store.memory import MemoryStore
from bubble.testing.asgi import StreamingASGITransport

__all__ = ["ADMIN_TOKEN", "NOW", "URL", "Clock", "Json", "Person", "Tails", "World", "a_world", "started", "text_part"]

ADMIN_TOKEN = "t" * 40
URL = "http://127.0.0.1:3000"
NOW = 1_778_070_896_789

Json = dict[str, JSONValue]


class Clock:
    """Time as the test wants it, in milliseconds."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> int:
        return self.now

    def pass_ms(self, ms: int) -> None:
        """Lets time go by."""
        self.now += ms


@dataclass(kw_only=True)
class Person:
    """Somebody with a bearer."""

    principal_id: str
    token: str
    http: httpx2.AsyncClient

    async def get(
        self, path: str, *, expect: int | None = 200, headers: Mapping[str, str] | None = None
    ) -> httpx2.Response:
        return await self.call("GET", path, expect=expect, headers=headers)

    async def post(
        self, path: str, json: object = None, *, expect: int = 201, headers: Mapping[str, str] | None = None
    ) -> httpx2.Response:
        return await self.call("POST", path, json=json, expect=expect, headers=headers)

    async def put(self, path: str, json: object, *, expect: int = 200) -> httpx2.Response:
        return await self.call("PUT", path, json=json, expect=expect)

    async def patch(self, path: str, json: object, *, expect: int = 200) -> httpx2.Response:
        return await self.call("PATCH", path, json=json, expect=expect)

    async def delete(self, path: str, *, expect: int = 204) -> httpx2.Response:
        return await self.call("DELETE", path, expect=expect)

    async def call(
        self,
        method: str,
        path: str,
        *,
        expect: int | None,
        json: object = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx2.Response:
        """One request, whose status must be `expect` (None: any)."""
        answer = await self.http.request(
            method, path, json=json if content is None else None, content=content, headers=dict(headers or {})
        )
        assert expect is None or answer.status_code == expect, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer

    async def thread(self, **body: object) -> str:
        """A new thread of this person; its id."""
        return str((await self.post("/v1/threads", body)).json()["threadId"])

    async def append(self, thread_id: str, event: object, *, expect: int = 201) -> Json:
        """Appends one event; the answer."""
        answer: Json = (await self.post(f"/v1/threads/{thread_id}/events", event, expect=expect)).json()
        return answer

    def starts(self, run_id: str) -> Json:
        return {"type": "run_started", "principalId": self.principal_id, "runId": run_id}

    def finishes(self, run_id: str) -> Json:
        return {"type": "run_finished", "principalId": self.principal_id, "runId": run_id}

    def says(self, run_id: str, text: str = "hi") -> Json:
        return text_part(self.principal_id, run_id, text)

    def part(self, run_id: str, part: Mapping[str, JSONValue], *, version: str = "ai-sdk-v6") -> Json:
        """A `message_part`."""
        of_run: Json = {"principalId": self.principal_id, "runId": run_id}
        return {"type": "message_part", **of_run, "part": dict(part), "version": version}

    def message(self, run_id: str, text: str = "hi") -> list[JSONValue]:
        """A run that says one text: four events."""
        return [
            self.starts(run_id),
            self.part(run_id, {"type": "text-start", "id": "1"}),
            self.says(run_id, text),
            self.finishes(run_id),
        ]


def text_part(principal_id: str, run_id: str, text: str) -> Json:
    """A `message_part` with a bit of text."""
    return {
        "type": "message_part",
        "principalId": principal_id,
        "runId": run_id,
        "part": {"type": "text-delta", "id": "1", "delta": text},
        "version": "ai-sdk-v6",
    }


@dataclass(kw_only=True)
class World:
    """The server and who calls it."""

    app: BubbleApp
    store: MemoryStore
    clock: Clock
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    def __post_init__(self) -> None:
        self.admin = self.person("admin", ADMIN_TOKEN)
        self.nobody = self.client()

    async def __aenter__(self) -> Self:
        await self.stack.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stack.__aexit__(kind, error, trace)

    def client(self, **headers: str) -> httpx2.AsyncClient:
        """A client without a bearer."""
        client = httpx2.AsyncClient(transport=StreamingASGITransport(self.app), base_url=URL, headers=headers)
        self.stack.push_async_callback(client.aclose)
        return client

    def person(self, principal_id: str, token: str) -> Person:
        return Person(principal_id=principal_id, token=token, http=self.client(Authorization=f"Bearer {token}"))

    async def register(
        self, principal_id: str, kind: PrincipalKind = "user", *, owner: str | None = None, role: str = "user"
    ) -> None:
        body: Json = {
            "principalId": principal_id,
            "kind": kind,
            "displayName": principal_id.title(),
            "deploymentRole": role,
        }
        if owner is not None:
            body["ownerPrincipalId"] = owner
        await self.admin.post("/v1/principals", body)

    async def user(self, principal_id: str, *, role: str = "user") -> Person:
        """A new user with a token that no other bearer stands behind."""
        await self.register(principal_id, role=role)
        return await self.login(principal_id)

    async def bot(self, principal_id: str, *, owner: Person) -> Person:
        """A new bot with a token."""
        await self.register(principal_id, "bot", owner=owner.principal_id)
        return await self.login(principal_id)

    async def login(self, principal_id: str, **body: object) -> Person:
        """The principal with a new token, narrowed or limited by `body`."""
        minted = (await self.admin.post(f"/v1/principals/{principal_id}/tokens", body)).json()
        return self.person(principal_id, minted["token"])


class Tails:
    """Lets a test wait until the hub of a world follows so many threads."""

    def __init__(self, world: World) -> None:
        self._hub = world.app.services.hub
        self._changed = asyncio.Event()
        hold, release = self._hub.hold_tail, self._hub.release_tail

        def held(thread_id: str) -> Tail:
            self._changed.set()
            return hold(thread_id)

        def released(tail: Tail) -> None:
            release(tail)
            self._changed.set()

        self._hub.hold_tail = held  # type: ignore[method-assign]
        self._hub.release_tail = released  # type: ignore[method-assign]

    async def are(self, count: int) -> None:
        """Returns once there are `count` tails."""
        async with asyncio.timeout(5):
            while self._hub.statistics().tails != count:
                self._changed.clear()
                await self._changed.wait()


@asynccontextmanager
async def a_world(**settings: object) -> AsyncIterator[World]:
    """A running server with these settings."""
    clock = Clock()
    store = MemoryStore(clock=clock, run_integrity=settings.get("run_integrity", "strict"))  # type: ignore[arg-type]
    values = {"admin_token": ADMIN_TOKEN, "log": {"requests": False}, **settings}
    app = create_app(Settings(**values), store=store, clock=clock)  # type: ignore[arg-type]
    async with store, app, World(app=app, store=store, clock=clock) as world:
        yield world


@asynccontextmanager
async def started(app: BubbleApp) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of an application that somebody else made."""
    async with app, httpx2.AsyncClient(transport=StreamingASGITransport(app), base_url=URL) as client:
        yield client
