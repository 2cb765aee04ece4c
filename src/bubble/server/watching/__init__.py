"""The native source of watches: a bot's session is a thread of this server."""

from __future__ import annotations

from bubble.server.watching.source import ThreadSource

__all__ = ["ThreadSource"]
