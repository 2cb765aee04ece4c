"""Peers that run for all tests that talk to them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interop.a2a.peers import running_peer
from tests.reef.conftest import make_stage, reef_to, world

__all__ = ["adk", "make_stage", "reef_to", "sdk03", "world"]


@pytest.fixture(scope="session")
def sdk03() -> Iterator[str]:
    """The official server of A2A 0.3."""
    with running_peer("sdk03.py", environment="a2a03") as url:
        yield url


@pytest.fixture(scope="session")
def adk() -> Iterator[str]:
    """Agents of Google's ADK."""
    with running_peer("adk.py", environment="adk") as url:
        yield url
