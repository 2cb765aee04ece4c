"""In an application of one's own: ten lines, and the source is let go when the browser is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, TypeAlias

import httpx2
import pytest
from fastapi import FastAPI, Header, HTTPException
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from bubble.protocol.sse import SseDecoder
from bubble.testing.asgi import StreamingASGITransport
from bubble.watch import WatchError, WatchSource, bot_events_sse, watch_bot
from tests.watch.catalogue import BOT, cursor_text, rows, said
from tests.watch.upstreams import Held

pytestmark = pytest.mark.anyio


Application: TypeAlias = Callable[[WatchSource], Starlette]


def in_starlette(source: WatchSource) -> Starlette:
    async def bot_events(request: Request) -> Response:
        bot_id, session = request.path_params["bot_id"], request.query_params.get("session", "")
        try:
            events = watch_bot(
                source, bot_id=bot_id, session_id=session, resume_from=request.headers.get("last-event-id")
            )
        except WatchError as refused:
            return JSONResponse({"detail": refused.code}, status_code=400)
        stream = bot_events_sse(events)
        return StreamingResponse(stream, headers=dict(stream.headers))

    return Starlette(routes=[Route("/bots/{bot_id}/events", bot_events)])


def in_fastapi(source: WatchSource) -> Starlette:
    app = FastAPI()

    @app.get("/bots/{bot_id}/events")
    async def bot_events(
        bot_id: str, session: str = "", last_event_id: Annotated[str | None, Header()] = None
    ) -> StreamingResponse:
        try:
            events = watch_bot(source, bot_id=bot_id, session_id=session, resume_from=last_event_id)
        except WatchError as refused:
            raise HTTPException(400, refused.code) from None
        stream = bot_events_sse(events)
        return StreamingResponse(stream, headers=dict(stream.headers))

    return app


def client(application: Application, source: WatchSource) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=StreamingASGITransport(application(source)), base_url="http://app")


URL = f"/bots/{BOT}/events?session=thread-1"


@pytest.mark.requirement("WA-29", "WA-32", "WA-91")
@pytest.mark.parametrize("application", [in_starlette, in_fastapi])
async def test_ten_lines_are_a_stream_that_a_browser_can_resume(application: Application) -> None:
    source = Held()
    source.put(rows(said(22), said(23, "new")), None)
    async with client(application, source) as http:
        answer = await http.get(URL, headers={"Last-Event-ID": cursor_text(22)})
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert answer.headers["x-accel-buffering"] == "no"
    events = SseDecoder().feed(answer.content)
    assert [(event.event, event.id) for event in events] == [
        ("message", cursor_text(23)),
        ("stream.closed", cursor_text(23)),  # a decoder's id sticks; the record has none
    ]


@pytest.mark.requirement("WA-91")
@pytest.mark.parametrize("application", [in_starlette, in_fastapi])
@pytest.mark.parametrize("cursor", ["yesterday", "7", cursor_text(22, session="thread-2")])
async def test_a_visitor_with_an_id_that_is_no_cursor_of_the_session_is_refused(
    application: Application, cursor: str
) -> None:
    async with client(application, Held()) as http:
        answer = await http.get(URL, headers={"Last-Event-ID": cursor})
    assert (answer.status_code, answer.json()) == (400, {"detail": "invalid_cursor"})


@pytest.mark.requirement("WA-67", "WA-91")
@pytest.mark.parametrize("application", [in_starlette, in_fastapi])
@pytest.mark.parametrize("records", [0, 1])
async def test_when_the_browser_goes_the_source_is_closed_within_a_second(
    application: Application, records: int
) -> None:
    source = Held()
    source.put(*(rows(said(number)) for number in range(1, records + 1)))
    async with client(application, source) as http, http.stream("GET", URL) as answer:
        pieces = answer.aiter_raw()
        for _ in range(records):
            await anext(pieces)
        await source.waiting.wait()
    async with asyncio.timeout(1):
        await source.let_go.wait()
