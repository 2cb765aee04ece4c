"""The live server of these tests, once per skin."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.server.websocket.live import Live, serving


@pytest.fixture(params=["direct", "asgi"])
async def live(request: pytest.FixtureRequest) -> AsyncIterator[Live]:
    async with serving(skin=request.param) as started:
        yield started
