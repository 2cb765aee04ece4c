"""Talking to the server that a command was aimed at."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from bubble.cli.output import note
from bubble.cli.profiles import resolve_target

if TYPE_CHECKING:
    from bubble.client import BubbleConnection
    from bubble.protocol.errors import BubbleError

__all__ = ["connected", "outage_in_words", "run_async", "take", "tell_outage"]

T = TypeVar("T")

# A person waits for an answer; a server that restarts is back by then.
_RETRY_SECONDS: Final = 5.0
# What the client would say of it on standard error where nothing else takes its log; a command says it in one sentence of its own.
_UNHEARD: Final = logging.NullHandler()


def run_async(work: Coroutine[object, object, T]) -> T:
    """The result of a command's coroutine, run on an event loop of its own; Ctrl-C cancels it cleanly."""
    logging.getLogger("bubble.client").addHandler(_UNHEARD)
    return asyncio.run(work)


@asynccontextmanager
async def connected(
    profile: str | None, *, on_outage: Callable[[BubbleError | None], None] | None = None
) -> AsyncIterator[BubbleConnection]:
    """A connection with the bearer that `profile` and the environment say (see `profiles.resolve_target`)."""
    from bubble.client import BubbleConnection

    target = resolve_target(profile)
    async with BubbleConnection(
        target.url, token=target.token, retry_for=_RETRY_SECONDS, on_outage=on_outage
    ) as bubble:
        yield bubble


def outage_in_words(problem: BubbleError | None) -> str:
    """That the server is gone, or back."""
    if problem is None:
        return "Connected again; nothing was missed."
    return f"Disconnected. {problem.message} Trying to come back…"


def tell_outage(problem: BubbleError | None) -> None:
    """Says so on standard error: for `connected`, by who stays for long."""
    note(outage_in_words(problem))


async def take(items: AsyncIterable[T], limit: int) -> list[T]:
    """The first `limit` items."""
    taken: list[T] = []
    if limit <= 0:
        return taken
    async for item in items:
        taken.append(item)
        if len(taken) == limit:
            break
    return taken
