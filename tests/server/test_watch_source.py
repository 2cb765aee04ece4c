"""The threads of a server in one's own application, as a source of frames: the same events as over HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Mount, Route

from bubble import bot_events_sse, create_app, watch_bot
from bubble.protocol.sse import SseDecoder, SseEvent
from bubble.server.app import BubbleApp
from bubble.server.settings import Settings
from bubble.server.watching import ThreadSource, source
from bubble.testing.asgi import StreamingASGITransport
from bubble.watch import WatchError
from bubble.watch.events import WatchEvent
from tests.server.streams import streaming
from tests.server.world import Person, World

pytestmark = pytest.mark.anyio


@pytest.fixture
async def thread(world: World, alice: Person) -> str:
    """A thread on which a bot has said and done something."""
    bot = await world.bot("helper", owner=alice)
    thread_id = await alice.thread(participants=[{"principalId": "helper"}])
    for event in (*alice.message("q", "Who are you?"),):
        await alice.append(thread_id, event)
    for event in bot.message("r", "A bot."):
        await bot.append(thread_id, event)
    await bot.append(thread_id, bot.starts("s"))
    return thread_id


async def first(events: AsyncIterator[Any], count: int) -> list[Any]:
    async with asyncio.timeout(5):
        return [await anext(events) for _ in range(count)]


def without_stream_id(events: list[SseEvent]) -> list[tuple[str, str, object]]:
    told = [(event.event, event.id, json.loads(event.data)) for event in events]
    told[0][2].pop("streamId")
    return told


@pytest.mark.requirement("WA-01", "WA-92")
async def test_it_gives_the_events_that_the_route_gives(world: World, alice: Person, thread: str) -> None:
    async with streaming(alice, f"/v1/bots/helper/events?sessionId={thread}") as stream:
        over_http = await stream.take(6)
    async with watch_bot(ThreadSource(world.app), bot_id="helper", session_id=thread) as watch:
        pieces = await first(aiter(bot_events_sse(watch)), 6)
    assert without_stream_id(SseDecoder().feed(b"".join(pieces))) == without_stream_id(over_http)
    assert over_http[-1].event == "message"


@pytest.mark.requirement("WA-31", "WA-80", "WA-92")
async def test_it_goes_on_from_a_cursor_and_lives_on(world: World, alice: Person, thread: str) -> None:
    app = ThreadSource(world.app)
    async with watch_bot(app, bot_id="helper", session_id=thread) as watch:
        last: WatchEvent = (await first(watch, 6))[-1]
    async with watch_bot(app, bot_id="helper", session_id=thread, resume_from=last.id) as watch:
        types = [event.type for event in await first(watch, 3)]
        assert types == ["connected", "agent.state", "bot.updated"]
        for event in alice.message("live", "now"):
            await alice.append(thread, event)
        entry: WatchEvent = (await first(watch, 1))[0]
    assert entry.type == "entry"
    assert (entry.data.entry_id, entry.data.replay) == ("live", False)


@pytest.mark.requirement("WA-82", "WA-84", "WA-92")
@pytest.mark.parametrize(
    ("bot", "session", "code"),
    [
        ("helper", "", "invalid_argument"),
        ("alice", "here", "not_found"),
        ("x", "here", "not_found"),
        ("helper", "x", "not_found"),
    ],
)
async def test_what_cannot_be_watched_is_an_error_of_the_watch(
    world: World, thread: str, bot: str, session: str, code: str
) -> None:
    watch = watch_bot(ThreadSource(world.app), bot_id=bot, session_id=session.replace("here", thread))
    with pytest.raises(WatchError) as refused:
        await first(watch, 3)
    assert refused.value.code == code


@pytest.mark.requirement("WA-03", "WA-92")
async def test_its_silence_is_broken_by_heartbeats(world: World, thread: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert source.HEARTBEAT_SECONDS * 2 < 60
    monkeypatch.setattr(source, "HEARTBEAT_SECONDS", 0.01)
    async with watch_bot(ThreadSource(world.app), bot_id="helper", session_id=thread) as watch:
        async with asyncio.timeout(5):
            async for event in watch:
                if event.type == "heartbeat":
                    break


@pytest.mark.requirement("WA-61", "WA-92")
async def test_a_server_that_stops_ends_it_in_a_way_that_can_be_waited_for(world: World, thread: str) -> None:
    watch = watch_bot(ThreadSource(world.app), bot_id="helper", session_id=thread)
    await first(watch, 6)
    await world.app.services.watches.close()
    with pytest.raises(WatchError) as ended:
        await first(watch, 1)
    assert ended.value.code == "unavailable"


def application(bubble: BubbleApp) -> Starlette:
    threads = ThreadSource(bubble)

    async def live(request: Request) -> StreamingResponse:
        events = watch_bot(threads, **request.path_params, resume_from=request.headers.get("last-event-id"))
        stream = bot_events_sse(events)
        return StreamingResponse(stream, headers=dict(stream.headers))

    return Starlette(routes=[Route("/live/{bot_id}/{session_id}", live), Mount("/bubble", bubble)])


@pytest.mark.requirement("WA-91", "WA-92")
async def test_ten_lines_beside_a_mounted_server_show_a_bot_to_everybody() -> None:
    bubble = create_app(Settings(store="memory:", admin_token="t" * 40, log={"requests": False}))
    transport = StreamingASGITransport(application(bubble))
    headers = {"Authorization": f"Bearer {'t' * 40}"}
    async with bubble, httpx2.AsyncClient(transport=transport, base_url="http://app") as http:
        bot = {"principalId": "helper", "kind": "bot", "displayName": "H", "ownerPrincipalId": "admin"}
        await http.post("/bubble/v1/principals", json=bot, headers=headers)
        await http.post("/bubble/v1/threads", json={"threadId": "t"}, headers=headers)
        async with http.stream("GET", "/live/helper/t") as answer:
            assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
            decoder = SseDecoder()
            async for piece in answer.aiter_raw():
                if any(event.event == "entry" for event in decoder.feed(piece)):
                    break
