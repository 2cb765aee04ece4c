"""Reef: the bridge that lets any A2A agent take part in threads, as a bot principal. Knows amphibian, the runtime of connectors.

`attend` is all of it, from a configuration; `ReefAgent` is an agent for a `Connector` of one's own, by an `A2AClient`.
"""

from __future__ import annotations

from bubble.reef.agent import ReefAgent
from bubble.reef.client import A2AClient
from bubble.reef.running import attend
from bubble.reef.settings import ReefConfig

__all__ = ["A2AClient", "ReefAgent", "ReefConfig", "attend"]
