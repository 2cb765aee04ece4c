"""A world with a bot, and stages for it."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any

import httpx2
import pytest

from bubble.reef.agent import ReefAgent
from bubble.reef.client import A2AClient
from bubble.testing.server import BubbleServer
from tests.amphibian.logs import ME
from tests.amphibian.world import World
from tests.reef.stage import Stage

# Reading the machine's certificates takes longer than most of these tests.
PLAIN = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@pytest.fixture(autouse=True)
def _no_secrets_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process bridges one agent; here there are many, and what opens one of them may be any word to the next."""
    monkeypatch.setattr("bubble.reef.discretion._known", {})


@pytest.fixture
async def world(bubble_server: BubbleServer) -> AsyncIterator[World]:
    """A server with Alice and her bot."""
    async with World.of(bubble_server) as world:
        yield world


@pytest.fixture
async def make_stage(world: World) -> AsyncIterator[Callable[..., Awaitable[Stage]]]:
    """Makes threads on which the bot can be made to answer."""
    async with world.server.connect(world.bot) as bot:

        async def make(session: Mapping[str, Any] | None = None) -> Stage:
            made = await world.alice.create_thread(participants={ME: "participant"})
            return Stage(bot, made.thread_id, session=session)

        yield make


@pytest.fixture
async def reef_to() -> AsyncIterator[Callable[..., ReefAgent]]:
    """Makes agents that bridge to a URL; waits between attempts take no time."""
    async with AsyncExitStack() as stack:

        def make(url: str, **options: Any) -> ReefAgent:  # noqa: ANN401 - those of the client
            transport = httpx2.AsyncHTTPTransport(verify=PLAIN)
            agent = ReefAgent(A2AClient(url, **{"sleep": _at_once, "transport": transport, **options}))
            stack.push_async_callback(agent.close)
            return agent

        yield make


async def _at_once(seconds: float) -> None:
    del seconds
