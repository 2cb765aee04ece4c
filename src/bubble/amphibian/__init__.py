"""Amphibian: the runtime of connectors, which let an agent take part in threads. Knows the client and the assembler."""

from __future__ import annotations

from bubble.amphibian.agents import (
    Agent,
    AgentFailed,
    Cancellable,
    FilePart,
    Reply,
    Resumable,
    Session,
    TakesToolResults,
    ToolResult,
    Turn,
)
from bubble.amphibian.backlog import BacklogPolicy
from bubble.amphibian.config import ConfigError, read_config
from bubble.amphibian.connector import Connector
from bubble.amphibian.functions import FunctionAgent
from bubble.amphibian.launcher import host, launch, run_until_signalled
from bubble.amphibian.options import ConnectorConfig, Section
from bubble.amphibian.store import AmphibianStore

__all__ = [
    "Agent",
    "AgentFailed",
    "AmphibianStore",
    "BacklogPolicy",
    "Cancellable",
    "ConfigError",
    "Connector",
    "ConnectorConfig",
    "FilePart",
    "FunctionAgent",
    "Reply",
    "Resumable",
    "Section",
    "Session",
    "TakesToolResults",
    "ToolResult",
    "Turn",
    "host",
    "launch",
    "read_config",
    "run_until_signalled",
]
