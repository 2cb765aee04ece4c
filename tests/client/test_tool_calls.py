"""Tool calls of a run: inputs that come in pieces, consent, outcomes, and results from elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

import anyio
import httpx2
import pytest
from msgspec import UNSET

from bubble.assembler import validate_chunk
from bubble.client import (
    Approval,
    Backoff,
    BubbleConnection,
    Connector,
    Run,
    RunInterrupted,
    Socket,
    ThreadSubscription,
    ToolCall,
)
from bubble.client.hearing import Hearing, may_concern_a_run
from bubble.protocol.errors import Conflict, InvalidRequest, NotFound
from bubble.protocol.events import (
    RunFinished,
    RunInterruptRequested,
    SequencedEvent,
    ToolCallApproval,
    ToolCallResult,
    raw,
)
from bubble.protocol.jsontext import JSONValue
from bubble.testing.asgi import StreamingASGITransport
from bubble.testing.asgi_sockets import asgi_connector
from bubble.testing.server import BubbleServer
from tests.client.logs import outcome_of, parts_of

pytestmark = pytest.mark.anyio


@pytest.fixture
async def bot(bubble_server: BubbleServer) -> AsyncIterator[BubbleConnection]:
    """A client in the name of a bot."""
    async with bubble_server.connect(await bubble_server.register("bot", kind="bot")) as client:
        yield client


@pytest.fixture
async def thread_id(bubble_client: BubbleConnection, bot: BubbleConnection) -> str:
    me = (await bot.who_am_i()).principal_id
    return (await bubble_client.create_thread(participants={me: "participant"})).thread_id


async def calls_of(client: BubbleConnection, thread_id: str) -> list[dict[str, JSONValue]]:
    """The bot's chunks, each one that the AI SDK accepts."""
    chunks = await parts_of(client, thread_id)
    for chunk in chunks:
        validate_chunk(chunk)
    return chunks


async def pieces(*texts: str) -> AsyncIterator[str]:
    for text in texts:
        yield text


async def decide(client: BubbleConnection, run: Run, call: ToolCall, *, reason: str | None = None) -> None:
    """Approves the call, or rejects it for a reason."""
    await client.append_event(
        run.thread_id,
        ToolCallApproval(
            principal_id="admin",
            run_id=run.run_id,
            tool_call_id=call.tool_call_id,
            approved=reason is None,
            reason=UNSET if reason is None else reason,
        ),
    )


async def give_result(client: BubbleConnection, run: Run, call: ToolCall, output: object) -> None:
    """Gives a result from elsewhere."""
    await client.append_event(
        run.thread_id,
        ToolCallResult(
            principal_id="admin",
            run_id=run.run_id,
            tool_call_id=call.tool_call_id,
            input=raw(call.input),
            output=raw(output),
        ),
    )


async def interrupt(client: BubbleConnection, run: Run) -> None:
    await client.append_event(run.thread_id, RunInterruptRequested(principal_id="admin", run_id=run.run_id))


class Cutting:
    """A network whose connections can be cut."""

    def __init__(self, connect: Connector) -> None:
        self.connected = asyncio.Event()
        self.count = 0
        self._connect = connect
        self._socket: Socket | None = None

    async def __call__(self, url: str, headers: Mapping[str, str]) -> Socket:
        self._socket = await self._connect(url, headers)
        self.count += 1
        self.connected.set()
        return self._socket

    async def cut(self) -> None:
        assert self._socket is not None
        self.connected.clear()
        await self._socket.close()


# --- input and outcome ----------------------------------------------------------------------------------------------------------


async def test_a_whole_input_is_one_chunk_and_so_is_its_output(bot: BubbleConnection, thread_id: str) -> None:
    async with bot.run(thread_id) as run:
        call = await run.tool_call("add", {"a": 1, "b": 2}, tool_call_id="c1", title="Add", dynamic=True)
        assert (call.tool_call_id, call.name, call.input) == ("c1", "add", {"a": 1, "b": 2})
        await call.output("counting", preliminary=True)
        await call.output(3)
    assert await calls_of(bot, thread_id) == [
        {
            "type": "tool-input-available",
            "toolCallId": "c1",
            "toolName": "add",
            "title": "Add",
            "dynamic": True,
            "input": {"a": 1, "b": 2},
        },
        {"type": "tool-output-available", "toolCallId": "c1", "output": "counting", "preliminary": True},
        {"type": "tool-output-available", "toolCallId": "c1", "output": 3},
    ]


@pytest.mark.parametrize("value", [None, False, 0, "", [], ["a", "b"], "text"], ids=repr)
async def test_any_json_is_a_whole_input(bot: BubbleConnection, thread_id: str, value: JSONValue) -> None:
    async with bot.run(thread_id) as run:
        await run.tool_call("echo", value)
    [chunk] = await calls_of(bot, thread_id)
    assert (chunk["type"], chunk["input"]) == ("tool-input-available", value)


@pytest.mark.parametrize("given", [pieces('{"a":', "1}"), iter(['{"a":', "1}"])], ids=["async", "plain"])
async def test_an_input_that_comes_in_pieces_is_shown_as_it_comes(
    bot: BubbleConnection, thread_id: str, given: object
) -> None:
    async with bot.run(thread_id) as run:
        call = await run.tool_call(
            "add", given, tool_call_id="c1", provider_executed=True, provider_metadata={"x": {"y": 1}}
        )
        assert call.input == {"a": 1}
    about = {"toolCallId": "c1", "toolName": "add", "providerExecuted": True, "providerMetadata": {"x": {"y": 1}}}
    assert await calls_of(bot, thread_id) == [
        {"type": "tool-input-start", **about},
        {"type": "tool-input-delta", "toolCallId": "c1", "inputTextDelta": '{"a":'},
        {"type": "tool-input-delta", "toolCallId": "c1", "inputTextDelta": "1}"},
        {"type": "tool-input-available", **about, "input": {"a": 1}},
    ]


async def test_the_pieces_of_several_inputs_may_be_said_in_turn(bot: BubbleConnection, thread_id: str) -> None:
    async with bot.run(thread_id) as run:
        one, two = await run.tool_call("one"), await run.tool_call("two")
        await one.input_delta("[1")
        await two.input_delta("[2")
        await one.input_delta("]")
        assert [one.input, two.input] == [None, None]
        await one.input_available()
        await two.input_available([3])
        inputs = [one.input, two.input]
    assert inputs == [[1], [3]]
    assert one.tool_call_id != two.tool_call_id


async def test_an_empty_input_is_an_empty_object(bot: BubbleConnection, thread_id: str) -> None:
    async with bot.run(thread_id) as run:
        call = await run.tool_call("now", pieces())
        assert call.input == {}


async def test_an_input_that_is_no_json_is_taken_as_its_text(bot: BubbleConnection, thread_id: str) -> None:
    async with bot.run(thread_id) as run:
        call = await run.tool_call("sql", pieces("SELECT ", "1"), tool_call_id="c1", input_encoding="text")
        assert call.input == "SELECT 1"
    start, *_, available = await calls_of(bot, thread_id)
    assert start == {"type": "tool-input-start", "toolCallId": "c1", "toolName": "sql", "inputEncoding": "text"}
    assert available["input"] == "SELECT 1"


@pytest.mark.parametrize(
    "text", ['{"a":', "NaN", "[1e999999, Infinity]", "[" * 100_000], ids=["half", "nan", "inf", "deep"]
)
async def test_pieces_that_are_no_json_together_are_shown_as_an_error_and_refused(
    bot: BubbleConnection, thread_id: str, text: str
) -> None:
    async with bot.run(thread_id) as run:
        with pytest.raises(InvalidRequest, match="not JSON"):
            await run.tool_call("add", pieces(text))
        await run.text("Let me try again.")
    refused = next(each for each in await calls_of(bot, thread_id) if each["type"] == "tool-input-error")
    assert (refused["toolName"], refused["input"]) == ("add", text)
    assert "not JSON" in str(refused["errorText"])


async def test_an_iterator_that_fails_fails_the_run_with_the_call_half_said(
    bot: BubbleConnection, thread_id: str
) -> None:
    async def broken() -> AsyncIterator[str]:
        yield '{"a"'
        raise LookupError("no model")

    async def work() -> None:
        async with bot.run(thread_id) as run:
            await run.tool_call("add", broken())

    with pytest.raises(LookupError):
        await work()
    assert [each["type"] for each in await calls_of(bot, thread_id)] == ["tool-input-start", "tool-input-delta"]


async def test_a_call_can_fail_be_denied_or_have_an_input_that_is_of_no_use(
    bot: BubbleConnection, thread_id: str
) -> None:
    async with bot.run(thread_id) as run:
        await (await run.tool_call("a", {}, tool_call_id="c1")).error("no such customer")
        await (await run.tool_call("b", {}, tool_call_id="c2")).denied()
        await (await run.tool_call("c", tool_call_id="c3")).input_error("unknown tool", value={"x": 1})
    chunks = [each for each in await calls_of(bot, thread_id) if each["type"] != "tool-input-available"]
    assert chunks == [
        {"type": "tool-output-error", "toolCallId": "c1", "errorText": "no such customer"},
        {"type": "tool-output-denied", "toolCallId": "c2"},
        {"type": "tool-input-start", "toolCallId": "c3", "toolName": "c"},
        {
            "type": "tool-input-error",
            "toolCallId": "c3",
            "toolName": "c",
            "input": {"x": 1},
            "errorText": "unknown tool",
        },
    ]


async def test_what_needs_a_whole_input_is_refused_before_it_is_there(bot: BubbleConnection, thread_id: str) -> None:
    async with bot.run(thread_id) as run:
        call = await run.tool_call("add")
        for wait in (call.approval, call.result):
            with pytest.raises(InvalidRequest, match="not complete"):
                await wait()
        await call.input_available({})
        with pytest.raises(InvalidRequest, match="is complete"):
            await call.input_delta("{")


# --- consent --------------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("EV-28")
@pytest.mark.parametrize("reason", [None, "wrong customer"])
async def test_a_call_waits_for_the_decision_that_a_person_takes(
    bubble_client: BubbleConnection, bot: BubbleConnection, thread_id: str, reason: str | None
) -> None:
    async with bot.run(thread_id) as run, bubble_client.subscribe_thread(thread_id) as events:
        call = await run.tool_call("refund", {"amount": 20}, tool_call_id="c1")
        waiting = asyncio.create_task(call.approval())
        async with asyncio.timeout(10):
            async for stored in events:
                if b"tool-approval-request" in stored.text:
                    break
            await decide(bubble_client, run, call, reason=reason)
            decision = await waiting
        assert decision == Approval(approved=reason is None, reason=reason, principal_id="admin")
        assert bool(decision) is (reason is None)
        assert await call.approval() == decision
    requests = [each for each in await calls_of(bot, thread_id) if each["type"] == "tool-approval-request"]
    assert requests == [{"type": "tool-approval-request", "approvalId": "c1", "toolCallId": "c1"}]


async def test_a_decision_that_came_before_anybody_waited_is_not_missed(
    bubble_client: BubbleConnection, bot: BubbleConnection, thread_id: str
) -> None:
    async with bot.run(thread_id) as run, asyncio.timeout(10):
        call = await run.tool_call("refund", {})
        await run.flush()
        await decide(bubble_client, run, call, reason="no")
        assert (await call.approval()).reason == "no"


class Deciding(httpx2.AsyncBaseTransport):
    """Takes the decision around the moment when the history is read: just before that, or just after."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, *, first: bool) -> None:
        self.decide: Callable[[], Awaitable[None]] | None = None
        self._first = first
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        decide = self.decide if request.method == "GET" and request.url.path.endswith("/events") else None
        if decide is not None and self._first:
            await decide()
        response = await self._inner.handle_async_request(request)
        if decide is not None and not self._first:
            await response.aread()
            await decide()
        return response


@pytest.mark.parametrize("first", [True, False], ids=["before the history is read", "after that"])
async def test_a_decision_around_the_moment_when_the_wait_begins_is_not_missed(
    bubble_server: BubbleServer,
    thread_id: str,
    first: bool,  # noqa: FBT001
) -> None:
    admin = bubble_server.admin
    transport = Deciding(StreamingASGITransport(bubble_server.app), first=first)
    client = BubbleConnection(
        bubble_server.url,
        token=(await admin.mint_token("bot")).token,
        transport=transport,
        connector=asgi_connector(bubble_server.app),
    )
    async with client, client.run(thread_id) as run, asyncio.timeout(10):
        call = await run.tool_call("refund", {})
        transport.decide = lambda: decide(admin, run, call, reason="no")
        assert (await call.approval()).reason == "no"


async def test_several_calls_wait_at_the_same_time_on_one_watch(
    bubble_client: BubbleConnection, bot: BubbleConnection, thread_id: str
) -> None:
    async with bot.run(thread_id, run_id="one") as first, bot.run(thread_id, run_id="two") as second:
        # The same ids in two runs: they are four calls.
        calls = [(run, await run.tool_call("refund", {}, tool_call_id=id)) for run in (first, second) for id in "ab"]
        tasks = [asyncio.create_task(call.approval()) for _, call in calls]
        async with asyncio.timeout(10):
            for number, (run, call) in reversed(list(enumerate(calls))):
                await decide(bubble_client, run, call, reason=f"no {number}")
            decisions = [await task for task in tasks]
        assert [each.reason for each in decisions] == ["no 0", "no 1", "no 2", "no 3"]
        assert len(bot._listening._threads) == 1
    assert bot._listening._threads == {}


async def test_a_wait_that_is_cancelled_leaves_nothing_behind_and_can_be_taken_up_again(
    bubble_client: BubbleConnection, bot: BubbleConnection, thread_id: str
) -> None:
    async with bot.run(thread_id) as run:
        call = await run.tool_call("refund", {})
        for turns in range(30):
            waiting = asyncio.create_task(call.approval())
            for _ in range(turns):
                await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        await decide(bubble_client, run, call)
        async with asyncio.timeout(10):
            assert await call.approval()
    listeners = [each for each in asyncio.all_tasks() if "_listen" in repr(each.get_coro())]
    assert (listeners, bot._listening._threads) == ([], {})
    requests = [each for each in await calls_of(bot, thread_id) if each["type"] == "tool-approval-request"]
    assert len(requests) == 1


async def test_a_wait_goes_on_over_broken_connections(
    bubble_server: BubbleServer, bubble_client: BubbleConnection, thread_id: str
) -> None:
    network = Cutting(asgi_connector(bubble_server.app))
    client = BubbleConnection(
        bubble_server.url,
        token=(await bubble_client.mint_token("bot")).token,
        backoff=Backoff(first=0.001, longest=0.01),
        transport=StreamingASGITransport(bubble_server.app),
        connector=network,
    )
    async with client, client.run(thread_id) as run, asyncio.timeout(10):
        for number in range(5):
            call = await run.tool_call("refund", {})
            waiting = asyncio.create_task(call.approval())
            await network.connected.wait()
            await network.cut()
            await decide(bubble_client, run, call, reason=str(number))
            assert (await waiting).reason == str(number)
    assert network.count >= 5


async def test_consent_cannot_be_waited_for_when_the_request_did_not_arrive(
    bubble_client: BubbleConnection, bot: BubbleConnection, thread_id: str
) -> None:
    run = await bot.run(thread_id).__aenter__()
    await bubble_client.append_event(thread_id, RunFinished(principal_id="admin", run_id=run.run_id))
    call = await run.tool_call("refund", {})
    with pytest.raises(Conflict), anyio.fail_after(10):
        await call.approval()
    with pytest.raises(Conflict):
        await run.__aexit__(None, None, None)


async def test_a_reader_of_messages_sees_a_call_go_through_consent_to_its_outcome(
    bubble_client: BubbleConnection, bot: BubbleConnection, thread_id: str
) -> None:
    states: dict[JSONValue, None] = {}
    async with bot.run(thread_id) as run, bubble_client.follow_messages(thread_id, grouping="run") as view:
        call = await run.tool_call("refund", iter(["{}"]), tool_call_id="c1")
        waiting = asyncio.create_task(call.approval())
        async for update in view:
            parts = [part for message in update.messages for part in message["parts"] if part["type"] == "tool-refund"]
            states |= {part["state"]: None for part in parts}
            if parts and parts[0]["state"] == "approval-requested":
                await decide(bubble_client, run, call)
            elif parts and parts[0]["state"] == "approval-responded":
                assert parts[0]["approval"] == {"id": "c1", "approved": True}
                await call.output("paid")
            elif parts and parts[0]["state"] == "output-available":
                break
        assert await waiting
    assert list(states)[-3:] == ["approval-requested", "approval-responded", "output-available"]


# --- what ends a wait -----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("EV-33")
@pytest.mark.parametrize("watches", [False, True])
async def test_a_request_to_stop_ends_the_wait_and_leaves_the_run(
    bubble_client: BubbleConnection,
    bot: BubbleConnection,
    thread_id: str,
    watches: bool,  # noqa: FBT001
) -> None:
    async with asyncio.timeout(10), bubble_client.subscribe_thread(thread_id) as events, asyncio.TaskGroup() as tasks:
        run = bot.run(thread_id, watch_interrupts=watches)
        tasks.create_task(stop_when_asked(bubble_client, events, run))
        after = "not reached"
        async with run:
            call = await run.tool_call("refund", {})
            await call.approval()
            after = "reached"
    assert after == "not reached"
    assert await outcome_of(bot, thread_id) == "interrupted"


async def stop_when_asked(client: BubbleConnection, events: ThreadSubscription, run: Run) -> None:
    async for stored in events:
        if b"tool-approval-request" in stored.text:
            await interrupt(client, run)
            return


async def test_the_exception_of_a_request_to_stop_can_be_caught_within_the_run(
    bubble_client: BubbleConnection, bot: BubbleConnection, thread_id: str
) -> None:
    async with bot.run(thread_id) as run, asyncio.timeout(10):
        call = await run.tool_call("refund", {})
        await interrupt(bubble_client, run)
        with pytest.raises(RunInterrupted) as stopped:
            await call.result()
        assert stopped.value.run_id == run.run_id
        await run.text("Stopped.")
    assert await outcome_of(bot, thread_id) == "interrupted"
    assert [each["type"] for each in await calls_of(bot, thread_id)][-1] == "text-end"


async def test_tasks_of_a_run_that_is_asked_to_stop_leave_it_together(
    bubble_client: BubbleConnection, bot: BubbleConnection, thread_id: str
) -> None:
    async with asyncio.timeout(10):
        async with bot.run(thread_id) as run:
            calls = [await run.tool_call("refund", {}) for _ in range(3)]
            async with asyncio.TaskGroup() as tasks:
                for call in calls:
                    tasks.create_task(call.approval())
                await interrupt(bubble_client, run)
    assert await outcome_of(bot, thread_id) == "interrupted"


async def test_the_exception_of_another_run_goes_on(bot: BubbleConnection, thread_id: str) -> None:
    async def work() -> None:
        async with bot.run(thread_id):
            raise RunInterrupted("another")

    with pytest.raises(RunInterrupted):
        await work()
    assert await outcome_of(bot, thread_id) == "failed"


async def test_setting_interrupted_by_hand_ends_a_wait_too(bot: BubbleConnection, thread_id: str) -> None:
    async with bot.run(thread_id) as run, asyncio.timeout(10):
        call = await run.tool_call("refund", {})
        waiting = asyncio.create_task(call.approval())
        await run.flush()
        run.interrupted.set()
        with pytest.raises(RunInterrupted):
            await waiting


async def test_a_wait_ends_when_somebody_else_finishes_the_run(
    bubble_client: BubbleConnection, bot: BubbleConnection, thread_id: str
) -> None:
    run = await bot.run(thread_id).__aenter__()
    call = await run.tool_call("refund", {})
    waiting = asyncio.create_task(call.approval())
    async with asyncio.timeout(10), bubble_client.subscribe_thread(thread_id) as events:
        async for stored in events:
            if b"tool-approval-request" in stored.text:
                break
        await bubble_client.append_event(thread_id, RunFinished(principal_id="admin", run_id=run.run_id))
        with pytest.raises(Conflict, match="has finished"):
            await waiting
    with pytest.raises(Conflict):
        await run.__aexit__(None, None, None)


async def test_a_wait_ends_when_the_run_may_no_longer_read_the_thread(
    bubble_client: BubbleConnection, bot: BubbleConnection, thread_id: str
) -> None:
    run = await bot.run(thread_id, watch_interrupts=True).__aenter__()
    call = await run.tool_call("refund", {})
    waiting = asyncio.create_task(call.approval())
    async with asyncio.timeout(10), bubble_client.subscribe_thread(thread_id) as events:
        async for stored in events:
            if b"tool-approval-request" in stored.text:
                break
        await bubble_client.remove_grant(thread_id, "bot")
        with pytest.raises(NotFound):
            await waiting
        for wait in (call.approval, call.result, call.approval):
            with pytest.raises(NotFound):
                await wait()
        with pytest.raises(NotFound):
            await run.__aexit__(None, None, None)
    assert bot._listening._threads == {}


async def test_a_run_hears_again_beside_one_that_ended_with_its_access(
    bubble_client: BubbleConnection, bot: BubbleConnection, thread_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with bot.run(thread_id, watch_interrupts=True) as ended, asyncio.timeout(10):
        lost = await ended.tool_call("refund", {})
        await ended.flush()
        waiting = asyncio.create_task(lost.result())
        await bubble_client.remove_grant(thread_id, "bot")
        with pytest.raises(NotFound):
            await waiting
        await bubble_client.put_grant(thread_id, "bot", "participant")
        async with bot.run(thread_id) as run:
            call = await run.tool_call("refund", {})
            await run.flush()
            deciding = asyncio.create_task(call.approval())
            await decide(bubble_client, run, call)
            assert await deciding
        with pytest.raises(Conflict, match="already finished"):
            await ended.finish()
    assert "hear nothing any longer" in caplog.text


# --- results from elsewhere -----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("EV-30")
@pytest.mark.parametrize("output", [None, {"rows": [1, 2.5]}, "\ud83d", 12345678901234567890123], ids=ascii)
async def test_a_call_waits_for_a_result_from_elsewhere(
    bubble_client: BubbleConnection, bot: BubbleConnection, thread_id: str, output: JSONValue
) -> None:
    async with bot.run(thread_id) as run, asyncio.timeout(10):
        call = await run.tool_call("survey", {"q": "?"})
        waiting = asyncio.create_task(call.result())
        await run.flush()
        await give_result(bubble_client, run, call, output)
        await give_result(bubble_client, run, call, "a second one")
        assert await waiting == output
        assert await call.result() == output


async def test_of_two_results_that_came_before_the_wait_the_first_counts(
    bubble_client: BubbleConnection, bot: BubbleConnection, thread_id: str
) -> None:
    async with bot.run(thread_id) as run, asyncio.timeout(10):
        call = await run.tool_call("survey", {})
        await run.flush()
        for output in (1, 2):
            await give_result(bubble_client, run, call, output)
        assert await call.result() == 1


async def test_of_answers_that_are_heard_out_of_order_the_one_with_the_lowest_seq_counts() -> None:
    hearing = Hearing("r")
    late = b'{"seq":9,"createdAt":"2026-05-06T12:34:56.789Z","type":"tool_call_result","principalId":"a","runId":"r",'
    late += b'"toolCallId":"c","input":{},"output":9}'
    for text in (late, late.replace(b'"seq":9', b'"seq":7').replace(b":9}", b":7}"), late):
        hearing.hear(SequencedEvent.from_text(text))
    assert (await hearing.answer(ToolCallResult, "c")).output == raw(7)
    assert may_concern_a_run(late)
