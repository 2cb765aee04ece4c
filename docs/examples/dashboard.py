"""The server behind a page that shows one thread: it gives the page tickets, and keeps the token to itself."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse
from starlette.routing import Route

from bubble import BubbleConnection, BubbleError


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    async with BubbleConnection(os.environ["BUBBLE_URL"], token=os.environ["BUBBLE_TOKEN"]) as app.state.bubble:
        yield


async def page(request: Request) -> FileResponse:
    return FileResponse("dashboard.html")


async def ticket(request: Request) -> JSONResponse:
    # Here your own application asks who is there, and whether they may see the thread.
    try:
        ticket = await request.app.state.bubble.mint_ticket()
    except BubbleError as problem:  # it is away, or does not take the token any longer
        return JSONResponse({"code": problem.code}, status_code=503)
    socket = os.environ["BUBBLE_URL"].replace("http", "ws", 1) + f"/v1/ws?ticket={ticket.ticket}"
    return JSONResponse({"socket": socket, "threadId": os.environ["THREAD"]}, headers={"Cache-Control": "no-store"})


app = Starlette(
    routes=[Route("/", page), Route("/ticket", ticket, methods=["POST"])],
    lifespan=lifespan,
)
