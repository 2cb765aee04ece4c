"""Fixtures of the tests of the server."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.server.world import Person, World, a_world


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("BUBBLE_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """A server with nobody but its admin."""
    async with a_world() as it:
        yield it


@pytest.fixture
async def alice(world: World) -> Person:
    """A user."""
    return await world.user("alice")


@pytest.fixture
async def bob(world: World) -> Person:
    """Another user."""
    return await world.user("bob")
