"""What a person sends: one run, whole or not at all (spec 4, "Outbound user messages")."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest

from bubble.assembler import BubbleMessage
from bubble.client import AttachedFile, Backoff, BubbleConnection, SentMessage
from bubble.protocol.errors import Conflict, InvalidRequest, NotFound, PayloadTooLarge
from bubble.protocol.events import RunFinished, RunStarted
from bubble.testing.asgi import StreamingASGITransport
from bubble.testing.asgi_sockets import asgi_connector
from bubble.testing.server import BubbleServer
from tests.client.logs import log_of, parts, parts_of

pytestmark = pytest.mark.anyio


@pytest.fixture
async def thread_id(bubble_client: BubbleConnection) -> str:
    return (await bubble_client.create_thread()).thread_id


async def last_message(client: BubbleConnection, thread_id: str) -> BubbleMessage:
    events = [event async for event in client.iter_events(thread_id)]
    return (await client.assembler.create().assemble(events)).messages[-1]


@pytest.mark.requirement("TA-C-07")
async def test_a_text_is_sent_as_one_run_of_user_input(bubble_client: BubbleConnection, thread_id: str) -> None:
    sent = await bubble_client.send_message(thread_id, "Hello")
    events = await log_of(bubble_client, thread_id)
    assert events[0].event == RunStarted(principal_id="admin", run_id=sent.run_id, kind="user_input")
    assert events[-1].event == RunFinished(principal_id="admin", run_id=sent.run_id, outcome="success")
    assert sent == SentMessage(run_id=sent.run_id, started_seq=events[0].seq, finished_seq=events[-1].seq)
    message = await last_message(bubble_client, thread_id)
    assert (message["id"], message["role"]) == (sent.run_id, "user")
    assert message["parts"] == [{"type": "text", "text": "Hello", "state": "done"}]


async def test_files_go_with_it_by_their_urls_or_whole(
    bubble_client: BubbleConnection, thread_id: str, tmp_path: Path
) -> None:
    path = tmp_path / "note.txt"
    path.write_bytes(b"hi")
    files: list[AttachedFile] = [
        "https://example.com/cat.png",
        path,
        ("a.bin", b"\x00", "application/x-own"),
        ("b.json", b"{}", None),
    ]
    await bubble_client.send_message(thread_id, "See:", files=files)
    assert (await last_message(bubble_client, thread_id))["parts"] == [
        {"type": "text", "text": "See:", "state": "done"},
        {"type": "file", "mediaType": "image/png", "url": "https://example.com/cat.png"},
        {"type": "file", "mediaType": "text/plain", "url": "data:text/plain;base64,aGk=", "filename": "note.txt"},
        {
            "type": "file",
            "mediaType": "application/x-own",
            "url": "data:application/x-own;base64,AA==",
            "filename": "a.bin",
        },
        {
            "type": "file",
            "mediaType": "application/json",
            "url": "data:application/json;base64,e30=",
            "filename": "b.json",
        },
    ]


async def test_a_file_may_go_without_words(bubble_client: BubbleConnection, thread_id: str) -> None:
    await bubble_client.send_message(thread_id, files=[("a.txt", b"a", None)])
    assert [each["type"] for each in await parts_of(bubble_client, thread_id)] == ["file"]


@pytest.mark.requirement("TA-C-06")
async def test_a_message_of_the_ai_sdk_is_sent_with_the_handlers_that_read_it(
    bubble_client: BubbleConnection, thread_id: str
) -> None:
    artifact = {"artifactId": "a", "name": "Plan", "text": "- one"}
    unknown = {"kind": "poll", "options": [1, 2]}
    message = {
        "role": "user",
        "parts": [
            {"type": "text", "text": "Look:"},
            {"type": "data-bubble-artifact", "id": "a", "data": artifact},
            {"type": "data-bubble-extension", "data": unknown},
            {"type": "file", "mediaType": "image/png", "url": "https://example.com/cat.png", "filename": "cat.png"},
        ],
    }
    await bubble_client.send_message(thread_id, message=message)
    kinds = [each.get("type") or each["kind"] for each in await parts_of(bubble_client, thread_id)]
    assert kinds == ["text-start", "text-delta", "text-end", "artifact", "poll", "file"]
    again = (await last_message(bubble_client, thread_id))["parts"]
    assert [{name: part[name] for name in part if name != "state"} for part in again] == message["parts"]


async def test_text_and_files_come_before_the_parts_of_a_message(
    bubble_client: BubbleConnection, thread_id: str
) -> None:
    message = {"parts": [{"type": "text", "text": "three"}]}
    await bubble_client.send_message(thread_id, "one", files=[("two.txt", b"", None)], message=message)
    said = [part.get("text") or part["filename"] for part in (await last_message(bubble_client, thread_id))["parts"]]
    assert said == ["one", "two.txt", "three"]


@pytest.mark.parametrize("length", [200_000, 1_500_000])
async def test_a_long_text_is_sent_whole(bubble_client: BubbleConnection, thread_id: str, length: int) -> None:
    text = "é" * length
    await bubble_client.send_message(thread_id, text)
    await bubble_client.send_message(thread_id, message={"parts": [{"type": "text", "text": text}]})
    deltas = [str(each["delta"]) for each in await parts_of(bubble_client, thread_id) if "delta" in each]
    assert "".join(deltas) == text * 2


INFINITE = {"type": "data-bubble-extension", "data": {"kind": "x", "y": float("inf")}}
MANY = [(f"{number}.bin", bytes(700_000), None) for number in range(9)]


@pytest.mark.requirement("TA-C-07")
@pytest.mark.parametrize(
    ("options", "kind", "reason"),
    [
        ({}, InvalidRequest, "nothing to send"),
        ({"message": {"parts": []}}, InvalidRequest, "nothing to send"),
        ({"text": "Hello", "files": ["/etc/passwd"]}, InvalidRequest, "no URL"),
        ({"text": "Hello", "files": [Path("/nobody/has/this")]}, FileNotFoundError, "nobody/has/this"),
        (
            {"text": "Hello", "files": [("big.bin", bytes(2_000_000), None)]},
            PayloadTooLarge,
            r"big\.bin has 2,000,000 b",
        ),
        ({"files": MANY}, PayloadTooLarge, "11 events of 8,40.*several messages"),
        ({"files": ["https://example.com/a.png"] * 999}, PayloadTooLarge, "1,001 events"),
        ({"text": "Hello", "message": {"parts": [{"type": "tool-x"}]}}, InvalidRequest, r"parts\[0\]"),
        (
            {"text": "Hello", "message": {"parts": [INFINITE]}},
            InvalidRequest,
            r"parts\[0\].* data-bubble-ext.* not JSON",
        ),
        ({"text": "Hello", "message": 5}, InvalidRequest, "parts"),
        ({"text": "Hello", "idempotency_key": ""}, InvalidRequest, "idempotency_key"),
        ({"text": 5}, InvalidRequest, "`text`"),
        ({"text": "Hello", "files": "https://example.com/a.png"}, InvalidRequest, "`files` must be a list"),
        ({"text": "Hello", "files": ["https://example.com/a.png", 5]}, InvalidRequest, r"`files\[1\]`"),
        ({"text": "Hello", "files": [("a.txt", "no bytes", None)]}, InvalidRequest, r"`files\[0\]`"),
        ({"text": "Hello", "files": [("a.txt", b"no type")]}, InvalidRequest, r"`files\[0\]`"),
    ],
)
async def test_a_message_with_something_that_cannot_be_sent_is_not_sent_at_all(
    bubble_client: BubbleConnection, thread_id: str, options: dict[str, Any], kind: type[Exception], reason: str
) -> None:
    with pytest.raises(kind, match=reason):
        await bubble_client.send_message(thread_id, **options)
    assert await log_of(bubble_client, thread_id) == []


@pytest.mark.requirement("TA-C-07")
async def test_sending_again_under_the_same_key_adds_nothing(bubble_client: BubbleConnection, thread_id: str) -> None:
    first = await bubble_client.send_message(thread_id, "Hello", idempotency_key="key-1")
    assert await bubble_client.send_message(thread_id, "Hello", idempotency_key="key-1") == first
    with pytest.raises(Conflict):
        await bubble_client.send_message(thread_id, "Something else", idempotency_key="key-1")
    assert len(await log_of(bubble_client, thread_id)) == 5
    other = await bubble_client.send_message(thread_id, "Hello", idempotency_key="key-2")
    assert other.run_id != first.run_id


class LosingAnswers(httpx2.AsyncBaseTransport):
    """Loses the answer to the first append."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self.lost = 0
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._inner.handle_async_request(request)
        if not self.lost and request.url.path.endswith("events:batch"):
            self.lost += 1
            await response.aread()
            await response.aclose()
            raise httpx2.ReadError("cut")
        return response


@pytest.mark.requirement("TA-C-07")
async def test_a_lost_answer_does_not_double_a_message(bubble_server: BubbleServer, thread_id: str) -> None:
    network = LosingAnswers(StreamingASGITransport(bubble_server.app))
    client = BubbleConnection(
        bubble_server.url,
        token=bubble_server.admin_token,
        backoff=Backoff(first=0.001, longest=0.01),
        transport=network,
        connector=asgi_connector(bubble_server.app),
    )
    async with client:
        sent = await client.send_message(thread_id, "Hello")
    events = await log_of(bubble_server.admin, thread_id)
    assert (network.lost, [events[0].seq, events[-1].seq]) == (1, [sent.started_seq, sent.finished_seq])
    assert len(parts(events)) == 3


async def test_who_may_not_see_the_thread_cannot_send(bubble_server: BubbleServer, thread_id: str) -> None:
    async with bubble_server.connect(await bubble_server.register("alice")) as alice:
        with pytest.raises(NotFound):
            await alice.send_message(thread_id, "Hello")
