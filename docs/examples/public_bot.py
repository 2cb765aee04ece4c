"""An application of your own that shows one bot to everybody, with Bubble in it."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route

from bubble import Settings, bot_events_sse, create_app, watch_bot
from bubble.server.watching import ThreadSource
from bubble.watch import WatchError

bubble = create_app(Settings(public_url="http://127.0.0.1:8001/bubble", data="public", admin_token=os.environ["TOKEN"]))
threads = ThreadSource(bubble)


async def live(request: Request) -> Response:
    # Here your own application says who may see which bot on which thread.
    cursor = request.headers.get("last-event-id") or request.query_params.get("resumeFrom")
    try:
        events = watch_bot(threads, bot_id="guide", session_id="tour", resume_from=cursor)
    except WatchError as refused:  # the cursor is of another session, or none at all
        return JSONResponse({"code": refused.code}, status_code=400)
    stream = bot_events_sse(events)
    return StreamingResponse(stream, headers=dict(stream.headers))


async def page(request: Request) -> FileResponse:
    return FileResponse("bot.html")


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    async with bubble:
        yield


app = Starlette(
    routes=[Route("/", page), Route("/live", live), Mount("/bubble", app=bubble)],
    lifespan=lifespan,
)
