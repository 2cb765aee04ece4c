"""A scripted server for the client's tests."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.client.peers import Peer, listening


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    """A WebSocket server that plays scripts; a script that fails, fails the test."""
    async with listening() as peer:
        yield peer
        peer.check()
