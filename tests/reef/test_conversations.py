"""Reef on a thread: what the agent is sent, what becomes of its tasks, and what the people see. Agents are scripted to the byte."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from bubble.amphibian.store import AmphibianStore, ThreadKey
from bubble.protocol.identifiers import new_id
from bubble.reef.agent import ReefAgent
from tests.amphibian.logs import ME, said
from tests.amphibian.world import PATIENCE, Thread, World
from tests.reef.raw_agent import Answer, Asked, Feeds, RawAgent, event_stream, json_answer, raw_agent

pytestmark = pytest.mark.anyio

ReefTo = Callable[..., ReefAgent]
Json = Mapping[str, Any]


def status(state: str, *parts: Json, task: str = "t") -> Json:
    """A change of a task's status, with a message if there are parts."""
    said_: Json = {"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": parts}} if parts else {}
    return {"statusUpdate": {"taskId": task, "status": {"state": f"TASK_STATE_{state}", **said_}}}


def artifact(text: str, *, task: str = "t", append: bool = False) -> Json:
    """A piece of text."""
    content = {"artifactId": "a", "parts": [{"text": text}]}
    return {"artifactUpdate": {"taskId": task, "artifact": content, "append": append}}


CALL = {"data": {"id": "call-1", "name": "approve", "args": {"amount": 12}}, "metadata": {"adk_type": "function_call"}}
NOT_FOUND = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "TASK_NOT_FOUND"}
ASKS = event_stream(status("INPUT_REQUIRED", {"text": "May I?"}, CALL))
WORKS = event_stream(status("WORKING"), artifact("Working"), ending="open")


def done(text: str, *, task: str = "t") -> Answer:
    """A whole answer."""
    return event_stream(artifact(text, task=task), status("COMPLETED", task=task))


def in_turn(*answers: Answer, otherwise: Answer | None = None) -> Callable[[Asked], Answer]:
    """These answers to messages, in turn; whatever else is asked is answered with an empty object, or with `otherwise`."""
    left = list(answers)

    def answer(asked: Asked) -> Answer:
        if asked.procedure == "stream" and left:
            return left.pop(0)
        return otherwise or json_answer({})

    return answer


def sent(raw: RawAgent) -> list[Json]:
    """The messages that the agent got."""
    return [body["message"] for asked in raw.of("stream") if isinstance(body := asked.json, dict)]


def texts(message: Json) -> list[str]:
    """The texts of a message."""
    return [part["text"] for part in message["parts"] if "text" in part]


async def result_for(thread: Thread, run_id: object, output: object, *, call: str = "call-1") -> None:
    """Alice's result for a call."""
    event = {"type": "tool_call_result", "principalId": "alice", "runId": run_id, "toolCallId": call, "input": {}}
    await thread.append({**event, "output": output})


async def interrupt(thread: Thread, run_id: object) -> None:
    """Alice's wish that a run stop."""
    await thread.append({"type": "run_interrupt_requested", "principalId": "alice", "runId": run_id})


# --- what is sent ---------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("RF-26", "RF-58")
async def test_the_thread_is_the_context_and_a_first_message_names_no_task(world: World, reef_to: ReefTo) -> None:
    async with raw_agent(in_turn(done("Hi"))) as raw, world.connector(reef_to(raw.url)):
        thread = await world.thread()
        await thread.say("Hello")
        assert await thread.answered(outcome="success") == "Hi"
        (message,) = sent(raw)
        assert (message["contextId"], message.get("taskId")) == (thread.thread_id, None)
        assert message["parts"] == [{"text": "Hello"}]


@pytest.mark.requirement("RF-20", "RF-21", "RF-22", "RF-61")
async def test_what_is_said_during_a_reply_is_one_more_question_without_names(world: World, reef_to: ReefTo) -> None:
    first = event_stream(artifact("Hm"), ending="open")
    async with (
        raw_agent(in_turn(first, done("Both"), otherwise=Answer(status=404))) as raw,
        world.connector(reef_to(raw.url)),
    ):
        thread = await world.thread()
        await thread.say("One")
        started = await thread.next("run_started")
        await thread.next("message_part")
        await thread.say("Two")
        await thread.say("Three")
        assert len(sent(raw)) == 1
        await interrupt(thread, started["runId"])
        await thread.next("run_finished")
        assert await thread.answered(outcome="success") == "Both"
        assert texts(sent(raw)[1]) == ["Two\n\nThree"]


@pytest.mark.requirement("RF-17", "RF-18", "RF-22", "RF-102")
async def test_two_hundred_at_once_are_one_forward_in_flight_and_one_queued(world: World, reef_to: ReefTo) -> None:
    async with raw_agent(in_turn(WORKS, done("All"))) as raw, world.connector(reef_to(raw.url)) as connector:
        thread = await world.thread()
        await thread.say("First")
        started = await thread.next("run_started")
        await thread.next("message_part")
        for each in range(20):  # the batches of ten are what the server takes at once
            events = [event for at in range(10) for event in said(new_id(), f"<{each * 10 + at}>", "alice")]
            await world.alice.append_events(thread.thread_id, events)
        (driver,) = connector.drivers.values()
        await raw.was_asked("stream")
        assert len(sent(raw)) == 1
        await interrupt(thread, started["runId"])
        await thread.next("run_finished", outcome="interrupted")
        await thread.next("run_finished", outcome="success")
        assert len(sent(raw)) == 2
        words = texts(sent(raw)[1])[0].split("\n\n")
        assert words == [f"<{number}>" for number in range(200)]
        counted = driver.statistics()
        assert counted is not None
        assert (counted.forwards, counted.waiting) == (2, 0)


@pytest.mark.requirement("RF-24", "RF-67")
async def test_files_go_along_as_bytes_or_urls_and_others_are_dropped(
    world: World, reef_to: ReefTo, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "bubble.reef")
    async with raw_agent(in_turn(done("Nice"), done("unreached"))) as raw, world.connector(reef_to(raw.url)):
        thread = await world.thread()
        urls = ["data:image/png;base64,QUJD", "https://f.test/d.pdf", "file:///etc/passwd", "data:nonsense"]
        await thread.bubble.append_events(thread.thread_id, with_files(new_id(), "See", *urls))
        await thread.answered(outcome="success")
        assert sent(raw)[0]["parts"] == [
            {"text": "See"},
            {"raw": "QUJD", "mediaType": "image/png"},
            {"url": "https://f.test/d.pdf", "mediaType": "image/png"},
        ]
        assert sum("is not sent to the agent" in record.message for record in caplog.records) == 2
        await thread.bubble.append_events(thread.thread_id, with_files(new_id(), "", "file:///etc/passwd"))
        assert await thread.answered(outcome="failed") == "None of these files can be sent to the agent."
        assert len(sent(raw)) == 1


def with_files(run: str, text: str, *urls: str) -> Sequence[Json]:
    """A run of Alice's with files."""
    start, *parts, end = said(run, text, "alice")
    files = [{"type": "file", "url": url, "mediaType": "image/png"} for url in urls]
    event = {"type": "message_part", "principalId": "alice", "runId": run, "version": "ai-sdk-v6"}
    return [start, *(parts if text else []), *({**event, "part": part} for part in files), end]


# --- tasks ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("RF-27", "RF-58", "RF-60")
async def test_a_task_that_waits_is_continued_with_its_context_until_it_is_done(world: World, reef_to: ReefTo) -> None:
    async with raw_agent(in_turn(ASKS, done("Thanks"), done("New"))) as raw, world.connector(reef_to(raw.url)):
        thread = await world.thread()
        for question, outcome in (("Pay", "May I?"), ("Yes", "Thanks"), ("Next", "New")):
            await thread.say(question)
            assert await thread.answered(outcome="success") == outcome
        assert [message.get("taskId") for message in sent(raw)] == [None, "t", None]
        assert {message["contextId"] for message in sent(raw)} == {thread.thread_id}


@pytest.mark.requirement("RF-59")
@pytest.mark.parametrize(
    "refusal",
    [
        json_answer({"error": {"code": 404, "message": "Task t not found", "details": [NOT_FOUND]}}, status=404),
        json_answer({"error": {"code": 400, "message": "Task t is in terminal state"}}, status=400),
        event_stream({"error": {"code": -32001, "message": "Task not found"}}),
        event_stream({"error": {"code": -32004, "message": "Task t is in terminal state"}}),
        event_stream({"error": {"code": -32602, "message": "Task t is in terminal state"}}),
        json_answer({"message": "Task not found"}, status=404),
    ],
    ids=["404", "400", "not found", "unsupported", "invalid params", "404 of 0.3"],
)
async def test_a_task_that_is_over_behind_our_back_costs_nobody_an_answer(
    world: World, reef_to: ReefTo, refusal: Answer
) -> None:
    async with raw_agent(in_turn(ASKS, refusal, done("Anew"))) as raw, world.connector(reef_to(raw.url)):
        thread = await world.thread()
        await thread.say("Pay")
        await thread.answered()
        await thread.say("Yes")
        assert await thread.answered(outcome="success") == "Anew"
        assert [message.get("taskId") for message in sent(raw)] == [None, "t", None]


PAGE = Answer(status=404, headers={"Content-Type": "text/html"}, pieces=[b"<html>Not found</html>"])


@pytest.mark.requirement("RF-59")
@pytest.mark.parametrize(
    ("refusal", "says"),
    [
        (Answer(status=401), "does not let this bot in"),
        (Answer(status=404), "HTTP 404"),
        (PAGE, "HTTP 404"),
        (json_answer({"error": "Not Found"}, status=404), "with an error"),
        (json_answer({"error": {"code": 404, "message": "No such route"}}, status=404), "No such route"),
        (json_answer({"message": "no Route matched with those values"}, status=404), "no Route matched"),
        (json_answer({"error": {"code": -32603, "message": "Internal error"}}, status=200), "Internal error"),
        (json_answer({"error": {"code": [7], "message": 7}}, status=502), "did not say why"),
    ],
    ids=["401", "404", "a page", "a text", "a gateway's", "another gateway's", "internal", "nonsense"],
)
async def test_a_refusal_that_is_not_about_the_task_is_told_and_the_task_kept(
    world: World, reef_to: ReefTo, refusal: Answer, says: str
) -> None:
    async with raw_agent(in_turn(ASKS, refusal, done("Thanks"))) as raw, world.connector(reef_to(raw.url)):
        thread = await world.thread()
        await thread.say("Pay")
        await thread.answered()
        await thread.say("Yes")
        assert says in await thread.answered(outcome="failed")
        await thread.say("Yes!")
        assert await thread.answered(outcome="success") == "Thanks"
        assert [message.get("taskId") for message in sent(raw)] == [None, "t", "t"]


async def test_a_message_that_is_refused_without_its_task_as_well_leaves_the_task_as_it_was(
    world: World, reef_to: ReefTo
) -> None:
    wrong = json_answer({"error": {"code": -32602, "message": "No such media type"}})
    async with raw_agent(in_turn(ASKS, wrong, wrong, done("Thanks"))) as raw, world.connector(reef_to(raw.url)):
        thread = await world.thread()
        await thread.say("Pay")
        await thread.answered()
        await thread.say("See the file")
        assert "No such media type" in await thread.answered(outcome="failed")
        await thread.say("Yes")
        assert await thread.answered(outcome="success") == "Thanks"
        assert [message.get("taskId") for message in sent(raw)] == [None, "t", None, "t"]


@pytest.mark.requirement("RF-59")
async def test_a_card_that_is_gone_for_a_while_makes_nobody_forget_a_task(
    world: World, reef_to: ReefTo, tmp_path: Path
) -> None:
    async with raw_agent(in_turn(ASKS, done("Thanks"))) as raw:
        thread = await world.thread()
        steps = (("Pay", "success", None), ("Yes", "failed", "/nowhere"), ("Yes!", "success", None))
        for words, outcome, raw.card_path in steps:
            async with (
                await AmphibianStore.open(str(tmp_path / "store")) as store,
                world.connector(reef_to(raw.url), store=store),
            ):
                await thread.say(words)
                await thread.answered(outcome=outcome)
        assert [message.get("taskId") for message in sent(raw)] == [None, "t"]


@pytest.mark.requirement("RF-106")
@pytest.mark.parametrize("state", ["INPUT_REQUIRED", "WORKING"], ids=["waits", "works"])
async def test_a_task_that_is_another_threads_is_refused(world: World, reef_to: ReefTo, state: str) -> None:
    first = event_stream(status(state, {"text": "For Alice only"}), ending="open")
    async with (
        raw_agent(in_turn(first, first, done("Own", task="u"), done("Thanks"))) as raw,
        world.connector(reef_to(raw.url)),
    ):
        owner, other = [await world.thread() for _ in range(2)]
        await owner.say("Hello")
        await owner.next("message_part")
        await other.say("Hello")
        told = await other.answered(outcome="failed")
        assert told == "The agent answered with a task that belongs to another conversation. That is not shown."
        assert raw.of("cancel") == []
        await other.say("Again")
        assert await other.answered(outcome="success") == "Own"
        assert [message.get("taskId") for message in sent(raw)] == [None, None, None]


async def test_what_an_agent_calls_its_task_is_nothing_that_a_terminal_would_obey(
    world: World, reef_to: ReefTo, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "bubble.reef")
    works = event_stream(status("WORKING", {"text": "…"}, task="t\x1b[2J\n"), ending="open")
    async with raw_agent(in_turn(works, works)) as raw, world.connector(reef_to(raw.url)):
        owner, other = [await world.thread() for _ in range(2)]
        await owner.say("Hello")
        await owner.next("message_part")
        await other.say("Hello")
        await other.answered(outcome="failed")
    told = [record.getMessage() for record in caplog.records if "t\N{REPLACEMENT CHARACTER}[2J" in record.getMessage()]
    assert told
    assert "\x1b" not in caplog.text


@pytest.mark.requirement("RF-106")
async def test_of_two_threads_that_were_left_with_one_task_one_continues_it(
    world: World, reef_to: ReefTo, tmp_path: Path
) -> None:
    """As an earlier version could leave them."""
    threads = [await world.thread() for _ in range(2)]
    async with await AmphibianStore.open(str(tmp_path / "store")) as store:
        for thread in threads:
            key = ThreadKey(server=world.server.url, principal_id=ME, thread_id=thread.thread_id)
            await store.write_session(key, b'{"taskId":"t"}')
        agent = raw_agent(lambda asked: done("Hi", task="t" if b'"t"' in asked.body else "u"))
        async with agent as raw, world.connector(reef_to(raw.url), store=store):
            for thread in threads:
                await thread.say("Yes")
                await thread.answered(outcome="success")
            assert sorted(str(message.get("taskId")) for message in sent(raw)) == ["None", "t"]


@pytest.mark.requirement("RF-106")
async def test_two_threads_never_share_a_task_or_a_context(world: World, reef_to: ReefTo) -> None:
    def answer(asked: Asked) -> Answer:
        message = asked.json["message"] if isinstance(asked.json, dict) else {}
        return event_stream(status("INPUT_REQUIRED", {"text": "?"}, task=f"task-of-{message['contextId']}"))

    async with raw_agent(answer) as raw, world.connector(reef_to(raw.url)):
        threads = [await world.thread() for _ in range(3)]
        for _ in range(2):
            for thread in threads:
                await thread.say("Hello")
            for thread in threads:
                await thread.answered()
        for thread in threads:
            own = [message for message in sent(raw) if message["contextId"] == thread.thread_id]
            assert [message.get("taskId") for message in own] == [None, f"task-of-{thread.thread_id}"]


@pytest.mark.requirement("RF-46")
async def test_the_pointer_to_a_waiting_task_survives_a_restart_where_the_store_does(
    world: World, reef_to: ReefTo, tmp_path: Path
) -> None:
    async with raw_agent(in_turn(ASKS, done("Thanks"))) as raw:
        thread = await world.thread()
        for question, text in (("Pay", "May I?"), ("Yes", "Thanks")):
            async with (
                await AmphibianStore.open(str(tmp_path / "store")) as store,
                world.connector(reef_to(raw.url), store=store),
            ):
                await thread.say(question)
                assert await thread.answered(outcome="success") == text
        assert [message.get("taskId") for message in sent(raw)] == [None, "t"]


@pytest.mark.requirement("RF-104")
async def test_a_restart_forwards_only_what_is_new(world: World, reef_to: ReefTo, tmp_path: Path) -> None:
    async with raw_agent(in_turn(done("Hi"), done("Again"))) as raw:
        thread = await world.thread()
        for words in ("Hello", "More"):
            async with (
                await AmphibianStore.open(str(tmp_path / "store")) as store,
                world.connector(reef_to(raw.url), store=store),
            ):
                await thread.say(words)
                await thread.answered()
        assert [texts(message) for message in sent(raw)] == [["Hello"], ["More"]]


# --- tool results ---------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("RF-25", "RF-63", "RF-88")
async def test_a_result_goes_to_the_task_that_asked_as_a_function_response(world: World, reef_to: ReefTo) -> None:
    async with raw_agent(in_turn(ASKS, done("Paid"))) as raw, world.connector(reef_to(raw.url)):
        thread = await world.thread()
        await thread.say("Pay")
        end = await thread.next("run_finished")
        await result_for(thread, end["runId"], "yes")
        assert await thread.answered(outcome="success") == "Paid"
        message = sent(raw)[1]
        assert (message["taskId"], message["contextId"]) == ("t", thread.thread_id)
        assert message["parts"] == [
            {
                "data": {"id": "call-1", "name": "approve", "response": {"result": "yes"}},
                "metadata": {"adk_type": "function_response"},
            }
        ]


@pytest.mark.requirement("RF-28", "RF-63")
async def test_a_result_without_a_task_is_dropped_logged_and_told(
    world: World, reef_to: ReefTo, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "bubble.reef")
    calls_and_ends = event_stream(status("WORKING", CALL), status("COMPLETED"))
    async with raw_agent(in_turn(calls_and_ends, done("Next"))) as raw, world.connector(reef_to(raw.url)):
        thread = await world.thread()
        await thread.say("Pay")
        end = await thread.next("run_finished")
        await result_for(thread, end["runId"], "yes")
        assert "the task that called for it is over" in await thread.answered(outcome="failed")
        await thread.say("Next")
        assert await thread.answered(outcome="success") == "Next"
        assert [len(texts(message)) for message in sent(raw)] == [1, 1]
        assert any("is dropped" in record.message for record in caplog.records)


@pytest.mark.requirement("RF-25", "RF-88")
async def test_a_result_does_not_wait_for_the_reply_in_flight_and_nothing_is_said_twice(
    world: World, reef_to: ReefTo
) -> None:
    """As the official server does it: what the task says goes to both streams, and the older one ends when the task waits."""
    feeds = Feeds()
    async with raw_agent(feeds) as raw, world.connector(reef_to(raw.url)):
        thread = await world.thread()
        await thread.say("Pay")
        await raw.was_asked("stream")
        feeds[0].send(status("WORKING", CALL), artifact("tick"))
        started = await thread.next("run_started")
        await thread.next("message_part")
        await result_for(thread, started["runId"], "yes")
        await raw.was_asked("stream", times=2)
        for feed in (feeds[1], feeds[0]):
            feed.send(artifact(" tock", append=True), status("INPUT_REQUIRED"))
        assert await thread.answered(outcome="success") == "tick tock"
        feeds[1].send(artifact("Paid"), status("COMPLETED"))
        assert await thread.answered(outcome="success") == "Paid"
        assert len(await thread.runs_of_bot()) == 2


# --- interrupts, and other ends ---------------------------------------------------------------------------------------------------


@pytest.mark.requirement("RF-40", "RF-41", "RF-42", "RF-44", "RF-59", "RF-85", "RF-101")
async def test_an_interrupt_ends_the_run_and_the_agents_task_within_a_second(world: World, reef_to: ReefTo) -> None:
    async with raw_agent(in_turn(WORKS, done("Next"))) as raw, world.connector(reef_to(raw.url)):
        thread = await world.thread()
        await thread.say("Go")
        started = await thread.next("run_started")
        await thread.next("message_part")
        with anyio.fail_after(1.0):
            await interrupt(thread, started["runId"])
            await thread.next("run_finished", outcome="interrupted")
            (cancelled,) = await raw.was_asked("cancel")
            await raw.left.wait()
        assert cancelled.path == "/tasks/t:cancel"
        assert "error" not in [event["part"].get("type") for event in thread.seen if "part" in event]  # type: ignore[attr-defined]
        await thread.say("Next")
        assert await thread.answered(outcome="success") == "Next"
        assert sent(raw)[1].get("taskId") is None


@pytest.mark.requirement("RF-43")
async def test_an_interrupt_for_somebody_elses_run_changes_nothing(world: World, reef_to: ReefTo) -> None:
    feeds = Feeds()
    async with raw_agent(feeds) as raw, world.connector(reef_to(raw.url)):
        thread = await world.thread()
        theirs = await thread.say("Go")
        await raw.was_asked("stream")
        feeds[0].send(artifact("Wor"))
        await thread.next("message_part")
        await interrupt(thread, theirs)
        feeds[0].send(artifact("king", append=True), status("COMPLETED"))
        assert await thread.answered(outcome="success") == "Working"


@pytest.mark.requirement("RF-44")
async def test_an_agent_that_does_not_answer_the_cancel_holds_nobody_up(world: World, reef_to: ReefTo) -> None:
    silent = Answer(ending="open")
    async with (
        raw_agent(in_turn(WORKS, otherwise=silent)) as raw,
        world.connector(reef_to(raw.url, cancel_seconds=0.2)),
    ):
        thread = await world.thread()
        await thread.say("Go")
        started = await thread.next("run_started")
        await thread.next("message_part")
        with anyio.fail_after(1.0):
            await interrupt(thread, started["runId"])
            await thread.next("run_finished", outcome="interrupted")


@pytest.mark.requirement("RF-06", "RF-90")
async def test_losing_the_grant_cancels_the_task(world: World, reef_to: ReefTo) -> None:
    async with raw_agent(in_turn(WORKS)) as raw, world.connector(reef_to(raw.url)):
        thread = await world.thread()
        await thread.say("Go")
        await thread.next("message_part")
        await world.alice.remove_grant(thread.thread_id, ME)
        with anyio.fail_after(PATIENCE):
            await raw.was_asked("cancel")
            await raw.left.wait()


@pytest.mark.requirement("RF-91")
async def test_stopping_finishes_open_runs_and_cancels_tasks_within_ten_seconds(world: World, reef_to: ReefTo) -> None:
    async with raw_agent(in_turn(WORKS, otherwise=Answer(ending="open"))) as raw:
        thread = await world.thread()
        async with world.connector(reef_to(raw.url, cancel_seconds=0.2)):
            await thread.say("Go")
            await thread.next("message_part")
            began = asyncio.get_running_loop().time()
        assert asyncio.get_running_loop().time() - began < 10
        assert len(raw.of("cancel")) == 1
        assert await thread.open_runs() == 0
        await thread.next("run_finished", outcome="failed")
