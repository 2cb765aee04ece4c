"""One place that fans out: tails, subscriptions, connections."""

from __future__ import annotations

from bubble.hub.along import Along
from bubble.hub.connection import Connection, Sink
from bubble.hub.encodings import (
    JSON_MESSAGES,
    SEQS_ALONE,
    SERVER_SENT_EVENTS,
    WEBSOCKET_FRAMES,
    Chunk,
    Encoding,
    websocket_frame,
)
from bubble.hub.hub import Hub, HubStatistics

__all__ = [
    "JSON_MESSAGES",
    "SEQS_ALONE",
    "SERVER_SENT_EVENTS",
    "WEBSOCKET_FRAMES",
    "Along",
    "Chunk",
    "Connection",
    "Encoding",
    "Hub",
    "HubStatistics",
    "Sink",
    "websocket_frame",
]
