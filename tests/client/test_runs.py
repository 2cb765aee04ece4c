"""Runs on a real server: what is said arrives in order and once, and the run is finished whatever happens."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Mapping

import anyio
import httpx2
import pytest
from msgspec import UNSET

from bubble.client import Backoff, BubbleConnection, Run, Socket
from bubble.client import runs as runs_module
from bubble.protocol.errors import Conflict, Forbidden, InvalidRequest, NotFound
from bubble.protocol.events import RunFinished, RunInterruptRequested, RunStarted, SequencedEvent, raw
from bubble.testing.asgi import StreamingASGITransport
from bubble.testing.asgi_sockets import asgi_connector
from bubble.testing.server import BubbleServer
from tests.client.logs import log_of, outcome_of, parts

pytestmark = pytest.mark.anyio


@pytest.fixture
async def thread_id(bubble_client: BubbleConnection) -> str:
    return (await bubble_client.create_thread()).thread_id


@pytest.mark.requirement("WS-37")
async def test_a_run_starts_says_its_text_and_finishes(bubble_client: BubbleConnection, thread_id: str) -> None:
    async with bubble_client.run(thread_id, kind="agent_work", snapshot_seq=1) as run:
        for word in ("hel", "lo"):
            await run.text(word)
    events = await log_of(bubble_client, thread_id)
    assert events[0].event == RunStarted(principal_id="admin", run_id=run.run_id, kind="agent_work", snapshot_seq=1)
    assert run.started_seq == events[0].seq
    assert events[-1].event == RunFinished(principal_id="admin", run_id=run.run_id, outcome="success")
    assert parts(events) == [
        {"type": "text-start", "id": "text-1"},
        {"type": "text-delta", "id": "text-1", "delta": "hel"},
        {"type": "text-delta", "id": "text-1", "delta": "lo"},
        {"type": "text-end", "id": "text-1"},
    ]


async def test_another_chunk_ends_the_text_before_it(bubble_client: BubbleConnection, thread_id: str) -> None:
    async with bubble_client.run(thread_id) as run:
        await run.text("one")
        await run.part({"type": "start-step"})
        await run.part({"kind": "agent_event", "name": "empty"}, version="bubble-v1")
        await run.text("two")
    kinds = [each.get("type") or each.get("kind") for each in parts(await log_of(bubble_client, thread_id))]
    assert kinds == [
        *("text-start", "text-delta", "text-end", "start-step", "agent_event"),
        *("text-start", "text-delta", "text-end"),
    ]


async def test_a_raw_chunk_goes_out_with_its_own_bytes(bubble_client: BubbleConnection, thread_id: str) -> None:
    payload = b'{"type":"data-x",  "n":1e400, "half":"\\ud83d"}'
    async with bubble_client.run(thread_id) as run:
        await run.part(raw({"type": "start"}).__class__(payload))
    assert any(payload in event.text for event in await log_of(bubble_client, thread_id))


async def test_an_emoji_that_was_split_in_two_survives(bubble_client: BubbleConnection, thread_id: str) -> None:
    async with bubble_client.run(thread_id) as run:
        await run.text("\ud83d")
        await run.text("\ude00")
    deltas = [each["delta"] for each in parts(await log_of(bubble_client, thread_id)) if "delta" in each]
    assert deltas == ["\ud83d", "\ude00"]


async def test_flushing_waits_until_everything_is_durable(bubble_client: BubbleConnection, thread_id: str) -> None:
    async with bubble_client.run(thread_id) as run:
        for number in range(300):
            await run.text(str(number))
        await run.flush()
        assert len(await log_of(bubble_client, thread_id)) == 302


async def test_a_malformed_chunk_is_refused_at_once_and_the_run_goes_on(
    bubble_client: BubbleConnection, thread_id: str
) -> None:
    async with bubble_client.run(thread_id) as run:
        with pytest.raises(InvalidRequest, match="part"):
            await run.part({"no": "type"})
        await run.text("still here")
    assert await outcome_of(bubble_client, thread_id) == "success"


async def test_an_exception_fails_the_run_and_goes_on(bubble_client: BubbleConnection, thread_id: str) -> None:
    async def work() -> None:
        async with bubble_client.run(thread_id) as run:
            await run.text("half a")
            raise LookupError("no model")

    with pytest.raises(LookupError, match="no model"):
        await work()
    events = await log_of(bubble_client, thread_id)
    assert [event.type for event in events][-2:] == ["message_part", "run_finished"]
    assert await outcome_of(bubble_client, thread_id) == "failed"


async def test_cancelling_interrupts_the_run_after_what_was_said(
    bubble_client: BubbleConnection, thread_id: str
) -> None:
    said = asyncio.Event()

    async def work() -> None:
        async with bubble_client.run(thread_id) as run:
            await run.text("thinking")
            said.set()
            await anyio.sleep_forever()

    task = asyncio.create_task(work())
    await said.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await outcome_of(bubble_client, thread_id) == "interrupted"
    assert len(parts(await log_of(bubble_client, thread_id))) == 3


async def test_a_cancel_scope_interrupts_the_run_too(bubble_client: BubbleConnection, thread_id: str) -> None:
    with anyio.CancelScope() as scope:
        async with bubble_client.run(thread_id) as run:
            await run.text("thinking")
            scope.cancel()
            await anyio.sleep_forever()
    assert await outcome_of(bubble_client, thread_id) == "interrupted"


async def test_closing_a_generator_interrupts_the_run_within_it(
    bubble_client: BubbleConnection, thread_id: str
) -> None:
    async def words() -> AsyncIterator[str]:
        async with bubble_client.run(thread_id) as run:
            await run.text("a")
            yield "a"

    generator = words()
    assert await anext(generator) == "a"
    await generator.aclose()  # type: ignore[attr-defined]
    assert await outcome_of(bubble_client, thread_id) == "interrupted"


class Holding(httpx2.AsyncBaseTransport):
    """Holds back the answers to appends until it is let go; the server has acted by then."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self.acted = asyncio.Event()
        self.gate = asyncio.Event()
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._inner.handle_async_request(request)
        if "/events" in request.url.path:
            self.acted.set()
            await self.gate.wait()
        return response


def client_with(server: BubbleServer, transport: httpx2.AsyncBaseTransport) -> BubbleConnection:
    return BubbleConnection(
        server.url,
        token=server.admin_token,
        backoff=Backoff(first=0.0005, longest=0.005),
        transport=transport,
        connector=asgi_connector(server.app),
    )


async def test_a_run_that_is_cancelled_while_it_starts_is_finished_if_it_started(
    bubble_server: BubbleServer, thread_id: str
) -> None:
    holding = Holding(StreamingASGITransport(bubble_server.app))
    async with client_with(bubble_server, holding) as client:

        async def work() -> None:
            async with client.run(thread_id):
                raise AssertionError("The block must not be entered.")

        task = asyncio.create_task(work())
        await holding.acted.wait()
        task.cancel()
        await asyncio.sleep(0)
        holding.gate.set()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await outcome_of(bubble_server.admin, thread_id) == "interrupted"


class Cut(httpx2.AsyncBaseTransport):
    """A network that is gone from some moment on."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self.is_gone = False
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if self.is_gone:
            raise httpx2.ConnectError("no network")
        return await self._inner.handle_async_request(request)


async def test_a_cancelled_run_does_not_wait_for_ever_for_a_server_that_is_gone(
    bubble_server: BubbleServer, thread_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs_module, "_GRACE", 0.05)
    network = Cut(StreamingASGITransport(bubble_server.app))
    async with client_with(bubble_server, network) as client:
        inside = asyncio.Event()

        async def work() -> None:
            async with client.run(thread_id):
                inside.set()
                await anyio.sleep_forever()

        task = asyncio.create_task(work())
        await inside.wait()
        network.is_gone = True
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as cancelled, anyio.fail_after(10):
            await task
    assert any("could not be finished" in note for note in cancelled.value.__notes__)
    assert await outcome_of(bubble_server.admin, thread_id) == "open"


class Losing(httpx2.AsyncBaseTransport):
    """Loses requests before they arrive and answers after they were given, at random."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, seed: int) -> None:
        self.lost = 0
        self._inner = inner
        self._random = random.Random(seed)  # noqa: S311 - a test's dice

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if self._random.random() < 0.2:
            self.lost += 1
            raise httpx2.ConnectError("refused")
        response = await self._inner.handle_async_request(request)
        if self._random.random() < 0.2:
            self.lost += 1
            await response.aread()
            await response.aclose()
            raise httpx2.ReadError("cut")
        return response


@pytest.mark.requirement("PR-6-46")
@pytest.mark.parametrize("seed", range(5))
async def test_broken_connections_neither_lose_nor_double_what_a_run_says(
    bubble_server: BubbleServer, thread_id: str, seed: int
) -> None:
    losing = Losing(StreamingASGITransport(bubble_server.app), seed)
    words = [f"word-{number} " for number in range(300)]
    async with client_with(bubble_server, losing) as client, client.run(thread_id) as run:
        for number, word in enumerate(words):
            await run.text(word)
            if number % 7 == 0:
                await run.flush()
    events = await log_of(bubble_server.admin, thread_id)
    said = [each["delta"] for each in parts(events) if "delta" in each]
    assert said == words
    assert [event.type for event in events].count("run_started") == 1
    assert await outcome_of(bubble_server.admin, thread_id) == "success"
    assert losing.lost > 10


@pytest.mark.parametrize("watched_already", [False, True])
async def test_a_request_to_stop_is_heard_and_makes_the_outcome_interrupted(
    bubble_server: BubbleServer,
    thread_id: str,
    watched_already: bool,  # noqa: FBT001
) -> None:
    admin = bubble_server.admin
    async with (
        admin.run(thread_id, run_id="other", watch_interrupts=watched_already),
        admin.run(thread_id, watch_interrupts=True) as run,
    ):
        await admin.append_event(thread_id, RunInterruptRequested(principal_id="admin", run_id=run.run_id))
        with anyio.fail_after(10):
            await run.interrupted.wait()
    outcomes = {each.run_id: each.outcome async for each in admin.list_runs(thread_id)}
    assert outcomes == {"other": "success", run.run_id: "interrupted"}


async def test_a_request_that_comes_right_after_the_start_is_not_missed(
    bubble_client: BubbleConnection, thread_id: str
) -> None:
    async with bubble_client.subscribe_thread(thread_id) as events, anyio.create_task_group() as tasks:

        async def stop_whoever_starts() -> None:
            async for stored in events:
                if isinstance(stored.event, RunStarted):
                    request = RunInterruptRequested(principal_id="admin", run_id=stored.event.run_id)
                    await bubble_client.append_event(thread_id, request)
                    return

        tasks.start_soon(stop_whoever_starts)
        async with bubble_client.run(thread_id, watch_interrupts=True) as run:
            with anyio.fail_after(10):
                await run.interrupted.wait()


async def test_somebody_who_follows_the_thread_anyway_passes_events_on(
    bubble_client: BubbleConnection, thread_id: str
) -> None:
    async with bubble_client.run(thread_id) as run:
        for run_id in ("another", run.run_id):
            assert not run.interrupted.is_set()
            text = b'{"seq":9,"createdAt":"2026-05-06T12:34:56.789Z","type":"run_interrupt_requested","principalId":"a","runId":"%s"}'
            run.observe(SequencedEvent.from_text(text % run_id.encode()))
        assert run.interrupted.is_set()


async def test_watching_needs_the_right_to_read(bubble_server: BubbleServer, thread_id: str) -> None:
    alice = await bubble_server.register("alice")
    async with bubble_server.connect(alice) as client:
        with pytest.raises(NotFound):
            async with client.run(thread_id, watch_interrupts=True):
                raise AssertionError("The block must not be entered.")


async def test_watches_end_with_the_last_run_that_needs_them(bubble_client: BubbleConnection, thread_id: str) -> None:
    tasks = []
    for _ in range(5):
        async with bubble_client.run(thread_id, watch_interrupts=True):
            pass
        tasks.append(len(asyncio.all_tasks()))
    assert bubble_client._listening._threads == {}
    assert tasks[-1] <= tasks[0]


async def test_a_run_that_somebody_else_ended_is_a_conflict(bubble_client: BubbleConnection, thread_id: str) -> None:
    run = await bubble_client.run(thread_id).__aenter__()
    await bubble_client.append_event(thread_id, RunFinished(principal_id="admin", run_id=run.run_id))
    await run.text("too late")
    with pytest.raises(Conflict):
        await run.__aexit__(None, None, None)
    assert await outcome_of(bubble_client, thread_id) is UNSET


async def test_who_may_not_append_cannot_start(bubble_server: BubbleServer, thread_id: str) -> None:
    alice = await bubble_server.register("alice")
    await bubble_server.admin.put_grant(thread_id, "alice", "observer")
    async with bubble_server.connect(alice) as client:
        with pytest.raises(Forbidden, match=r'lacks "events.run_started"'):
            async with client.run(thread_id):
                raise AssertionError("The block must not be entered.")


async def test_a_right_that_is_lost_in_the_middle_fails_the_run_and_is_told(
    bubble_server: BubbleServer, thread_id: str
) -> None:
    account = await bubble_server.register("alice")
    await bubble_server.admin.put_grant(thread_id, "alice", "participant")
    async with bubble_server.connect(account) as alice:

        async def work() -> None:
            async with alice.run(thread_id) as run:
                await run.text("one")
                await run.flush()
                await bubble_server.admin.put_grant(thread_id, "alice", "observer")
                await run.text("two")
                await run.flush()

        with pytest.raises(Forbidden) as failed:
            await work()
    assert any("could not be finished" in note for note in failed.value.__notes__)


async def test_a_run_can_be_finished_early_and_says_nothing_afterwards(
    bubble_client: BubbleConnection, thread_id: str
) -> None:
    async with bubble_client.run(thread_id) as run:
        await run.text("done")
        await run.finish(outcome="failed")
        await run.finish()
        with pytest.raises(Conflict, match="has finished") as refused:
            await run.text("more")
        assert refused.value.details == {"runId": run.run_id, "state": "finished"}
    assert await outcome_of(bubble_client, thread_id) == "failed"


async def test_a_run_that_is_silent_for_long_keeps_a_connection(
    bubble_server: BubbleServer, thread_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs_module, "_HOLD_AFTER", 0.001)
    connect, connected = asgi_connector(bubble_server.app), asyncio.Event()

    async def noting(url: str, headers: Mapping[str, str]) -> Socket:
        socket = await connect(url, headers)
        connected.set()
        return socket

    transport = StreamingASGITransport(bubble_server.app)
    client = BubbleConnection(bubble_server.url, token=bubble_server.admin_token, transport=transport, connector=noting)
    async with client:
        async with client.run(thread_id):
            with anyio.fail_after(10):
                await connected.wait()
        assert all(not socket._holders for socket in client._sockets._running)


async def test_a_run_is_entered_once(bubble_client: BubbleConnection, thread_id: str) -> None:
    run: Run = bubble_client.run(thread_id)
    async with run:
        pass
    with pytest.raises(RuntimeError, match="entered once"):
        await run.__aenter__()
