"""A small agent to try reef with, built on the official A2A server (`a2a-sdk`, the extra `a2a`): what it says is scripted by the prompt."""

from __future__ import annotations

from bubble.reef.mock.app import INTERFACES, create_mock_agent
from bubble.reef.mock.scripts import SCRIPTS

__all__ = ["INTERFACES", "SCRIPTS", "create_mock_agent"]
