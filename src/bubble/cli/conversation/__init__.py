"""A thread's messages in a terminal or a pipe: what is told once and scrolls away, and what still grows."""

from __future__ import annotations

from bubble.cli.conversation.screen import Screen
from bubble.cli.conversation.telling import Conversation

__all__ = ["Conversation", "Screen"]
