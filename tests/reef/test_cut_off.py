"""What reef was at work on when it was stopped, killed or refused: no question is taken for an answer, and no result is lost."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import anyio
import pytest

from bubble.amphibian.store import AmphibianStore
from bubble.reef.agent import ReefAgent
from tests.amphibian.logs import ME
from tests.amphibian.world import PATIENCE, Thread, World
from tests.reef.raw_agent import Answer, Asked, Feeds, RawAgent, event_stream, json_answer, raw_agent
from tests.reef.test_conversations import (
    ASKS,
    CALL,
    NOT_FOUND,
    artifact,
    done,
    in_turn,
    interrupt,
    result_for,
    sent,
    status,
    texts,
)
from tests.reef.test_recovery import kept, key_of, left_at_work

pytestmark = pytest.mark.anyio

ReefTo = Callable[..., ReefAgent]

UNKNOWN = json_answer({"error": {"code": 404, "message": "Task t not found", "details": [NOT_FOUND]}}, status=404)
IS_OVER = "The result was not given to the agent: the task that called for it is over, or unknown by now."
GOES_ON = (
    "The agent has got the result and works on, but what it says cannot be heard any more. Ask it what came of it."
)
ASK_AGAIN = "If its work is wanted, ask again."


def task(state: str, *words: str, artifacts: tuple[str, ...] = ()) -> Answer:
    """The task `t` as the agent shows it."""
    found: dict[str, object] = {"state": f"TASK_STATE_{state}"}
    if words:
        found["message"] = {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": each} for each in words]}
    made = [{"artifactId": f"a{at}", "parts": [{"text": each}]} for at, each in enumerate(artifacts)]
    return json_answer({"id": "t", "status": found, "artifacts": made})


def answering(**answers: Answer) -> Callable[[Asked], Answer]:
    """An agent that answers each procedure so."""
    return lambda asked: answers.get(asked.procedure, json_answer({}))


async def ended(thread: Thread) -> tuple[object, str]:
    """How the bot's next run ends, and what it said."""
    end = await thread.next("run_finished")
    words = [event["part"] for event in thread.seen if event.get("runId") == end["runId"] and "part" in event]
    said = [str(part.get("delta", part.get("errorText", ""))) for part in words if isinstance(part, Mapping)]
    return end["outcome"], "".join(said)


async def with_a_call(thread: Thread, raw: RawAgent, feeds: Feeds) -> object:
    """A run of the bot's whose task waits for the result of a call."""
    await thread.say("Pay")
    await raw.was_asked("stream")
    feeds[0].send(status("INPUT_REQUIRED", {"text": "May I?"}, CALL))
    return (await thread.next("run_finished"))["runId"]


# --- results --------------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("RF-46", "RF-49", "RF-91")
@pytest.mark.parametrize(
    ("found", "outcome", "words", "does"),
    [
        ({"get": task("INPUT_REQUIRED"), "stream": done("Paid")}, "success", "Paid", ["get", "stream"]),
        ({"get": task("WORKING"), "rejoin": done("Paid")}, "success", "Paid", ["get", "rejoin"]),
        ({"get": task("COMPLETED", artifacts=("Paid",))}, "success", "Paid", ["get"]),
        ({"get": task("FAILED", "No money")}, "failed", "No money", ["get"]),
        (
            {"get": task("COMPLETED")},
            "failed",
            f"The task that got this result has ended meanwhile, and does not tell any more with what. {ASK_AGAIN}",
            ["get"],
        ),
        ({"get": UNKNOWN}, "failed", f"{IS_OVER} {ASK_AGAIN}", ["get"]),
        (
            {"get": task("WORKING"), "rejoin": UNKNOWN},
            "failed",
            GOES_ON,
            ["get", "rejoin", "get"],
        ),
    ],
    ids=["waits", "works", "has finished", "has failed", "has finished in silence", "is unknown", "is not heard"],
)
@pytest.mark.parametrize("end", ["stopped", "killed"])
async def test_a_result_that_was_being_given_at_the_end_is_gone_on_with(
    world: World,
    reef_to: ReefTo,
    end: str,
    found: Mapping[str, Answer],
    outcome: str,
    words: str,
    does: list[str],
) -> None:
    feeds = Feeds()
    async with raw_agent(feeds) as raw, await AmphibianStore.open() as store:
        async with world.connector(reef_to(raw.url), store=store):
            thread = await world.thread()
            run = await with_a_call(thread, raw, feeds)
            if end == "stopped":
                await result_for(thread, run, "yes")
                await raw.was_asked("stream", times=2)
                feeds[1].send(status("WORKING"), artifact("Pay", append=True))
                await thread.next("message_part")
        if end == "stopped":
            assert "It is taken up again" in (await ended(thread))[1]
            assert (await kept(world, thread, store))["calls"] == ["call-1"]
            assert raw.of("cancel") == []
        else:
            session = {**await kept(world, thread, store), "atWork": True, "calls": ["call-1"]}
            await store.write_session(key_of(world, thread), json.dumps(session).encode())
            await result_for(thread, run, "yes")
        raw.asked.clear()
        raw.answer = answering(**found)
        async with world.connector(reef_to(raw.url), store=store):
            told = await ended(thread)
        assert told[0] == outcome
        assert told[1].endswith(words)
        assert [asked.procedure for asked in raw.asked] == does


@pytest.mark.requirement("RF-40", "RF-59")
async def test_an_interrupt_of_a_result_cancels_its_task(world: World, reef_to: ReefTo) -> None:
    feeds = Feeds()
    async with (
        raw_agent(feeds) as raw,
        await AmphibianStore.open() as store,
        world.connector(reef_to(raw.url), store=store),
    ):
        thread = await world.thread()
        run = await with_a_call(thread, raw, feeds)
        await result_for(thread, run, "yes")
        await raw.was_asked("stream", times=2)
        await interrupt(thread, (await thread.next("run_started"))["runId"])
        await raw.was_asked("cancel")
        assert (await ended(thread))[0] == "interrupted"
        assert await kept(world, thread, store) == {}


@pytest.mark.requirement("RF-90")
async def test_a_result_that_the_end_of_the_grant_cut_off_can_be_given_again_and_is_told_of(
    world: World, reef_to: ReefTo
) -> None:
    feeds = Feeds()
    async with raw_agent(feeds) as raw, world.connector(reef_to(raw.url)) as connector:
        thread = await world.thread()
        run = await with_a_call(thread, raw, feeds)
        await result_for(thread, run, "yes")
        await raw.was_asked("stream", times=2)
        feeds[1].send(artifact("Pay"))
        await thread.next("message_part")
        await world.alice.remove_grant(thread.thread_id, ME)
        await raw.was_asked("cancel")
        await world.alice.put_grant(thread.thread_id, ME, "participant")
        await connector.attended(thread.thread_id)
        await thread.next("participant_joined")
        await result_for(thread, run, "yes")
        end = await thread.next("run_finished", outcome="failed")
        assert IS_OVER in str([event for event in thread.seen if event.get("runId") == end["runId"]])


async def test_a_result_that_nobody_took_can_be_given_again(world: World, reef_to: ReefTo) -> None:
    busy = [Answer(status=503)] * 6
    async with (
        raw_agent(in_turn(ASKS, *busy, done("Paid"))) as raw,
        world.connector(reef_to(raw.url)),
    ):
        thread = await world.thread()
        await thread.say("Pay")
        run = (await thread.next("run_finished"))["runId"]
        await result_for(thread, run, "yes")
        assert (await ended(thread))[0] == "failed"
        await result_for(thread, run, "yes")
        assert await ended(thread) == ("success", "Paid")
        assert [message.get("taskId") for message in sent(raw)][-1] == "t"


@pytest.mark.requirement("RF-59")
async def test_a_result_for_a_task_that_is_unknown_is_refused_alike_where_the_stream_is_broken_off(
    world: World, reef_to: ReefTo
) -> None:
    """As the official server of 0.3 does it over HTTP+JSON."""
    answer = in_turn(ASKS, event_stream(ending="cut"), done("New"), otherwise=UNKNOWN)
    async with (
        raw_agent(answer) as raw,
        await AmphibianStore.open() as store,
        world.connector(reef_to(raw.url), store=store),
    ):
        thread = await world.thread()
        await thread.say("Pay")
        run = (await thread.next("run_finished"))["runId"]
        await result_for(thread, run, "yes")
        outcome, words = await ended(thread)
        assert (outcome, "Task t not found" in words, ASK_AGAIN in words) == ("failed", True, True)
        assert await kept(world, thread, store) == {}


@pytest.mark.requirement("RF-25", "RF-88")
@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["the older first", "the younger first"])
@pytest.mark.parametrize("state", ["COMPLETED", "INPUT_REQUIRED"])
async def test_two_conversations_about_one_task_end_alike(
    world: World, reef_to: ReefTo, order: tuple[int, int], state: str
) -> None:
    feeds = Feeds()
    async with (
        raw_agent(feeds) as raw,
        await AmphibianStore.open() as store,
        world.connector(reef_to(raw.url), store=store),
    ):
        thread = await world.thread()
        await thread.say("Pay")
        await raw.was_asked("stream")
        feeds[0].send(status("WORKING", CALL), artifact("tick"))
        started = await thread.next("run_started")
        await thread.next("message_part")
        await result_for(thread, started["runId"], "yes")
        await raw.was_asked("stream", times=2)
        for at in order:
            feeds[at].send(artifact(" tock", append=True), status(state))
            feeds[at].end()
        ends = [await ended(thread), await ended(thread)]
        assert sorted(words for outcome, words in ends if outcome == "success") == ["", "tick tock"]
        waits = {"taskId": "t", "artifacts": ["a"]}
        assert await kept(world, thread, store) == (waits if state == "INPUT_REQUIRED" else {})


# --- questions ------------------------------------------------------------------------------------------------------------------


WAITS = task("INPUT_REQUIRED", "Pay 1000 to Mallory?")


@pytest.mark.requirement("RF-46", "RF-49", "RF-103")
async def test_a_question_that_was_cut_off_is_never_the_answer_to_one_of_the_agents(
    world: World, reef_to: ReefTo
) -> None:
    agent = raw_agent(answering(get=WAITS, stream=done("Not paid")))
    async with agent as raw, await AmphibianStore.open() as store:
        thread = await left_at_work(world, store)
        async with world.connector(reef_to(raw.url), store=store):
            await thread.next("run_finished", runId="half")
            assert await ended(thread) == ("success", "Pay 1000 to Mallory?")
            assert sent(raw) == []
            await thread.say("No")
            assert await ended(thread) == ("success", "Not paid")
        assert [(message.get("taskId"), texts(message)) for message in sent(raw)] == [("t", ["No"])]


@pytest.mark.requirement("RF-46", "RF-103")
async def test_what_was_said_since_a_question_that_was_cut_off_is_not_lost(world: World, reef_to: ReefTo) -> None:
    agent = raw_agent(answering(get=WAITS, stream=done("Fine")))
    async with agent as raw, await AmphibianStore.open() as store:
        thread = await left_at_work(world, store)
        await thread.say("Only ten")
        async with world.connector(reef_to(raw.url), store=store):
            await thread.next("run_finished", runId="half")
            assert await ended(thread) == ("success", "Pay 1000 to Mallory?Fine")
        assert [(message.get("taskId"), texts(message)) for message in sent(raw)] == [("t", ["Only ten"])]


@pytest.mark.requirement("RF-46", "RF-103")
@pytest.mark.parametrize(
    ("found", "outcome", "words"),
    [
        (task("COMPLETED", artifacts=("All paid",)), "success", "All paid"),
        (task("FAILED", "No money"), "failed", "No money"),
    ],
    ids=["completed", "failed"],
)
async def test_what_became_of_a_question_that_was_cut_off_is_shown(
    world: World, reef_to: ReefTo, found: Answer, outcome: str, words: str
) -> None:
    async with raw_agent(answering(get=found)) as raw, await AmphibianStore.open() as store:
        thread = await left_at_work(world, store)
        async with world.connector(reef_to(raw.url), store=store):
            await thread.next("run_finished", runId="half")
            assert await ended(thread) == (outcome, words)
        assert sent(raw) == []
        assert await kept(world, thread, store) == {}


async def test_a_task_that_waits_without_a_word_is_said_to_wait(world: World, reef_to: ReefTo) -> None:
    async with raw_agent(answering(get=task("INPUT_REQUIRED"))) as raw, await AmphibianStore.open() as store:
        thread = await left_at_work(world, store)
        async with world.connector(reef_to(raw.url), store=store):
            said = await thread.next("message_part", by=ME, version="bubble-v1")
            assert "The agent waits for an answer." in str(said["part"])
        assert sent(raw) == []


# --- interrupts -----------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("RF-42", "RF-44")
async def test_an_interrupt_cancels_every_task_that_the_answer_named(world: World, reef_to: ReefTo) -> None:
    feeds = Feeds()
    async with raw_agent(feeds) as raw, world.connector(reef_to(raw.url)):
        thread = await world.thread()
        await thread.say("Go")
        await raw.was_asked("stream")
        feeds[0].send(artifact("one", task="a"), artifact("two", task="b"))
        started = await thread.next("run_started")
        for _ in range(2):
            await thread.next("message_part")
        with anyio.fail_after(PATIENCE):
            await thread.next("message_part", by=ME)
            await interrupt(thread, started["runId"])
            asked = await raw.was_asked("cancel", times=2)
        assert sorted(each.path for each in asked) == ["/tasks/a:cancel", "/tasks/b:cancel"]
