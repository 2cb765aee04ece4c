"""The bot's events in readers that others wrote: curl, httpx2's own reader of server-sent events, and both behind a real nginx."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
from httpx2 import EventSource, ServerSentEvent

from bubble.client import BubbleConnection
from bubble.protocol.sse import KEEP_ALIVE, SseDecoder, SseEvent
from bubble.watch import RecordedSource, WatchCursor, bot_events_sse, watch_bot
from tests.faults.signals import send_signal
from tests.interop.nginx import running_site
from tests.interop.watch_stage import BOT as WATCHED
from tests.interop.watch_stage import THREAD, a_stage
from tests.server.serving import BEARER, serving
from tests.server.world import ADMIN_TOKEN
from tests.watch.catalogue import BOT, CATALOGUE, SESSION

pytestmark = pytest.mark.anyio

SECONDS = 60
needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="missing: curl")
needs_nginx = pytest.mark.skipif(shutil.which("nginx") is None, reason="missing: nginx")


class Curl:
    """`curl -N`, read as its user reads it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._decoder = SseDecoder()
        self._events: list[SseEvent] = []

    async def until(self, kind: str) -> SseEvent:
        """The next event of that type."""
        assert self._process.stdout is not None
        async with asyncio.timeout(SECONDS):
            while True:
                while self._events:
                    event = self._events.pop(0)
                    if event.event == kind:
                        return event
                data = await self._process.stdout.read(65_536)
                assert data, f"the stream ended before there was a `{kind}`"
                self._events += self._decoder.feed(data)

    async def says(self, end: str) -> SseEvent:
        """The next text that ends so."""
        while not json.loads((message := await self.until("message")).data)["text"].endswith(end):
            pass
        return message


@asynccontextmanager
async def curl(url: str, token: str, *options: str) -> AsyncIterator[Curl]:
    command = ["curl", "-sSN", "-H", f"Authorization: Bearer {token}", *options, url]
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE)
    try:
        yield Curl(process)
    finally:
        send_signal(process)
        await process.communicate()


@needs_curl
@pytest.mark.requirement("WA-32", "WA-86")
async def test_curl_follows_a_bot_and_goes_on_from_an_id() -> None:
    async with serving() as server, BubbleConnection(server.url, token=ADMIN_TOKEN) as admin, a_stage(admin) as stage:
        async with curl(server.url + stage.path, ADMIN_TOKEN) as reader, stage.speaking() as run:
            await run.text("one")
            first = await reader.says("one")
        async with stage.speaking() as run:
            await run.text("two")
        last = f"Last-Event-ID: {first.id}"
        async with curl(server.url + stage.path, ADMIN_TOKEN, "-H", last) as reader:
            texts = [json.loads((await reader.until("message")).data)["text"] for _ in range(2)]
    assert texts == ["one", "two"]  # the end of its run is a change of the first one


@needs_curl
@needs_nginx
@pytest.mark.requirement("WA-80", "WA-86")
async def test_behind_nginx_each_event_comes_at_once_and_a_restart_loses_nothing(tmp_path: Path) -> None:
    with running_site(tmp_path, BUBBLE_STREAMS__KEEP_ALIVE="500ms") as site:
        trusted = ("--cacert", str(tmp_path / "fullchain.pem"))
        admin = BubbleConnection(site.url, token=site.token, ssl_context=site.context)
        async with admin, a_stage(admin, ssl_context=site.context) as stage:
            async with curl(site.url + stage.path, site.token, *trusted) as reader:
                await reader.until("heartbeat")
                async with stage.speaking() as run:
                    for text in ("a", "b"):
                        await run.text(text)
                        await reader.says(text)
                    await run.text("c")
                    message = await reader.says("c")
                await asyncio.to_thread(site.server.stop)
                ended = await reader.until("error")
                assert json.loads(ended.data) == {"code": "unavailable"}
            await asyncio.to_thread(site.server.start)
            async with stage.speaking() as run:
                await run.text("after")
            last = f"Last-Event-ID: {message.id}"
            async with curl(site.url + stage.path, site.token, *trusted, "-H", last) as reader:
                await reader.says("after")


@pytest.mark.requirement("WA-87")
async def test_httpx2s_own_reader_agrees_event_for_event_on_a_live_stream() -> None:
    async with serving() as server, BubbleConnection(server.url, token=ADMIN_TOKEN) as admin, a_stage(admin) as stage:
        async with stage.speaking() as run:
            for number in range(50):
                await run.text(f"{number}\n\u2028\r")
        async with httpx2.AsyncClient(base_url=server.url, headers=BEARER, timeout=SECONDS) as http:
            theirs, ours = await both(http, stage.path, count=5)
    assert theirs[1:] == ours[1:]  # before that stands the name of each stream
    assert [event for event, _, _ in theirs] == ["connected", "agent.state", "entry", "entry", "message"]
    assert json.loads(theirs[-1][1])["text"] == "".join(f"{number}\n\u2028\r" for number in range(50))


@pytest.mark.requirement("WA-87")
async def test_httpx2s_own_reader_agrees_on_a_reset_a_delete_and_a_failed_turn_after_a_cursor() -> None:
    async with serving() as server, BubbleConnection(server.url, token=ADMIN_TOKEN) as admin, a_stage(admin) as stage:
        async with stage.speaking() as run:
            await run.text("before")
            await run.event("session_cleared")
            await run.text("after\u2028")
        with contextlib.suppress(RuntimeError):
            async with stage.speaking() as run:
                await run.event("message_deleted", {"entryId": "gone"})
                raise RuntimeError("no key")
        old = WatchCursor(bot_id=WATCHED, session_id=THREAD, generation=7, after_updated_seq=1).encode()
        async with httpx2.AsyncClient(base_url=server.url, headers=BEARER, timeout=SECONDS) as http:
            theirs, ours = await both(http, f"{stage.path}&resumeFrom={old}", count=7)
    assert theirs[3:] == ours[3:]  # before that stand the name and the time of each stream
    assert [event for event, _, _ in theirs[3:]] == ["reset", "message", "message.deleted", "turn.failed"]


Told = list[tuple[str, str, str]]


async def both(http: httpx2.AsyncClient, path: str, *, count: int) -> tuple[Told, Told]:
    """What each of the two readers makes of the first events."""
    async with http.stream("GET", path) as answer:
        theirs = [(each.event, each.data, each.id) async for each in first(EventSource(answer), count)]
    decoder = SseDecoder()
    ours: Told = []
    async with http.stream("GET", path) as answer:
        async for piece in answer.aiter_raw():
            ours += [(each.event, each.data, each.id) for each in decoder.feed(piece)]
            if len(ours) >= count:
                break
    return theirs, ours[:count]


async def first(events: AsyncIterable[ServerSentEvent], count: int) -> AsyncIterator[ServerSentEvent]:
    taken = 0
    async for event in events:
        yield event
        taken += 1
        if taken == count:
            return


@pytest.mark.requirement("WA-28", "WA-87")
async def test_httpx2s_own_reader_agrees_on_the_whole_catalogue_with_comments_between() -> None:
    source = RecordedSource([line.frame for line in CATALOGUE])
    pieces: list[bytes] = []
    async for piece in bot_events_sse(watch_bot(source, bot_id=BOT, session_id=SESSION)):
        pieces += [piece, KEEP_ALIVE]
    stream = b"".join(pieces)

    def answer(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=stream)

    async with (
        httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as http,
        http.stream("GET", "http://x/") as got,
    ):
        theirs = [(each.event, each.data, each.id) async for each in EventSource(got)]
    assert theirs == [(each.event, each.data, each.id) for each in SseDecoder().feed(stream)]
    assert len(theirs) == len(CATALOGUE) + 1
