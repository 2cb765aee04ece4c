"""A world for a test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from bubble.testing.server import BubbleServer
from tests.amphibian.world import World


@pytest.fixture
async def world(bubble_server: BubbleServer) -> AsyncIterator[World]:
    """A server with Alice and her bot."""
    async with World.of(bubble_server) as world:
        yield world
