"""What every answer has, whatever was asked."""

from __future__ import annotations

import logging

import httpx2
import pytest

from bubble.server.app import BubbleApp
from bubble.server.calls import Call
from bubble.server.operations import Operations
from bubble.server.routing import make_router
from bubble.testing.asgi import StreamingASGITransport
from tests.server.world import URL, Person, World, a_world

pytestmark = pytest.mark.anyio

ANYTHING = [
    ("GET", "/v1/whoami", 401),
    ("GET", "/healthz", 200),
    ("GET", "/v1/nowhere", 404),
    ("DELETE", "/v1/whoami", 405),
    ("GET", "/healthz?x=1", 400),
    ("GET", "/docs", 200),
    ("HEAD", "/healthz", 200),
]


@pytest.mark.requirement("PR-6-02", "PR-6-03")
@pytest.mark.parametrize(("method", "path", "status"), ANYTHING)
async def test_every_answer_names_the_protocol_and_the_request(
    world: World, method: str, path: str, status: int
) -> None:
    answer = await world.nobody.request(method, path)
    assert answer.status_code == status
    assert answer.headers["bubble-protocol-version"] == "1"
    assert answer.headers["x-request-id"]


async def test_two_requests_have_two_ids(world: World) -> None:
    ids = {(await world.nobody.get("/healthz")).headers["x-request-id"] for _ in range(2)}
    assert len(ids) == 2


@pytest.mark.parametrize(
    ("given", "kept"), [("abc-1.2_3", True), ("x" * 128, True), ("x" * 129, False), ("a b", False), ("", False)]
)
async def test_a_sane_request_id_of_the_caller_is_kept(world: World, *, given: str, kept: bool) -> None:
    answer = await world.nobody.get("/healthz", headers={"X-Request-Id": given})
    assert (answer.headers["x-request-id"] == given) is kept


@pytest.mark.requirement("PR-6-01")
async def test_answers_are_json_in_utf_8(alice: Person) -> None:
    answer = await alice.post("/v1/threads", {"title": "Grüße 😀"})
    assert answer.headers["content-type"] == "application/json"
    assert "Grüße 😀".encode() in answer.content


@pytest.mark.requirement("PR-3-02")
@pytest.mark.parametrize(("method", "path", "status"), [each for each in ANYTHING if each[2] >= 400])
async def test_an_error_is_a_code_and_a_message(world: World, method: str, path: str, status: int) -> None:
    answer = await world.nobody.request(method, path)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/json"
    assert answer.json().keys() == {"code", "message"}


async def test_a_wrong_method_tells_the_right_ones(world: World) -> None:
    answer = await world.nobody.request("PUT", "/v1/threads")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, HEAD, POST"


async def test_head_answers_like_get(world: World) -> None:
    answer = await world.nobody.head("/healthz")
    assert answer.headers["content-type"] == "application/json"


# --- bodies -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("PR-3-04", "PR-3-13")
@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (b"", "truncated"),
        (b"{", "truncated"),
        (b"[]", "`$`"),
        (b'{"title":1}', "`$.title`"),
        (b'{"title":""}', "`$.title`"),
        (b'{"titel":"x"}', "titel"),
        (b'{"title":"a","title":"b"}', "`$.title` is given twice"),
        (b'{"title":"a","titl\\u0065":"b"}', "`$.title` is given twice"),
        (b'{"title":"\xff"}', "UTF-8"),
        (b'{"title":"\\ud800"}', "surrogate"),
        (b'{"metadata":{"x":NaN}}', "`$"),
        (b'{"participants":[{"principalId":"a"},{"principalId":"b c"}]}', "`$.participants[1].principalId`"),
        (b'{"participants":[{"principalId":"a","role":"king"}]}', "`$.participants[0].role`"),
        (b'{"metadata":' + b'{"a":' * 512 + b"1" + b"}" * 512 + b"}", "512"),
        (b'{"threadId":"a/b"}', "`$.threadId`"),
    ],
)
async def test_a_malformed_body_is_named_by_its_path(alice: Person, body: bytes, complaint: str) -> None:
    answer = await alice.call("POST", "/v1/threads", content=body, expect=400)
    assert answer.json()["code"] == "invalid_request"
    assert complaint in answer.json()["message"]


@pytest.mark.parametrize(
    "media_type", ["application/json", "application/json; charset=utf-8", 'Application/JSON;charset="UTF-8"']
)
async def test_json_may_be_called_so_in_several_ways(alice: Person, media_type: str) -> None:
    await alice.call("POST", "/v1/threads", content=b"{}", headers={"Content-Type": media_type}, expect=201)


@pytest.mark.requirement("PR-6-01")
@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "application/json; charset=latin-1"},
        {"Content-Type": "application/json", "Content-Encoding": "gzip"},
    ],
)
async def test_a_body_that_is_declared_to_be_something_else_is_refused(alice: Person, headers: dict[str, str]) -> None:
    await alice.call("POST", "/v1/threads", content=b"{}", headers=headers, expect=400)


@pytest.mark.requirement("PR-3-09")
async def test_a_body_over_the_limit_is_refused_by_its_declared_length() -> None:
    async with a_world(limits={"body_bytes": 300}) as world:
        alice = await world.user("alice")
        await alice.post("/v1/threads", {"title": "x" * 280})
        answer = await alice.post("/v1/threads", {"title": "x" * 300}, expect=413)
        assert answer.json()["code"] == "payload_too_large"


async def test_a_body_over_the_limit_is_refused_while_it_is_read() -> None:
    async with a_world(limits={"body_bytes": 300}) as world:
        sent = 0

        async def endless() -> object:
            nonlocal sent
            for _ in range(1_000):
                sent += 100
                yield b" " * 100

        answer = await world.admin.http.post("/v1/threads", content=endless())  # type: ignore[arg-type]
        assert answer.status_code == 413


# --- what goes wrong inside -------------------------------------------------------------------------------------------------------


def a_failing_application(world: World, error: BaseException) -> BubbleApp:
    operations = Operations()

    @operations.add("GET", "/fails", summary="Fails", tag="Test", access="none")
    async def fails(call: Call) -> bytes:  # noqa: ARG001 - it fails
        raise error

    world.app._router = make_router(operations, lambda _: world.app.services)
    return world.app


@pytest.mark.requirement("PR-3-11")
async def test_a_fault_of_the_server_shows_nothing_of_itself(world: World, caplog: pytest.LogCaptureFixture) -> None:
    app = a_failing_application(world, RuntimeError("the password is swordfish"))
    async with httpx2.AsyncClient(transport=StreamingASGITransport(app), base_url=URL) as client:
        with caplog.at_level(logging.ERROR, logger="bubble"):
            answer = await client.get("/fails", headers={"X-Request-Id": "find-me"})
    assert answer.status_code == 500
    assert answer.json() == {"code": "internal", "message": "The server failed at this request."}
    assert "swordfish" not in answer.text
    assert "find-me" in str(caplog.records[0].msg)


# --- rates and drains -------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("PR-3-10", "PR-8-23")
async def test_a_principal_that_asks_too_often_is_told_when_to_come_back() -> None:
    async with a_world(rates={"requests_per_second": 0.001, "requests_burst": 3}) as world:
        statuses = [(await world.admin.get("/v1/whoami", expect=None)).status_code for _ in range(4)]
        assert statuses == [200, 200, 200, 429]
        answer = await world.admin.get("/v1/whoami", expect=429)
        assert answer.json()["code"] == "rate_limited"
        assert int(answer.headers["retry-after"]) > 100


@pytest.mark.requirement("PR-8-23")
async def test_one_principal_does_not_use_up_anothers_rate() -> None:
    async with a_world(rates={"requests_per_second": 0.001, "requests_burst": 4}) as world:
        alice = await world.user("alice")  # two requests of the admin
        for _ in range(4):
            await alice.get("/v1/whoami")
        await alice.get("/v1/whoami", expect=429)
        await world.admin.get("/v1/whoami")


async def test_the_rate_is_600_a_second_with_bursts_of_2000_by_default(world: World) -> None:
    rates = world.app.settings.rates
    assert (rates.requests_per_second, rates.requests_burst) == (600, 2_000)


@pytest.mark.requirement("PR-3-12", "PR-6-08")
async def test_a_draining_server_takes_no_more_requests_but_is_alive(world: World, alice: Person) -> None:
    await world.nobody.get("/readyz")
    await world.app.drain()
    for path in ("/readyz", "/v1/whoami", "/v1/threads"):
        answer = await alice.get(path, expect=503)
        assert answer.json()["code"] == "unavailable"
        assert answer.headers["connection"] == "close"
    assert (await world.nobody.get("/healthz")).status_code == 200
    assert (await world.nobody.get("/metrics")).status_code == 200


@pytest.mark.requirement("PR-3-12", "PR-6-08")
async def test_a_server_whose_store_is_out_of_reach_is_not_ready(world: World) -> None:
    assert (await world.nobody.get("/readyz")).json() == {"status": "ready"}
    await world.store.close()
    answer = await world.nobody.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["code"] == "unavailable"


@pytest.mark.requirement("PR-6-07")
async def test_a_server_that_answers_is_alive(world: World) -> None:
    assert (await world.nobody.get("/healthz")).json() == {"status": "ok"}
