"""Requests, typed errors, and what is tried again."""

from __future__ import annotations

import json
import logging

import httpx2
import pytest
from msgspec import UNSET

from bubble.client.backoff import Backoff
from bubble.client.events import EventLog
from bubble.client.http import Call, HttpClient, json_body
from bubble.client.tokens import TokenProvider, TokenSource
from bubble.protocol.errors import (
    BubbleError,
    Conflict,
    Forbidden,
    InternalError,
    InvalidRequest,
    NotFound,
    PayloadTooLarge,
    RateLimited,
    Unauthenticated,
    Unavailable,
)
from bubble.protocol.events import RunFinished

pytestmark = pytest.mark.anyio

FIRST = "t-1"
Step = httpx2.Response | Exception
GET = Call(method="GET", path="/v1/whoami", repeatable=True)
POST = Call(method="POST", path="/v1/threads", body=b"{}", repeatable=False)
STORED = b'{"seq":1,"createdAt":"2026-05-06T12:34:56.789Z","type":"run_finished","principalId":"p","runId":"r"}'


class Wire:
    """Answers requests by a script, and notes them and the waits between them."""

    def __init__(
        self,
        *steps: Step,
        token: TokenProvider = FIRST,
        retry_for: float = 1_000.0,
        address: str = "http://bubble.test",
    ) -> None:
        self.steps = list(steps)
        self.requests: list[httpx2.Request] = []
        self.waits: list[float] = []
        self.now = 0.0
        self.http = HttpClient(
            address,
            TokenSource(token),
            transport=httpx2.MockTransport(self._answer),
            retry_for=retry_for,
            backoff=Backoff(first=1.0, longest=8.0, random=lambda: 1.0),
            sleep=self._sleep,
            monotonic=lambda: self.now,
        )

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        step = self.steps.pop(0)
        if isinstance(step, Exception):
            raise step
        return step

    async def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


def error(status: int, code: str, *, details: object = None, retry_after: str | None = None) -> httpx2.Response:
    body = {"code": code, "message": f"It is {code}."} | ({} if details is None else {"details": details})
    return httpx2.Response(status, json=body, headers={} if retry_after is None else {"Retry-After": retry_after})


def done(body: bytes = b"{}", status: int = 200) -> httpx2.Response:
    return httpx2.Response(status, content=body)


REFUSED = httpx2.ConnectError("refused")
CUT = httpx2.ReadError("cut")


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, "invalid_request", InvalidRequest),
        (401, "unauthenticated", Unauthenticated),
        (403, "forbidden", Forbidden),
        (404, "not_found", NotFound),
        (409, "conflict", Conflict),
        (413, "payload_too_large", PayloadTooLarge),
        (500, "internal", InternalError),
        (422, "invented_later", InternalError),
    ],
)
async def test_each_code_becomes_its_error_at_the_first_attempt(
    status: int, code: str, kind: type[BubbleError]
) -> None:
    wire = Wire(error(status, code, details={"headSeq": 7}))
    with pytest.raises(kind, match=f"It is {code}.") as failed:
        await wire.http.send(GET)
    assert failed.value.details == {"headSeq": 7}
    assert len(wire.requests) == 1


@pytest.mark.parametrize(
    ("status", "kind"),
    [(404, NotFound), (413, PayloadTooLarge), (418, InternalError), (500, InternalError)],
)
async def test_an_answer_that_is_no_bubble_servers_gets_a_type_by_its_status(
    status: int, kind: type[BubbleError]
) -> None:
    with pytest.raises(kind, match="not as a Bubble server does"):
        await Wire(httpx2.Response(status, html="<h1>nginx</h1>")).http.send(GET)


async def test_a_page_for_people_is_no_success_even_where_no_body_was_expected() -> None:
    with pytest.raises(InternalError, match="answered 200, and not as a Bubble server does"):
        await Wire(httpx2.Response(200, html="<h1>Hello</h1>")).http.delete("/v1/threads/t")


async def test_a_redirect_names_the_address_to_use() -> None:
    moved = httpx2.Response(308, headers={"Location": "https://elsewhere.test/"})
    with pytest.raises(InvalidRequest, match=r"use that address"):
        await Wire(moved).http.send(GET)


@pytest.mark.parametrize(
    ("address", "too_much"), [("http://bubble.test/v1", "/v1"), ("http://bubble.test/bubble/threads", "/threads")]
)
async def test_an_address_with_too_much_at_its_end_is_named_with_what_to_leave_away(
    address: str, too_much: str
) -> None:
    nowhere = httpx2.Response(404, json={"code": "not_found", "message": "There is no such route."})
    with pytest.raises(NotFound) as refused:
        await Wire(nowhere, address=address).http.send(GET)
    assert refused.value.message == f'There is no such route at {address}: leave "{too_much}" away from the address.'
    with pytest.raises(NotFound, match=r"^There is no such route\.$"):
        await Wire(nowhere).http.send(GET)


@pytest.mark.parametrize("step", [REFUSED, CUT, httpx2.ReadTimeout("slow"), error(503, "unavailable")])
async def test_what_may_be_repeated_is_tried_again_with_growing_waits(step: Step) -> None:
    wire = Wire(step, step, step, done())
    await wire.http.send(GET)
    assert wire.waits == [1, 2, 4]


async def test_a_502_of_a_proxy_is_tried_again_too() -> None:
    wire = Wire(httpx2.Response(502, text="Bad Gateway"), done())
    await wire.http.send(GET)
    assert wire.waits == [1]


@pytest.mark.parametrize("step", [CUT, httpx2.ReadTimeout("slow"), error(503, "unavailable")])
async def test_what_may_not_be_repeated_is_not_when_the_server_may_have_acted(step: Step) -> None:
    wire = Wire(step)
    with pytest.raises(Unavailable):
        await wire.http.send(POST)
    assert len(wire.requests) == 1


@pytest.mark.parametrize("step", [REFUSED, error(429, "rate_limited", retry_after="0")])
async def test_what_may_not_be_repeated_is_when_the_server_certainly_did_nothing(step: Step) -> None:
    wire = Wire(step, done())
    await wire.http.send(POST)
    assert len(wire.requests) == 2


async def test_retry_after_is_heeded() -> None:
    wire = Wire(error(429, "rate_limited", retry_after="17"), error(503, "unavailable", retry_after="9"), done())
    await wire.http.send(GET)
    assert wire.waits == [17 + 1, 9]


async def test_attempts_end_when_their_time_is_over_and_the_last_reason_is_raised() -> None:
    wire = Wire(*[REFUSED] * 20, retry_for=20)
    with pytest.raises(Unavailable, match=r"Cannot reach http://bubble\.test: refused"):
        await wire.http.send(GET)
    assert wire.waits == [1, 2, 4, 8]


async def test_that_nobody_answers_is_in_the_log_at_once_and_once_and_so_is_the_end_of_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    wire = Wire(*[REFUSED] * 3, *[done()] * 2, *[REFUSED] * 9, done())
    with caplog.at_level(logging.INFO, logger="bubble.client"):
        for _ in range(3):
            await wire.http.send(GET)
    away = "Cannot reach http://bubble.test: refused. Trying again."
    assert [(each.levelname, each.getMessage()) for each in caplog.records] == [
        ("WARNING", away),
        ("INFO", "Reached http://bubble.test."),
        ("WARNING", away),
        ("INFO", "Reached http://bubble.test."),
    ]


async def test_what_is_not_tried_again_is_not_in_the_log_for_it_is_raised(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(Unavailable):
        await Wire(REFUSED, retry_for=0.0).http.send(GET)
    with pytest.raises(NotFound):
        await Wire(error(404, "not_found")).http.send(GET)
    assert caplog.records == []


async def test_a_wait_that_would_take_too_long_is_not_begun() -> None:
    wire = Wire(error(429, "rate_limited", retry_after="60"), retry_for=20)
    with pytest.raises(RateLimited) as limited:
        await wire.http.send(GET)
    assert limited.value.retry_after == 60
    assert wire.waits == []


async def test_a_refused_bearer_is_replaced_once_if_there_is_another_one() -> None:
    tokens = iter(["old", "new"])
    wire = Wire(error(401, "unauthenticated"), done(), token=lambda: next(tokens))
    await wire.http.send(POST)
    assert [request.headers["authorization"] for request in wire.requests] == ["Bearer old", "Bearer new"]


async def test_a_refused_bearer_without_another_one_is_the_servers_error() -> None:
    wire = Wire(error(401, "unauthenticated"))
    with pytest.raises(Unauthenticated, match="It is unauthenticated"):
        await wire.http.send(GET)


async def test_deleting_what_a_lost_attempt_deleted_is_a_success() -> None:
    wire = Wire(CUT, error(404, "not_found"))
    await wire.http.delete("/v1/threads/t")
    wire = Wire(REFUSED, error(404, "not_found"))
    with pytest.raises(NotFound):
        await wire.http.delete("/v1/threads/t")


async def test_an_append_is_sent_again_under_the_same_key_with_the_same_bytes() -> None:
    wire = Wire(CUT, error(503, "unavailable"), done(STORED, 201))
    event = RunFinished(principal_id="p", run_id="r")
    stored = await EventLog(wire.http).append("t", event, expected_head=4)
    assert stored.seq == 1
    keys = {request.headers["idempotency-key"] for request in wire.requests}
    assert len(wire.requests) == 3
    assert len(keys) == 1
    assert {request.content for request in wire.requests} == {b'{"type":"run_finished","principalId":"p","runId":"r"}'}
    assert {request.headers["bubble-expected-head"] for request in wire.requests} == {"4"}


async def test_two_appends_have_two_keys() -> None:
    wire = Wire(done(STORED, 201), done(STORED, 201))
    for _ in range(2):
        await EventLog(wire.http).append("t", RunFinished(principal_id="p", run_id="r"))
    assert len({request.headers["idempotency-key"] for request in wire.requests}) == 2


async def test_a_malformed_event_is_refused_before_anything_is_sent() -> None:
    wire = Wire()
    with pytest.raises(InvalidRequest, match="runId"):
        await EventLog(wire.http).append("t", {"type": "run_finished", "principalId": "p"})
    assert wire.requests == []


@pytest.mark.parametrize("thread_id", ["../principals", "a/b", "", "ü", "a?b", "."])
async def test_an_id_never_becomes_another_path(thread_id: str) -> None:
    wire = Wire()
    with pytest.raises(InvalidRequest, match="threadId"):
        await EventLog(wire.http).page(thread_id)
    assert wire.requests == []


async def test_a_held_page_may_take_longer_than_other_answers() -> None:
    wire = Wire(done(b'{"events":[],"nextSeq":null}'))
    await EventLog(wire.http).page("t", wait_ms=20_000)
    timeout = wire.requests[0].extensions["timeout"]
    assert (timeout["read"], timeout["connect"]) == (50, 30)
    assert wire.requests[0].url.params["waitMs"] == "20000"


async def test_an_answer_that_cannot_be_read_is_an_error_of_ours() -> None:
    with pytest.raises(InternalError, match="cannot be read"):
        await Wire(done(b"<html>")).http.get("/v1/whoami", dict)


def test_a_body_has_the_members_that_are_given_null_included() -> None:
    assert json.loads(json_body(a=1, b=None, c=UNSET)) == {"a": 1, "b": None}
