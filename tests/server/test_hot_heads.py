"""A head that came before need not be parsed again, and means no more than it did the first time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import httpx2
import pytest

from bubble.server.hot import HotAppends
from tests.server.serving import BEARER, serving
from tests.server.world import ADMIN_TOKEN

pytestmark = pytest.mark.anyio


class Keeper:
    """One kept connection, spoken by hand, and how many heads were parsed."""

    def __init__(self, client: httpx2.AsyncClient, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.client = client
        self.parsed = 0
        self._reader = reader
        self._writer = writer

    async def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self._writer.write(piece)
            await self._writer.drain()
            await self.client.get("/healthz")  # the server has read the piece before this was answered

    async def answer(self) -> tuple[int, dict[str, object]]:
        async with asyncio.timeout(10):
            head = await self._reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
            body = await self._reader.readexactly(length)
        return int(head[9:12]), json.loads(body)

    async def ask(self, *pieces: bytes) -> tuple[int, dict[str, object]]:
        await self.send(*pieces)
        return await self.answer()


def request(delta: str, *, token: str = ADMIN_TOKEN, more: str = "", by: str = "admin") -> bytes:
    chunk = {"type": "text-delta", "id": "t", "delta": delta}
    event = {"type": "message_part", "principalId": by, "runId": "r", "part": chunk, "version": "ai-sdk-v6"}
    body = json.dumps(event)
    head = f"POST /v1/threads/t/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n{more}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()


@pytest.fixture
async def kept(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Keeper]:
    async with (
        serving() as started,
        httpx2.AsyncClient(base_url=started.url, headers=BEARER) as client,
    ):
        await client.post("/v1/threads", json={"threadId": "t"})
        start = {"type": "run_started", "principalId": "admin", "runId": "r"}
        assert (await client.post("/v1/threads/t/events", json=start)).status_code == 201
        reader, writer = await asyncio.open_connection("127.0.0.1", started.port)
        keeper = Keeper(client, reader, writer)
        understand = HotAppends.understand

        def counting(appends: HotAppends, url: bytes, headers: list[tuple[bytes, bytes]]) -> object:
            keeper.parsed += 1
            return understand(appends, url, headers)

        monkeypatch.setattr(HotAppends, "understand", counting)
        yield keeper
        writer.close()


async def test_the_same_head_is_parsed_once_and_each_body_counts(kept: Keeper) -> None:
    answers = [await kept.ask(request(f"{number:03}")) for number in range(20)]
    assert [status for status, _ in answers] == [201] * 20
    assert [stored["seq"] for _, stored in answers] == list(range(3, 23))
    assert [stored["part"]["delta"] for _, stored in answers] == [f"{number:03}" for number in range(20)]  # type: ignore[index]
    assert kept.parsed == 1


async def test_heads_of_several_lengths_are_kept_side_by_side(kept: Keeper) -> None:
    for _ in range(3):
        for size in (1, 50, 500):
            status, stored = await kept.ask(request("x" * size))
            assert (status, len(stored["part"]["delta"])) == (201, size)  # type: ignore[index]
    assert kept.parsed == 3


async def test_a_known_head_in_pieces_or_with_another_behind_it_is_read_as_ever(kept: Keeper) -> None:
    whole = request("abc")
    assert (await kept.ask(whole))[0] == 201
    for cut in (1, 30, whole.index(b"\r\n\r\n") + 4, len(whole) - 1):
        assert (await kept.ask(whole[:cut], whole[cut:]))[0] == 201
    await kept.send(whole + whole + whole[:40], whole[40:])
    assert [(await kept.answer())[0] for _ in range(3)] == [201] * 3
    assert (await kept.ask(whole))[0] == 201


async def test_mistakes_behind_a_known_head_are_explained(kept: Keeper) -> None:
    good = request("abc")
    assert (await kept.ask(good))[0] == 201
    status, error = await kept.ask(good.replace(b'"runId": "r"', b'"runId": 77', 1).replace(b"77", b"777", 1))
    assert (status, error["code"]) == (400, "invalid_request")
    assert "runId" in str(error["message"])
    assert (await kept.ask(good))[0] == 201


async def test_a_key_is_never_taken_from_a_head_that_was_kept(kept: Keeper) -> None:
    first = await kept.ask(request("abc", more="Idempotency-Key: k1\r\n"))
    second = await kept.ask(request("abc", more="Idempotency-Key: k2\r\n"))
    again = await kept.ask(request("abc", more="Idempotency-Key: k1\r\n"))
    assert first[1] == again[1] != second[1]


async def test_a_kept_head_counts_for_no_longer_than_its_bearer(kept: Keeper) -> None:
    await kept.client.post("/v1/principals", json={"principalId": "ann", "kind": "user", "displayName": "Ann"})
    await kept.client.put("/v1/threads/t/grants/ann", json={"role": "participant"})
    minted = (await kept.client.post("/v1/principals/ann/tokens", json={})).json()
    mine = request("abc", token=minted["token"], by="ann")
    assert [(await kept.ask(mine))[0] for _ in range(3)] == [201] * 3
    await kept.client.put("/v1/threads/t/grants/ann", json={"role": "observer"})
    assert (await kept.ask(mine))[0] == 403
    await kept.client.delete("/v1/threads/t/grants/ann")
    assert (await kept.ask(mine))[0] == 404
    await kept.client.delete(f"/v1/principals/ann/tokens/{minted['tokenId']}")
    status, error = await kept.ask(mine)
    assert (status, error["code"]) == (401, "unauthenticated")


async def test_a_connection_that_is_not_to_be_kept_is_closed_after_its_answer(kept: Keeper) -> None:
    assert (await kept.ask(request("abc", more="Connection: close\r\n")))[0] == 201
    async with asyncio.timeout(5):
        assert await kept._reader.read() == b""
