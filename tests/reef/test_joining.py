"""Reef as a participant: where it takes part, what it hears, and what it leaves alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bubble.amphibian.store import AmphibianStore
from bubble.protocol.errors import Forbidden
from bubble.protocol.identifiers import new_id
from bubble.reef.agent import ReefAgent
from tests.amphibian.logs import ME, said
from tests.amphibian.world import World
from tests.reef.raw_agent import Answer, Asked, raw_agent
from tests.reef.test_conversations import WORKS, done, in_turn, sent, texts

pytestmark = pytest.mark.anyio

ReefTo = Callable[..., ReefAgent]


def always(text: str) -> Callable[[Asked], Answer]:
    """The same answer to every message."""
    return lambda _: done(text)


def in_tasks_of_their_own(asked: Asked) -> Answer:
    """The same answer to every message, in a task for each conversation."""
    (message,) = [body["message"] for body in [asked.json] if isinstance(body, dict)]
    return done("Hi", task=f"task-of-{message['contextId']}")


@pytest.mark.requirement("RF-01", "RF-04", "RF-05")
async def test_it_takes_part_in_every_thread_that_it_is_let_into_before_and_after_it_came(
    world: World, reef_to: ReefTo
) -> None:
    async with raw_agent(always("Hi")) as raw:
        before = [await world.thread() for _ in range(2)]
        async with world.connector(reef_to(raw.url)):
            for thread in [*before, await world.thread()]:
                await thread.say("Hello")
                assert await thread.answered() == "Hi"


@pytest.mark.requirement("RF-02")
async def test_it_does_not_start_as_somebody_else(world: World, reef_to: ReefTo) -> None:
    async with raw_agent(always("Hi")) as raw:
        with pytest.raises(Forbidden, match="principalId"):
            async with world.connector(reef_to(raw.url), principal_id="somebody"):
                pass
        assert raw.asked == []


@pytest.mark.requirement("RF-19")
async def test_it_never_hears_itself(world: World, reef_to: ReefTo) -> None:
    async with raw_agent(always("Hi")) as raw, world.connector(reef_to(raw.url)):
        thread = await world.thread()
        for words in ("One", "Two"):
            await thread.say(words)
            await thread.answered()
        assert [texts(message) for message in sent(raw)] == [["One"], ["Two"]]


@pytest.mark.requirement("RF-23", "RF-24")
async def test_a_run_is_forwarded_when_it_is_finished_and_not_before(world: World, reef_to: ReefTo) -> None:
    async with raw_agent(always("Hi")) as raw, world.connector(reef_to(raw.url)):
        thread = await world.thread()
        *begun, end = said(new_id(), "half", "alice")
        await thread.bubble.append_events(thread.thread_id, begun)
        await thread.say("whole")
        await thread.answered()
        await thread.append(end)
        await thread.answered()
        assert [texts(message) for message in sent(raw)] == [["whole"], ["half"]]


@pytest.mark.requirement("RF-07", "RF-49")
async def test_a_question_that_was_being_answered_at_the_end_is_asked_again(world: World, reef_to: ReefTo) -> None:
    async with raw_agent(in_turn(WORKS, done("Here you are"))) as raw, await AmphibianStore.open() as store:
        thread = await world.thread()
        async with world.connector(reef_to(raw.url, cancel_seconds=0.2), store=store):
            await thread.say("Please")
            await thread.next("message_part")
        await thread.next("run_finished", outcome="failed")
        async with world.connector(reef_to(raw.url), store=store):
            await thread.next("run_finished", outcome="success")
        assert [texts(message) for message in sent(raw)] == [["Please"], ["Please"]]
        assert await thread.open_runs() == 0


@pytest.mark.requirement("RF-92")
async def test_two_bots_do_not_talk_for_ever(world: World, reef_to: ReefTo) -> None:
    async with raw_agent(always("Hi")) as raw, world.connector(reef_to(raw.url), max_bot_turns=2):
        thread = await world.thread()
        for _ in range(2):
            await thread.say("I am a bot", kind="agent_work")
            assert await thread.answered() == "Hi"
        for _ in range(2):
            await thread.say("I am a bot", kind="agent_work")
        await thread.next("run_started", kind="system_work")
        await thread.next("run_finished")
        assert len(sent(raw)) == 2
        await thread.say("And I a person")
        assert await thread.answered() == "Hi"
        notices = [event for event in await thread.log() if event.get("kind") == "system_work"]
        assert [event["principalId"] for event in notices] == [ME]


async def test_an_agent_may_be_asked_by_many_threads_at_once(world: World, reef_to: ReefTo) -> None:
    async with raw_agent(in_tasks_of_their_own) as raw, world.connector(reef_to(raw.url)):
        threads = [await world.thread() for _ in range(20)]
        for thread in threads:
            await thread.say("Hello")
        for thread in threads:
            assert await thread.answered() == "Hi"
        assert {message["contextId"] for message in sent(raw)} == {thread.thread_id for thread in threads}
