"""pytest fixtures, there as soon as the distribution is installed. Tests that use them are asynchronous, run by anyio's plugin:

    pytestmark = pytest.mark.anyio

    async def test_a_thread_begins_with_its_owner(bubble_client: BubbleConnection) -> None:
        thread = await bubble_client.create_thread(title="A test")
        assert [event.type async for event in bubble_client.iter_events(thread.thread_id)] == ["participant_joined"]

`memory_store` is an empty store, `bubble_server` a real server on that store (`bubble.testing.server.BubbleServer`), `bubble_client` a
client of it as the admin. `bubble_server.register("alice")` gives further principals, `bubble_server.connect(alice)` their clients.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from bubble.client import BubbleConnection
    from bubble.store.base import BubbleStore
    from bubble.testing.server import BubbleServer

__all__ = ["bubble_client", "bubble_server", "memory_store"]

# Nothing of the product is imported before a test asks for it: every run of pytest loads this file.


def pytest_configure(config: pytest.Config) -> None:
    """Makes the mark of the store suite known, under which its tests name the sentences of the protocol that they show to hold."""
    config.addinivalue_line(
        "markers", "requirement(*ids): the sentences of the Bubble protocol that a test shows to hold"
    )


@pytest.fixture
async def memory_store() -> AsyncIterator[BubbleStore]:
    """An empty store in memory."""
    from bubble.store.opening import open_store

    async with await open_store("memory:") as store:
        yield store


@pytest.fixture
async def bubble_server(memory_store: BubbleStore) -> AsyncIterator[BubbleServer]:
    """A real server in this process, on `memory_store`, with the default settings."""
    from bubble.testing.server import running_server

    async with running_server(store=memory_store) as server:
        yield server


@pytest.fixture
async def bubble_client(bubble_server: BubbleServer) -> BubbleConnection:
    """A client of `bubble_server` as principal `admin`."""
    return bubble_server.admin
