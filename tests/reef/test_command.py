"""`bubble reef`, with the server, the agent and reef in processes of their own."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from tests.amphibian.processes import Scene, scene, write
from tests.reef.processes import MockProcess, ReefProcess, configured, reef_on
from tests.reef.raw_agent import Answer, raw_agent

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Scene]:
    """A server with a thread and a bot."""
    async with scene(tmp_path) as found:
        yield found


@pytest.fixture
async def mock() -> AsyncIterator[MockProcess]:
    """An agent."""
    async with MockProcess.running() as running:
        yield running


async def test_it_joins_answers_and_leaves_when_it_is_told(here: Scene, mock: MockProcess) -> None:
    reef = await reef_on(here, mock)
    await here.thread.say("Good morning")
    assert await here.thread.answered() == "You said: Good morning"
    assert await reef.stop() == 0
    assert "Mock agent is spoken to over HTTP+JSON of A2A 1.0" in reef.said
    assert await mock.stop() == 0


@pytest.mark.requirement("RF-91")
async def test_sigterm_in_the_middle_of_a_reply_ends_the_run_and_the_agents_work(
    here: Scene, mock: MockProcess
) -> None:
    reef = await reef_on(here, mock)
    await here.thread.say("long")
    await here.thread.next("message_part")
    with anyio.fail_after(10):
        assert await reef.stop() == 0
    await here.thread.next("run_finished", outcome="failed")
    assert await here.thread.open_runs() == 0


async def test_an_agent_that_restarts_is_spoken_to_again(here: Scene, mock: MockProcess) -> None:
    await reef_on(here, mock)
    await here.thread.say("long")
    await here.thread.next("message_part")
    await mock.stop(signal.SIGKILL)
    assert "was lost" in await here.thread.answered(outcome="failed")
    await mock.start()
    await here.thread.say("Hello again")
    assert await here.thread.answered() == "You said: Hello again"


async def test_a_tasks_question_outlives_reef_and_its_answer_finds_the_task(here: Scene, mock: MockProcess) -> None:
    reef = await reef_on(here, mock)
    await here.thread.say("tool")
    end = await here.thread.next("run_finished")
    (called,) = [
        part for event in here.thread.seen if isinstance(part := event.get("part"), dict) and "toolName" in part
    ]
    await reef.stop()
    await reef_on(here, mock)
    result = {"type": "tool_call_result", "principalId": "admin", "runId": end["runId"], "input": {}}
    await here.thread.append({**result, "toolCallId": called["toolCallId"], "output": {"sky": "blue"}})
    assert await here.thread.answered() == "The tool said: sky blue"


@pytest.mark.requirement("RF-93")
async def test_a_card_that_cannot_be_reached_at_the_start_is_only_logged(here: Scene, mock: MockProcess) -> None:
    await mock.stop()
    reef = await reef_on(here, mock)
    await reef.hears("The agent card cannot be read yet")
    await mock.start()
    await here.thread.say("There you are")
    assert await here.thread.answered() == "You said: There you are"


@pytest.mark.requirement("RF-93")
async def test_a_card_that_does_not_stream_ends_it_with_status_1(here: Scene) -> None:
    async with raw_agent(lambda _: Answer(), capabilities={"streaming": False}) as raw:
        reef = ReefProcess(configured(here, raw))
        await reef.start()
        assert await reef.ended() == 1
        assert "does not say that the agent streams" in reef.said
        assert "Traceback" not in reef.said


@pytest.mark.requirement("RF-93")
async def test_a_card_that_is_never_sent_keeps_nobody_waiting(here: Scene) -> None:
    mute = Answer(headers={"Content-Type": "application/json"}, ending="open")
    async with raw_agent(lambda _: Answer()) as raw:
        raw.card_answer = mute
        reef = ReefProcess(configured(here, raw))
        await reef.start()
        await reef.hears("is attending")
        with anyio.fail_after(5):
            assert await reef.stop() == 0


@pytest.mark.requirement("RF-93")
async def test_a_token_that_is_refused_is_told_at_once_whatever_becomes_of_the_card(here: Scene) -> None:
    write(here.config.with_name("token"), "bubble_agent_nobodys")
    async with raw_agent(lambda _: Answer()) as raw:
        raw.card_answer = Answer(headers={"Content-Type": "application/json"}, ending="open")
        reef = ReefProcess(configured(here, raw))
        await reef.start()
        with anyio.fail_after(20):
            assert await reef.ended() == 1
        assert "Traceback" not in reef.said
        assert "does not take `bubble.token`" in reef.said.splitlines()[-1]


@pytest.mark.requirement("RF-93")
async def test_the_log_tells_no_secrets_of_the_agents_address(here: Scene) -> None:
    async with raw_agent(lambda _: Answer()) as raw:
        raw.card = {**raw.card, "supportedInterfaces": [{"protocolBinding": "HTTP+JSON", "url": "/a?key=S3CR3T"}]}
        raw.url = f"{raw.url.replace('http://', 'http://user:S3CR3T@')}/?key=S3CR3T"
        reef = ReefProcess(configured(here, raw))
        await reef.start()
        await reef.hears("is spoken to over")
        assert await reef.stop() == 0
        assert "/a?…" in reef.said
        assert "S3CR3T" not in reef.said


@pytest.mark.requirement("RF-91")
async def test_it_can_be_stopped_before_it_has_found_the_server(here: Scene) -> None:
    await here.server.stop()
    async with raw_agent(lambda _: Answer()) as raw:
        raw.card_answer = Answer(headers={"Content-Type": "application/json"}, ending="open")
        reef = ReefProcess(configured(here, raw))
        await reef.start()
        await reef.hears("Trying again.")
        with anyio.fail_after(5):
            assert await reef.stop() == 0


@pytest.mark.requirement("RF-94")
async def test_a_wrong_configuration_names_the_key_and_ends_it_with_status_2(here: Scene, mock: MockProcess) -> None:
    reef = ReefProcess(configured(here, mock, agentCardURL="x"))
    await reef.start()
    assert await reef.ended() == 2
    assert "a2a.agentCardURL" in reef.said
    assert "did you mean `a2a.agentCardUrl`?" in reef.said
