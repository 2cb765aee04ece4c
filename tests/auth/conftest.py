"""Fixtures of the tests of auth."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.auth.actors import House, a_house


@pytest.fixture
async def house() -> AsyncIterator[House]:
    """A house without an issuer."""
    async with a_house() as it:
        yield it
