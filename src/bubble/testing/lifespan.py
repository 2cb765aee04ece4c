"""ASGI's lifespan, for applications that are driven without a server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, MutableMapping
from contextlib import asynccontextmanager

from starlette.types import ASGIApp, Message

__all__ = ["lifespan_of"]


class _Lifespan:
    """One task runs the application's lifespan from its start to its end, as a server would."""

    def __init__(self, app: ASGIApp) -> None:
        self.state: dict[str, object] = {}
        self._app = app
        self._to_app: asyncio.Queue[Message] = asyncio.Queue()
        self._from_app: asyncio.Queue[Message] = asyncio.Queue()

    async def run(self) -> None:
        scope: MutableMapping[str, object] = {
            "type": "lifespan",
            "asgi": {"version": "3.0", "spec_version": "2.0"},
            "state": self.state,
        }
        await self._app(scope, self._to_app.get, self._from_app.put)

    async def step(self, name: str, task: asyncio.Task[None]) -> None:
        """Startup or shutdown. An application without lifespan fails or returns at once, which is allowed."""
        self._to_app.put_nowait({"type": f"lifespan.{name}"})
        answer = asyncio.create_task(self._from_app.get())
        await asyncio.wait({answer, task}, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            answer.cancel()
            return
        message = answer.result()
        if message["type"].endswith(".failed"):
            raise RuntimeError(message.get("message") or f"The application failed at {name}.")


@asynccontextmanager
async def lifespan_of(app: ASGIApp) -> AsyncIterator[dict[str, object]]:
    """Starts the application and stops it at the end; gives the state that its requests get.

    Raises `RuntimeError` if it fails to start or to stop. An application that knows no lifespan is left as it is.
    """
    lifespan = _Lifespan(app)
    task = asyncio.create_task(lifespan.run())
    try:
        await lifespan.step("startup", task)
        yield lifespan.state
        if not task.done():
            await lifespan.step("shutdown", task)
    finally:
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled():
            task.exception()
