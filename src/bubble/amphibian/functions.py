"""A plain function as an agent."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import TypeAlias

from bubble.amphibian.agents import Reply, Turn

__all__ = ["AnswerFunction", "FunctionAgent"]

AnswerFunction: TypeAlias = Callable[[Turn], "AsyncGenerator[str, None] | Awaitable[str | None] | str | None"]
"""Gives the answer: pieces of text as they come (an async generator), or the whole of it (a coroutine function or a plain one)."""


class FunctionAgent:
    """An agent whose answers a function gives. A plain function must not take long: it holds up every thread."""

    def __init__(self, answer: AnswerFunction) -> None:
        self._answer = answer

    async def respond(self, turn: Turn, reply: Reply) -> None:
        """Says what the function gives, piece by piece."""
        given = self._answer(turn)
        if isinstance(given, AsyncGenerator):
            async with aclosing(given) as pieces:  # cut off in the middle, it still gets to its own `finally`
                async for piece in pieces:
                    await reply.run.text(piece)
            return
        whole = await given if inspect.isawaitable(given) else given
        if whole:
            await reply.run.text(whole)
