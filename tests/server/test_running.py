"""A server of its own: bound, stopped by a signal, guarded against slow and endless clients."""

from __future__ import annotations

import asyncio
import json
import signal
import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from bubble.server import http_protocol
from bubble.server.running import serve
from bubble.server.settings import Settings, SettingsError
from tests.server.serving import BEARER, a_child, parsed, serving, talk
from tests.server.world import ADMIN_TOKEN

pytestmark = pytest.mark.anyio

# --- starting ---------------------------------------------------------------------------------------------------------------------


async def test_port_0_is_any_free_port_and_is_told() -> None:
    async with serving() as one, serving() as other:
        assert one.port != other.port
        assert one.url == f"http://127.0.0.1:{one.port}"
        async with httpx2.AsyncClient(headers=BEARER) as client:
            for started in (one, other):
                assert (await client.get(f"{started.url}/v1/whoami")).status_code == 200


async def test_a_port_that_is_taken_is_an_error() -> None:
    async with serving() as started:
        with pytest.raises(OSError, match="in use"):
            await serve(Settings(store="memory:", port=started.port))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "bubble.example.com"])  # noqa: S104
async def test_a_public_address_without_tls_is_refused(host: str) -> None:
    with pytest.raises(SettingsError, match="without TLS"):
        await serve(Settings(host=host, store="memory:"))


@pytest.mark.parametrize("way", [{"insecure": True}, {"public_url": "https://bubble.example.com"}])
async def test_a_public_address_is_allowed_with_tls_in_front_or_on_demand(way: dict[str, object]) -> None:
    async with serving(host="0.0.0.0", **way) as started, httpx2.AsyncClient() as client:  # noqa: S104
        assert (await client.get(f"http://127.0.0.1:{started.port}/healthz")).status_code == 200


def a_certificate(folder: Path) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "bubble")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    chain, secret = folder / "chain.pem", folder / "key.pem"
    chain.write_bytes(certificate.public_bytes(Encoding.PEM))
    secret.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return chain, secret


async def test_it_speaks_tls_where_it_has_a_certificate(tmp_path: Path) -> None:
    chain, key = a_certificate(tmp_path)
    async with serving(tls_certificate=chain, tls_key=key) as started:
        assert started.url.startswith("https://")
        trust = ssl.create_default_context(cafile=chain)
        async with httpx2.AsyncClient(verify=trust) as client:
            answer = await client.post(f"{started.url}/v1/sessions", json={"token": ADMIN_TOKEN})
        assert answer.headers["set-cookie"].startswith("__Host-")
        async with connect(f"wss://127.0.0.1:{started.port}/v1/ws", ssl=trust, additional_headers=BEARER) as socket:
            await socket.send("{}")
            assert "error" in await socket.recv()


# --- stopping ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_stops_it_with_exit_code_0(number: int) -> None:
    async with a_child() as child:
        async with child.client() as client:
            assert (await client.get("/readyz")).status_code == 200
        assert await child.stop(number) == 0


@pytest.mark.requirement("PR-7-18")
async def test_stopping_tells_sockets_and_streams_and_answers_held_pages() -> None:
    async with a_child() as child, child.client() as client:
        thread = (await client.post("/v1/threads", json={})).json()["threadId"]
        address = child.url.replace("http", "ws", 1) + "/v1/ws"
        async with connect(address, additional_headers=BEARER) as socket:
            await socket.send(json.dumps({"type": "thread.subscribe", "threadId": thread, "fromSeq": 9}))
            await socket.recv()
            async with client.stream("GET", f"/v1/threads/{thread}/events/stream?fromSeq=9") as stream:
                pieces = stream.aiter_bytes()
                await anext(pieces)
                held = asyncio.create_task(client.get(f"/v1/threads/{thread}/events?fromSeq=9&waitMs=30000"))
                await client.get("/healthz")
                stopping = asyncio.create_task(child.stop())
                with pytest.raises(ConnectionClosed) as closed:
                    await socket.recv()
                assert closed.value.rcvd is not None
                assert closed.value.rcvd.code == 1012
                assert b"subscription_closed" in b"".join([piece async for piece in pieces])
                assert (await held).status_code in (200, 503)
        assert await stopping == 0


async def test_no_append_that_was_answered_is_lost_by_stopping(tmp_path: Path) -> None:
    data = tmp_path / "data"
    answered: list[int] = []
    async with a_child(store=None, data=str(data)) as child, child.client() as client:
        thread = (await client.post("/v1/threads", json={})).json()["threadId"]
        path = f"/v1/threads/{thread}/events"
        event = {"type": "run_started", "principalId": "admin"}

        async def write(worker: int) -> None:
            for number in range(100_000):
                try:
                    answer = await client.post(path, json={**event, "runId": f"{worker}-{number}"})
                except httpx2.TransportError:
                    return
                if answer.status_code != 201:
                    return
                answered.append(answer.json()["seq"])

        writers = [asyncio.create_task(write(worker)) for worker in range(8)]
        while len(answered) < 50:
            await asyncio.wait(writers, timeout=0.01, return_when=asyncio.FIRST_COMPLETED)
        assert await child.stop() == 0
        await asyncio.gather(*writers)
    async with a_child(store=None, data=str(data)) as child, child.client() as client:
        assert (await client.get(f"/v1/threads/{thread}")).json()["headSeq"] >= max(answered)
    assert (data.stat().st_mode & 0o777) == 0o700


# --- clients that do not behave ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("piece", [b"", b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: "])
async def test_headers_that_do_not_come_are_not_waited_for(monkeypatch: pytest.MonkeyPatch, piece: bytes) -> None:
    monkeypatch.setattr(http_protocol, "HEADER_SECONDS", 0.2)
    async with serving() as started:
        answer = await talk(started.port, piece)
        if piece:
            status, headers, body = parsed(answer)
            assert (status, body["code"]) == (408, "invalid_request")
            assert headers["bubble-protocol-version"] == "1"
        else:
            assert answer == b""


async def test_headers_that_do_not_end_are_not_held() -> None:
    async with serving() as started:
        line = b"X-Long: " + b"x" * 8_000 + b"\r\n"
        answer = await talk(started.port, b"GET /healthz HTTP/1.1\r\nHost: x\r\n", *[line] * 9)
        assert parsed(answer)[0] == 431


@pytest.mark.parametrize(
    "request_line", [b"nonsense\r\n\r\n", b"GET / HTTP/1.1\r\nHost : x\r\n\r\n", b"\x16\x03\x01\r\n\r\n"]
)
async def test_what_is_no_http_is_refused_like_everything_else(request_line: bytes) -> None:
    async with serving() as started:
        status, headers, body = parsed(await talk(started.port, request_line))
        assert (status, body["code"]) == (400, "invalid_request")
        assert headers["x-request-id"]


UPGRADE = (
    b"GET /v1/ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
)


@pytest.mark.parametrize(
    "rest",
    [
        b"Content-Length: 3\r\n\r\nabc",
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"X-Long: " + b"x" * 20_000 + b"\r\n\r\n",
        b"X-Many: 1\r\n" * 300 + b"\r\n",
    ],
    ids=["a body", "chunks", "a long header", "many headers"],
)
async def test_an_upgrade_that_is_no_handshake_is_refused_and_not_held_open(rest: bytes) -> None:
    async with serving() as started:
        status, headers, body = parsed(await talk(started.port, UPGRADE + rest))
        assert (status, body["code"]) == (400, "invalid_request")
        assert headers["bubble-protocol-version"] == "1"


async def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    async with serving(body_timeout=0.2) as started:
        head = (
            b"POST /v1/threads HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %b\r\nContent-Length: 10\r\n"
            b"Connection: close\r\n\r\n{" % ADMIN_TOKEN.encode()
        )
        status, _, body = parsed(await talk(started.port, head))
        assert (status, body["code"]) == (400, "invalid_request")
        assert "did not arrive" in str(body["message"])


async def test_a_client_that_sends_too_much_gets_to_read_why() -> None:
    async with (
        serving(limits={"body_bytes": 1_000}) as started,
        httpx2.AsyncClient(base_url=started.url, headers=BEARER) as client,
    ):
        answer = await client.post("/v1/threads", content=b" " * 3_000_000)
        assert answer.status_code == 413
        assert (await client.get("/healthz")).status_code == 200


async def test_a_client_that_asks_before_it_sends_too_much_is_spared_the_sending() -> None:
    async with serving(limits={"body_bytes": 1_000}) as started:
        head = (
            b"POST /v1/threads HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %b\r\nContent-Length: 5000\r\n"
            b"Expect: 100-continue\r\n\r\n" % ADMIN_TOKEN.encode()
        )
        status, _, body = parsed(await talk(started.port, head))
        assert (status, body["code"]) == (413, "payload_too_large")


async def test_head_has_the_headers_and_no_body() -> None:
    async with serving() as started:
        answer = await talk(started.port, b"HEAD /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        head, _, body = answer.partition(b"\r\n\r\n")
        assert b"content-length: 15" in head
        assert body == b""


async def test_the_servers_software_is_not_told() -> None:
    async with serving() as started, httpx2.AsyncClient() as client:
        assert "server" not in (await client.get(f"{started.url}/healthz")).headers
