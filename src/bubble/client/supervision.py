"""Helpers for tasks that have an owner."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import TypeVar

import anyio

__all__ = ["beside", "end_task", "finish_despite_cancellation"]

T = TypeVar("T")


async def end_task(task: asyncio.Task[None]) -> None:
    """Cancels a task and waits for its end, also where the caller is being cancelled. Raises what the task failed with."""
    task.cancel()
    with anyio.CancelScope(shield=True):
        await asyncio.wait({task})
    if not task.cancelled() and (error := task.exception()) is not None:
        raise error


@asynccontextmanager
async def beside(work: Coroutine[object, object, None]) -> AsyncIterator[asyncio.Task[None]]:
    """`work` in a task of its own for as long as the block lasts."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        await end_task(task)


async def finish_despite_cancellation(work: Coroutine[object, object, T], *, grace: float) -> T:
    """The result of `work`. If the caller is cancelled meanwhile, `work` has `grace` seconds more before the cancellation goes on."""
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        with anyio.CancelScope(shield=True):
            await asyncio.wait({task}, timeout=grace)
            if not task.done():
                task.cancel()
                await asyncio.wait({task})
        if not task.cancelled():
            task.exception()  # the cancellation is what the caller hears of
        raise
