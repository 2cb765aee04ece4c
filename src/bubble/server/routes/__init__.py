"""The operations of the HTTP API, by what they are about."""

from __future__ import annotations

from bubble.server.operations import Operations
from bubble.server.routes import (
    credentials,
    events,
    grants,
    messages,
    pages,
    principals,
    runs,
    service,
    sessions,
    threads,
    watch,
)

__all__ = ["OPERATIONS"]

OPERATIONS = Operations()
for module in (service, threads, events, messages, watch, grants, runs, principals, credentials, sessions, pages):
    OPERATIONS.include(module.OPERATIONS)
