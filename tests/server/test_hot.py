"""The short way of appends gives the answers of the general way, in the order of the requests, however the bytes come."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator

import httpx2
import pytest

from bubble.server.hot import HotAppends
from tests.server.serving import BEARER, serving, talk
from tests.server.world import ADMIN_TOKEN

pytestmark = pytest.mark.anyio

# A header that means nothing, but that makes a request go the general way.
GENERAL = {"X-General": "1"}


class Served:
    """A server with one thread, and how often the short way was taken."""

    def __init__(self, client: httpx2.AsyncClient, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.client = client
        self.port = port
        self.short_ways = 0
        submit = HotAppends.submit

        def counting(appends: HotAppends, answer: object) -> None:
            self.short_ways += 1
            submit(appends, answer)  # type: ignore[arg-type]

        monkeypatch.setattr(HotAppends, "submit", counting)

    async def post(self, path: str, content: bytes, headers: dict[str, str]) -> httpx2.Response:
        return await self.client.post(path, content=content, headers=headers)


@pytest.fixture
async def served(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    """A server that knows the admin's bearer, with thread `t` and an open run `r`."""
    async with (
        serving(limits={"event_bytes": 2_000}) as started,
        httpx2.AsyncClient(base_url=started.url, headers=BEARER) as client,
    ):
        await client.post("/v1/threads", json={"threadId": "t"})
        await client.post("/v1/threads/t/events", json=event("run_started"), headers=GENERAL)
        yield Served(client, started.port, monkeypatch)


def event(kind: str = "message_part", **changes: object) -> dict[str, object]:
    part = {"part": {"type": "x"}, "version": "ai-sdk-v6"} if kind == "message_part" else {}
    return {"type": kind, "principalId": "admin", "runId": "r", **part, **changes}


JSON = {"Content-Type": "application/json"}
GOOD = json.dumps(event()).encode()
REQUESTS: dict[str, tuple[str, bytes, dict[str, str]]] = {
    "good": ("t", GOOD, JSON),
    "without a content type": ("t", GOOD, {}),
    "with a key": ("t", GOOD, {**JSON, "Idempotency-Key": "k"}),
    "with an empty key": ("t", GOOD, {**JSON, "Idempotency-Key": ""}),
    "with a long key": ("t", GOOD, {**JSON, "Idempotency-Key": "k" * 129}),
    "with an expected head": ("t", GOOD, {**JSON, "Bubble-Expected-Head": "1"}),
    "with an id": ("t", GOOD, {**JSON, "X-Request-Id": "mine"}),
    "with an id that is too long": ("t", GOOD, {**JSON, "X-Request-Id": "m" * 129}),
    "with an id that is none": ("t", GOOD, {**JSON, "X-Request-Id": "a b"}),
    "a conflict": ("t", json.dumps(event("run_started")).encode(), JSON),
    "an unknown run": ("t", json.dumps(event(runId="x")).encode(), JSON),
    "a thread that is not": ("nowhere", GOOD, JSON),
    "a thread that cannot be": ("a%20b", GOOD, JSON),
    "no JSON": ("t", b"{", JSON),
    "nothing": ("t", b"", JSON),
    "a wrong field": ("t", json.dumps(event(part=1)).encode(), JSON),
    "the server's own": (
        "t",
        json.dumps({"type": "thread_title_updated", "byPrincipalId": "admin", "title": "x"}).encode(),
        JSON,
    ),
    "too large": ("t", json.dumps(event(part={"type": "x", "y": "z" * 2_000})).encode(), JSON),
    "another type": ("t", GOOD, {"Content-Type": "text/plain"}),
    "compressed": ("t", GOOD, {**JSON, "Content-Encoding": "gzip"}),
    "another bearer": ("t", GOOD, {**JSON, "Authorization": "Bearer nonsense"}),
    "no bearer": ("t", GOOD, {**JSON, "Authorization": ""}),
    "a query": ("t", GOOD, JSON),
}
SHORT = {
    "good",
    "without a content type",
    "with a key",
    "with an id",
    "a conflict",
    "an unknown run",
    "a thread that is not",
}


def told(answer: httpx2.Response) -> tuple[int, set[str], object]:
    """What must not differ: everything but the names of this one request and event."""
    body = answer.json()
    for name in ("seq", "createdAt"):
        body.pop(name, None)
    return answer.status_code, set(answer.headers.keys()), body


@pytest.mark.parametrize("name", REQUESTS)
async def test_both_ways_give_the_same_answer(served: Served, name: str) -> None:
    thread, content, headers = REQUESTS[name]
    query = "?x=1" if name == "a query" else ""
    path = f"/v1/threads/{thread}/events{query}"
    short = await served.post(path, content, headers)
    assert served.short_ways == (name in SHORT)
    again = {**headers, "Idempotency-Key": "other"} if name == "with a key" else headers
    general = await served.post(path, content, {**again, **GENERAL})
    assert served.short_ways == (name in SHORT)
    assert told(short) == told(general)
    if name == "with an id":
        assert short.headers["x-request-id"] == "mine"
    assert len(short.headers["x-request-id"]) <= 128


@pytest.mark.requirement("PR-6-46")
async def test_a_repeat_goes_either_way(served: Served) -> None:
    headers = {**JSON, "Idempotency-Key": "k"}
    path = "/v1/threads/t/events"
    answers = [await served.post(path, GOOD, {**headers, **way}) for way in ({}, {}, GENERAL, {})]
    assert len({answer.content for answer in answers}) == 1
    assert ["idempotent-replay" in answer.headers for answer in answers] == [False, True, True, True]
    assert served.short_ways == 3


def bare(path: str, body: bytes = b"", *, method: str = "POST", close: bool = False) -> bytes:
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\n"
        f"Content-Length: {len(body)}\r\n{'Connection: close' if close else 'Accept: */*'}\r\n\r\n"
    )
    return head.encode() + body


def statuses(answers: bytes) -> list[int]:
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d+) ", answers)]


def seqs(answers: bytes) -> list[int]:
    return [int(piece.partition(b",")[0]) for piece in answers.split(b'{"seq":')[1:]]


@pytest.mark.parametrize("size", [1, 7, 100, 100_000])
async def test_pipelined_requests_are_answered_in_order_however_the_bytes_come(served: Served, size: int) -> None:
    path = "/v1/threads/t/events"
    wanted = [
        bare(path, GOOD),
        bare("/healthz", method="GET"),
        bare(path, GOOD),
        bare(path, b"{"),
        bare(path, GOOD),
        bare("/v1/threads/nowhere/events", GOOD),
        bare(path, GOOD, close=True),
    ]
    stream = b"".join(wanted)
    pieces = [stream[start : start + size] for start in range(0, len(stream), size)]
    answers = await talk(served.port, *pieces)
    assert statuses(answers) == [201, 200, 201, 400, 201, 404, 201]
    assert seqs(answers) == sorted(seqs(answers))
    assert len(seqs(answers)) == 4


@pytest.mark.parametrize("way", [b"Accept: */*", b"Accept: */*\r\nX-Extra: 1"], ids=["short", "general"])
async def test_what_is_no_http_behind_an_append_is_not_answered_in_its_place(served: Served, way: bytes) -> None:
    append = bare("/v1/threads/t/events", GOOD).replace(b"Accept: */*", way)
    answers = await talk(served.port, append + append + b"\x00 nonsense\r\n\r\n")
    assert statuses(answers) == [201, 201]
    assert served.short_ways == (way == b"Accept: */*")


async def test_half_a_request_that_breaks_behind_an_append_is_not_answered_in_its_place(served: Served) -> None:
    append = bare("/v1/threads/t/events", GOOD)
    chunked = append[: -len(GOOD)].replace(b"Content-Length: %d" % len(GOOD), b"Transfer-Encoding: chunked")
    answers = await talk(served.port, append + append + chunked + b'5\r\n{"typ\r\nZZ\r\n')
    assert 400 not in statuses(answers)


async def test_a_body_in_chunks_goes_some_way(served: Served) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield GOOD[:10]
        yield GOOD[10:]

    answer = await served.client.post("/v1/threads/t/events", content=chunks(), headers=JSON)
    assert answer.status_code == 201
