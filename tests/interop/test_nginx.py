"""The guide for nginx, tried: its own configuration on a real nginx, with a real server behind it."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.frames import Frame, Opcode
from websockets.protocol import Event
from websockets.typing import Origin

from bubble.auth.browser import SESSION_COOKIES
from bubble.client import BubbleConnection
from bubble.protocol.limits import Limits
from bubble.server.options import StreamOptions
from tests.interop.nginx import GUIDE, Site, running_site

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(shutil.which("nginx") is None, reason="missing: nginx"),
]

SECONDS = 60
MIB = 1024 * 1024


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Everything as the guide says."""
    with running_site(tmp_path_factory.mktemp("site")) as site:
        yield site


def bubble_of(site: Site) -> BubbleConnection:
    return BubbleConnection(site.url, token=site.token, ssl_context=site.context)


@asynccontextmanager
async def http_of(site: Site) -> AsyncIterator[httpx2.AsyncClient]:
    """A client that brings nothing but an address."""
    async with httpx2.AsyncClient(base_url=site.url, verify=site.context, timeout=SECONDS) as client:
        yield client


def bearer(site: Site) -> dict[str, str]:
    return {"Authorization": f"Bearer {site.token}"}


def message(text: str) -> dict[str, object]:
    part = {"type": "data-text", "data": text}
    return {"type": "message_part", "principalId": "admin", "runId": "run", "part": part, "version": "ai-sdk-v6"}


async def thread_with_a_run(bubble: BubbleConnection) -> str:
    thread = await bubble.create_thread(title="Behind nginx")
    await bubble.append_event(thread.thread_id, {"type": "run_started", "principalId": "admin", "runId": "run"})
    return thread.thread_id


# --- sockets and streams ----------------------------------------------------------------------------------------------------------------


def counting(pings: asyncio.Queue[None]) -> type[ClientConnection]:
    """A client's connection that tells of every ping it gets."""

    class Counting(ClientConnection):
        def process_event(self, event: Event) -> None:
            if isinstance(event, Frame) and event.opcode is Opcode.PING:
                pings.put_nowait(None)
            super().process_event(event)

    return Counting


async def test_events_pass_both_ways_through_a_websocket(site: Site) -> None:
    async with bubble_of(site) as bubble, asyncio.timeout(SECONDS):
        thread_id = await thread_with_a_run(bubble)
        async with bubble.subscribe_thread(thread_id, from_seq=3) as events:
            for number in range(5):
                await bubble.append_event(thread_id, message(f"{number}"))
                assert (await anext(events)).seq == 3 + number


@pytest.mark.requirement("PR-7-14")
async def test_an_idle_socket_outlives_the_proxys_patience_because_the_server_pings(tmp_path: Path) -> None:
    impatient = {"proxy_read_timeout 60s;": "proxy_read_timeout 2s;"}
    with running_site(tmp_path, nginx=impatient, BUBBLE_STREAMS__PING_INTERVAL="500ms") as site:
        pings: asyncio.Queue[None] = asyncio.Queue()
        async with socket_of(site, create_connection=counting(pings)) as socket, asyncio.timeout(SECONDS):
            for _ in range(8):  # 4 s, twice what nginx waits for
                await pings.get()
            await socket.send('{"type":"grants.subscribe"}')
            assert json.loads(await socket.recv())["type"] == "grants.snapshot"


async def test_without_pings_the_proxy_would_close_an_idle_socket(tmp_path: Path) -> None:
    impatient = {"proxy_read_timeout 60s;": "proxy_read_timeout 2s;"}
    with running_site(
        tmp_path, nginx=impatient, BUBBLE_STREAMS__PING_INTERVAL="100s", BUBBLE_STREAMS__PEER_TIMEOUT="200s"
    ) as site:
        async with socket_of(site) as socket, asyncio.timeout(SECONDS):
            with pytest.raises(ConnectionClosed) as closed:
                await socket.recv()
            assert closed.value.rcvd is None


def test_by_default_the_server_is_never_silent_for_as_long_as_the_guides_proxy_waits() -> None:
    (patience,) = re.findall(r"proxy_read_timeout (\d+)s;", GUIDE.read_text(encoding="utf-8"))
    streams = StreamOptions()
    assert max(streams.ping_interval, streams.keep_alive, Limits().wait_ms / 1000) <= int(patience) / 2


@pytest.mark.requirement("PR-8-19")
async def test_each_event_of_a_stream_comes_at_once(site: Site) -> None:
    async with bubble_of(site) as bubble, http_of(site) as http, asyncio.timeout(SECONDS):
        thread_id = await thread_with_a_run(bubble)
        url = f"/v1/threads/{thread_id}/events/stream?fromSeq=3"
        async with http.stream("GET", url, headers=bearer(site)) as answer:
            lines = answer.aiter_lines()
            assert await anext(lines) == "event: subscription_opened"
            for number in range(5):
                await bubble.append_event(thread_id, message(f"{number}"))
                await until(lines, f"id: {3 + number}")


@pytest.mark.requirement("PR-8-20")
async def test_an_idle_stream_outlives_the_proxys_patience_because_of_its_comments(tmp_path: Path) -> None:
    impatient = {"proxy_read_timeout 60s;": "proxy_read_timeout 2s;"}
    with running_site(tmp_path, nginx=impatient, BUBBLE_STREAMS__KEEP_ALIVE="500ms") as site:
        async with bubble_of(site) as bubble, http_of(site) as http, asyncio.timeout(SECONDS):
            thread_id = await thread_with_a_run(bubble)
            url = f"/v1/threads/{thread_id}/events/stream?fromSeq=3"
            async with http.stream("GET", url, headers=bearer(site)) as answer:
                lines = answer.aiter_lines()
                for _ in range(8):
                    await until(lines, ": keep-alive")
                await bubble.append_event(thread_id, message("after a while"))
                await until(lines, "id: 3")


async def test_a_held_page_is_answered_when_there_is_an_event(site: Site) -> None:
    async with bubble_of(site) as bubble, asyncio.timeout(SECONDS):
        thread_id = await thread_with_a_run(bubble)
        held = asyncio.create_task(bubble.get_event_page(thread_id, from_seq=3, wait_ms=15_000))
        await bubble.append_event(thread_id, message("news"))
        assert len((await held).events) == 1


async def test_a_client_comes_back_through_the_proxy_when_the_server_was_restarted(tmp_path: Path) -> None:
    with running_site(tmp_path) as site:
        async with bubble_of(site) as bubble, asyncio.timeout(SECONDS):
            thread_id = await thread_with_a_run(bubble)
            async with bubble.subscribe_thread(thread_id, from_seq=3) as events:
                await asyncio.to_thread(site.server.stop)
                appended = asyncio.create_task(bubble.append_event(thread_id, message("while it is away")))
                await asyncio.to_thread(site.server.start)
                assert (await appended).seq == 3
                assert (await anext(events)).seq == 3


async def until(lines: AsyncIterator[str], wanted: str) -> None:
    async for line in lines:
        if line == wanted:
            return
    raise AssertionError(f"the stream ended without `{wanted}`")


# --- browsers ---------------------------------------------------------------------------------------------------------------------------


async def logged_in(site: Site, http: httpx2.AsyncClient) -> dict[str, str]:
    """A session's cookie in the client; the headers that the page sends with what changes something."""
    answer = await http.post("/v1/sessions", json={"token": site.token}, headers={"Origin": site.url})
    assert answer.status_code == 201, answer.text
    return {"Origin": site.url, "X-Bubble-CSRF": answer.json()["csrfToken"]}


async def test_a_browser_gets_a_cookie_that_only_goes_over_tls(site: Site) -> None:
    async with http_of(site) as http:
        answer = await http.post("/v1/sessions", json={"token": site.token}, headers={"Origin": site.url})
        cookie = answer.headers["set-cookie"]
        assert cookie.startswith(f"{SESSION_COOKIES[0]}=")
        assert {"Secure", "HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))


async def test_by_cookie_only_the_pages_of_the_public_origin_change_something(site: Site) -> None:
    async with http_of(site) as http:
        own = await logged_in(site, http)
        assert (await http.post("/v1/threads", json={}, headers=own)).status_code == 201
        other = {**own, "Origin": site.url.replace("https:", "http:")}
        assert (await http.post("/v1/threads", json={}, headers=other)).status_code == 403


async def test_a_forwarded_host_changes_nothing_about_the_origin(site: Site) -> None:
    forged = {"X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https", "Origin": "https://evil.example"}
    async with http_of(site) as http:
        own = await logged_in(site, http)
        assert (await http.post("/v1/threads", json={}, headers={**own, **forged})).status_code == 403


async def test_a_socket_by_cookie_needs_the_public_origin(site: Site) -> None:
    async with http_of(site) as http:
        await logged_in(site, http)
        (cookie,) = [f"{name}={value}" for name, value in http.cookies.items()]
        async with socket_of(site, origin=site.url, cookie=cookie) as socket:
            await socket.send('{"type":"grants.subscribe"}')
            assert json.loads(await socket.recv())["type"] == "grants.snapshot"
        with pytest.raises(InvalidStatus) as refused:
            async with socket_of(site, origin="https://evil.example", cookie=cookie):
                pass
        assert refused.value.response.status_code == 403


async def test_plain_http_leads_to_tls(site: Site) -> None:
    async with httpx2.AsyncClient() as http:
        answer = await http.get(f"{site.plain_url}/docs")
    assert answer.status_code == 301
    assert answer.headers["location"] == "https://localhost/docs"


@asynccontextmanager
async def socket_of(
    site: Site,
    *,
    origin: str | None = None,
    cookie: str | None = None,
    create_connection: type[ClientConnection] = ClientConnection,
) -> AsyncIterator[ClientConnection]:
    """A bare WebSocket, by cookie or else by bearer."""
    headers = bearer(site) if cookie is None else {"Cookie": cookie}
    async with connect(
        f"{site.url.replace('https:', 'wss:')}/v1/ws",
        ssl=site.context,
        origin=None if origin is None else Origin(origin),
        additional_headers=headers,
        create_connection=create_connection,
        ping_interval=None,
        proxy=None,
    ) as socket:
        yield socket


# --- sizes, logs, closed doors ----------------------------------------------------------------------------------------------------------


async def test_a_batch_larger_than_the_proxys_usual_limit_passes(site: Site) -> None:
    async with bubble_of(site) as bubble:
        thread_id = await thread_with_a_run(bubble)
        stored = await bubble.append_events(thread_id, [message("x" * (MIB // 2)) for _ in range(10)])
        assert len(stored) == 10


async def test_what_is_too_large_for_bubble_gets_bubbles_own_answer(site: Site) -> None:
    async with bubble_of(site) as bubble, http_of(site) as http:
        url = f"/v1/threads/{await thread_with_a_run(bubble)}/events:batch"
        answer = await http.post(url, content=b" " * (9 * MIB), headers=bearer(site))
        assert (answer.status_code, answer.json()["code"]) == (413, "payload_too_large")
        answer = await http.post(url, content=b" " * (11 * MIB), headers=bearer(site))
        assert (answer.status_code, answer.headers["server"].partition("/")[0]) == (413, "nginx")


async def test_an_import_has_room(site: Site) -> None:
    async with bubble_of(site) as bubble:
        thread_id = await thread_with_a_run(bubble)
        await bubble.append_events(thread_id, [message("x" * (MIB // 2)) for _ in range(12)])
        await bubble.append_events(thread_id, [message("x" * (MIB // 2)) for _ in range(12)])
        events = [event async for event in bubble.iter_events(thread_id)]
        copy = await bubble.import_thread("imported", events)
        assert copy.head_seq == len(events)


async def test_a_request_can_be_found_in_both_logs_and_its_query_in_neither(tmp_path: Path) -> None:
    with running_site(tmp_path) as site:
        async with http_of(site) as http:
            chosen = {"X-Request-Id": "chosen-by-the-client"}
            answer = await http.get("/login?code=nobody-may-read-this", headers=chosen)
    name = answer.headers["x-request-id"]
    assert name != chosen["X-Request-Id"]
    assert f'"GET /login" 200 {len(answer.content)} ' in site.log
    assert name in site.log
    assert name in site.server_log
    assert "nobody-may-read-this" not in site.log + site.server_log


async def test_the_figures_are_not_for_the_world(site: Site) -> None:
    async with http_of(site) as http:
        assert (await http.get("/metrics")).status_code == 404
        assert (await http.get("/readyz")).status_code == 200
