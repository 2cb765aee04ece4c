"""What the server tells of itself: protocol, figures, log lines, traces."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from bubble.protocol.errors import RateLimited, Unavailable
from bubble.server import background
from bubble.server.logs import configure_logging, logger
from bubble.server.options import LogOptions
from bubble.server.rates import RequestRates
from bubble.server.tracing import Tracing
from bubble.store.memory import MemoryStore
from tests.server.streams import streaming
from tests.server.world import ADMIN_TOKEN, Person, World, a_world

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("PR-6-11", "PR-2-15")
async def test_the_protocol_tells_its_version_the_limits_in_force_and_what_is_installed() -> None:
    async with a_world(limits={"subscriptions": 7}) as world:
        told = (await world.nobody.get("/v1/protocol")).json()
    assert told["protocolVersion"] == 1
    assert told["extensions"] == [{"name": "artifacts", "version": 1}]
    assert (told["limits"]["subscriptions"], told["limits"]["eventBytes"]) == (7, 1024 * 1024)


# --- figures ----------------------------------------------------------------------------------------------------------------------


async def figures(world: World) -> dict[str, float]:
    lines = (await world.nobody.get("/metrics")).text.splitlines()
    pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in pairs}


@pytest.mark.requirement("PR-6-09")
async def test_the_figures_follow_what_happens(world: World, alice: Person) -> None:
    before = await figures(world)
    thread = await alice.thread()
    await alice.append(thread, alice.starts("r"))
    await alice.append(thread, alice.starts("r"), expect=409)
    after = await figures(world)
    route = 'method="POST",route="/v1/threads/{threadId}/events"'
    assert after[f'bubble_http_requests_total{{{route},status="201"}}'] == 1
    assert after[f'bubble_http_requests_total{{{route},status="409"}}'] == 1
    assert after[f"bubble_http_request_seconds_count{{{route}}}"] == 2
    assert after["bubble_appends_total"] == before["bubble_appends_total"] + 1
    assert after["bubble_appends_refused_total"] == before["bubble_appends_refused_total"] + 1
    assert after["bubble_commits_total"] > before["bubble_commits_total"]
    assert {"bubble_commit_seconds_total", "bubble_largest_batch", "bubble_deliveries_total"} <= after.keys()
    assert {"bubble_connections", "bubble_subscriptions", "bubble_loop_lag_seconds"} <= after.keys()


async def test_the_figures_tell_of_messages_that_are_watched(world: World, alice: Person) -> None:
    thread = await alice.thread()
    path = f"/v1/threads/{thread}/messages/stream"
    async with streaming(alice, path) as one, streaming(alice, f"{path}?grouping=run") as other:
        for stream in (one, other):
            await stream.take(2)
        during = await figures(world)
        assert (during["bubble_watched_threads"], during["bubble_message_viewers"]) == (2, 2)
        assert during["bubble_events_folded_total"] == 2  # the thread's one event, in each grouping
    await alice.get(f"/v1/threads/{thread}/messages")
    after = await figures(world)
    assert (after["bubble_watched_threads"], after["bubble_message_viewers"]) == (0, 0)
    assert after["bubble_events_folded_total"] == 3


async def test_unknown_paths_do_not_fill_the_figures(world: World) -> None:
    for number in range(20):
        await world.nobody.get(f"/nowhere/{number}")
    assert (
        'bubble_http_requests_total{method="GET",route="-",status="404"} 20.0'
        in (await world.nobody.get("/metrics")).text
    )


async def test_two_applications_count_for_themselves() -> None:
    async with a_world() as one, a_world() as other:
        await one.admin.thread()
        assert (await figures(one))["bubble_commits_total"] > (await figures(other))["bubble_commits_total"]


# --- the log ----------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def _logging_as_before() -> Iterator[None]:
    root, own = logging.getLogger(), logging.getLogger("bubble")
    handlers, levels = list(root.handlers), (root.level, own.level)
    yield
    root.handlers[:] = handlers
    root.setLevel(levels[0])
    own.setLevel(levels[1])


@pytest.mark.usefixtures("_logging_as_before")
@pytest.mark.requirement("PR-3-14")
async def test_a_line_per_request_names_it_and_holds_no_secret_and_no_payload() -> None:
    out = io.StringIO()
    configure_logging(LogOptions(format="json"), stream=out)
    async with a_world(log={"requests": True}) as world:
        thread = await world.admin.thread()
        await world.admin.append(thread, world.admin.starts("r"))
        await world.admin.append(thread, world.admin.says("r", "swordfish"))
        await world.nobody.get("/login?code=swordfish")
        await world.nobody.get("/v1/ws?ticket=swordfish")
        answer = await world.admin.get("/v1/whoami", headers={"X-Request-Id": "mine"})
        assert answer.headers["x-request-id"] == "mine"
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    last = lines[-1]
    assert {name: last[name] for name in ("event", "level", "method", "path", "status", "principal", "request_id")} == {
        "event": "request",
        "level": "info",
        "method": "GET",
        "path": "/v1/whoami",
        "status": 200,
        "principal": "admin",
        "request_id": "mine",
    }
    assert "swordfish" not in out.getvalue()
    assert ADMIN_TOKEN not in out.getvalue()


@pytest.mark.usefixtures("_logging_as_before")
def test_a_console_line_is_for_people() -> None:
    out = io.StringIO()
    configure_logging(LogOptions(format="console", level="warning"), stream=out)
    logger.info("not this")
    logger.warning("mind the gap", width=3)
    logging.getLogger("somebody.else").warning("%s of others", "words")
    lines = out.getvalue().splitlines()
    assert len(lines) == 2
    assert "mind the gap" in lines[0]
    assert "width=3" in lines[0]
    assert "words of others" in lines[1]


@pytest.mark.usefixtures("_logging_as_before")
def test_an_exception_in_a_json_line_is_one_line() -> None:
    out = io.StringIO()
    configure_logging(LogOptions(format="json"), stream=out)
    logger.error("it failed", exc_info=RuntimeError("boom"))
    [line] = out.getvalue().splitlines()
    assert "RuntimeError: boom" in json.loads(line)["exception"]


# --- traces -----------------------------------------------------------------------------------------------------------------------


async def test_a_request_is_a_span_of_its_callers_trace(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    monkeypatch.setattr("opentelemetry.trace.get_tracer_provider", lambda: provider)
    tracing = Tracing()
    assert tracing.is_on
    object.__setattr__(world.app.services, "tracing", tracing)
    trace_id = "0af7651916cd43dd8448eb211c80319c"
    thread = await world.admin.thread()
    await world.admin.get(f"/v1/threads/{thread}", headers={"traceparent": f"00-{trace_id}-b7ad6b7169203331-01"})
    span = spans.get_finished_spans()[-1]
    assert span.name == "GET /v1/threads/{threadId}"
    assert span.context is not None
    assert format(span.context.trace_id, "032x") == trace_id
    assert span.attributes is not None
    assert span.attributes["http.response.status_code"] == 200
    provider.shutdown()


def test_without_a_provider_there_are_no_spans() -> None:
    assert not Tracing().is_on


# --- rates ------------------------------------------------------------------------------------------------------------------------


class Seconds:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def allowed(rates: RequestRates, principal_id: str, attempts: int) -> int:
    count = 0
    for _ in range(attempts):
        try:
            rates.take(principal_id)
        except RateLimited:
            continue
        count += 1
    return count


def test_a_bucket_holds_its_burst_and_refills_at_its_rate() -> None:
    seconds = Seconds()
    rates = RequestRates(rate=10, burst=5, now=seconds)
    assert allowed(rates, "a", 20) == 5
    seconds.now = 0.3
    assert allowed(rates, "a", 20) == 3
    seconds.now = 100
    assert allowed(rates, "a", 20) == 5
    assert allowed(rates, "b", 20) == 5


def test_the_wait_is_told() -> None:
    rates = RequestRates(rate=0.5, burst=1, now=Seconds())
    rates.take("a")
    with pytest.raises(RateLimited) as refusal:
        rates.take("a")
    assert refusal.value.retry_after == pytest.approx(2.0)


def test_a_rate_of_0_is_no_limit() -> None:
    assert allowed(RequestRates(rate=0, burst=1, now=Seconds()), "a", 5_000) == 5_000


def test_principals_that_were_quiet_are_forgotten() -> None:
    seconds = Seconds()
    rates = RequestRates(rate=1, burst=1, now=seconds)
    for number in range(20_000):
        seconds.now = number
        rates.take(f"p{number}")
    assert len(rates) <= 4_096


def test_principals_in_debt_are_not() -> None:
    seconds = Seconds()
    rates = RequestRates(rate=0.001, burst=1, now=seconds)
    for number in range(10_000):
        rates.take(f"p{number}")
    assert len(rates) == 10_000
    with pytest.raises(RateLimited):
        rates.take("p0")


# --- background work --------------------------------------------------------------------------------------------------------------


async def test_background_work_goes_on_after_the_store_was_out_of_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "PURGE_SECONDS", 0.001)
    purged = asyncio.Event()
    attempts = 0

    async def purge(_: MemoryStore, *, idempotency_ms: int) -> None:
        nonlocal attempts
        attempts += 1
        if attempts < 3:
            raise Unavailable("The store is out of reach.")
        assert idempotency_ms == 24 * 3_600_000
        purged.set()

    monkeypatch.setattr(MemoryStore, "purge", purge)
    async with a_world(), asyncio.timeout(5):
        await purged.wait()
