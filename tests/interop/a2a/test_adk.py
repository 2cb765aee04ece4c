"""Reef and agents of Google's ADK: text that comes once, twice and three times, tools, and a tool that waits for people."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest

from bubble.reef.agent import ReefAgent
from tests.amphibian.world import World
from tests.reef.stage import held_by
from tests.reef.test_conversations import interrupt, result_for

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("RF-69")]

ReefTo = Callable[..., ReefAgent]
all_modes = pytest.mark.parametrize("mode", ["default", "sse", "new", "older"])


@all_modes
async def test_what_the_agent_says_is_said_once(world: World, reef_to: ReefTo, adk: str, mode: str) -> None:
    async with world.connector(reef_to(f"{adk}/{mode}")):
        thread = await world.thread()
        for prompt, text in (("hello", "Hello streaming world"), ("short", "Hi"), ("hello", "Hello streaming world")):
            await thread.say(prompt)
            assert await thread.answered() == text


@all_modes
async def test_thoughts_are_told_from_words(world: World, reef_to: ReefTo, adk: str, mode: str) -> None:
    async with world.connector(reef_to(f"{adk}/{mode}")):
        thread = await world.thread()
        await thread.say("think")
        await thread.next("run_finished", outcome="success")
        held = await held_by(thread)
        assert (held.reasoning, held.text) == ("pondering", "Hi")


@all_modes
async def test_a_tool_is_shown_with_what_it_came_to(world: World, reef_to: ReefTo, adk: str, mode: str) -> None:
    async with world.connector(reef_to(f"{adk}/{mode}")):
        thread = await world.thread()
        await thread.say("tool")
        await thread.next("run_finished", outcome="success")
        held = await held_by(thread)
        assert held.calls == [("get_weather", {"city": "Oslo", "n": 3}, {"temp": 4.5, "city": "Oslo"})]
        assert held.text == "Let me look. The tool said [('city', 'Oslo'), ('temp', 4.5)]"


@all_modes
async def test_a_tool_that_waits_for_people_goes_on_with_their_result(
    world: World, reef_to: ReefTo, adk: str, mode: str
) -> None:
    async with world.connector(reef_to(f"{adk}/{mode}")):
        thread = await world.thread()
        await thread.say("long")
        end = await thread.next("run_finished", outcome="success")
        waiting = await held_by(thread)
        assert waiting.calls == [("approve", {"amount": 12}, {"status": "pending", "ticket": "T-1"})]
        (called,) = waiting.of("tool-input-available")
        await result_for(thread, end["runId"], {"status": "approved"}, call=called["toolCallId"])
        await thread.next("run_finished", outcome="success")
        held = await held_by(thread)
        assert held.text.endswith("The tool said [('status', 'approved')]")
        assert held.text.count("approved") == 1
        assert len(held.calls) == 1


@all_modes
async def test_a_failure_of_the_model_is_told(world: World, reef_to: ReefTo, adk: str, mode: str) -> None:
    async with world.connector(reef_to(f"{adk}/{mode}")):
        thread = await world.thread()
        await thread.say("raise")
        await thread.next("run_finished", outcome="failed")
        assert (await held_by(thread)).errors == ["model exploded"]


@all_modes
async def test_an_interrupt_ends_the_run_at_once(world: World, reef_to: ReefTo, adk: str, mode: str) -> None:
    async with world.connector(reef_to(f"{adk}/{mode}")):
        thread = await world.thread()
        await thread.say("slow")
        started = await thread.next("run_started")
        with anyio.fail_after(2.0):
            await interrupt(thread, started["runId"])
            await thread.next("run_finished", outcome="interrupted")
        await thread.say("hello")
        assert await thread.answered() == "Hello streaming world"
