"""Reef and the official A2A server of generation 1.0, which serves the mock agent, in all four dialects."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import anyio
import pytest

from bubble.reef.agent import ReefAgent
from bubble.reef.mock import INTERFACES
from bubble.reef.mock.serving import serve_mock_agent
from tests.amphibian.world import World
from tests.reef.stage import held_by
from tests.reef.test_conversations import interrupt, result_for

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("RF-54", "RF-95", "RF-96")]

ReefTo = Callable[..., ReefAgent]
all_dialects = pytest.mark.parametrize("path", ["", *(interface.path for interface in INTERFACES)])


@pytest.fixture
async def mock_agent() -> AsyncIterator[str]:
    """The mock agent's URL."""
    url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(serve_mock_agent(pace=0.001, on_started=url.set_result))
    try:
        yield await url
    finally:
        serving.cancel()
        await asyncio.wait({serving})


@all_dialects
@pytest.mark.parametrize(
    ("prompt", "text"),
    [
        ("Good morning", "You said: Good morning"),
        ("repeat", "Everything I say, I say three times."),
        ("think", "I have thought about it."),
    ],
)
async def test_what_the_agent_says_is_said_once(
    world: World, reef_to: ReefTo, mock_agent: str, path: str, prompt: str, text: str
) -> None:
    async with world.connector(reef_to(mock_agent + path)):
        thread = await world.thread()
        await thread.say(prompt)
        await thread.next("run_finished", outcome="success")
        held = await held_by(thread)
        assert (held.text, held.assembled_text) == (text, text)
        assert held.reasoning == ("Somebody wants me to think. So I do." if prompt == "think" else "")


@all_dialects
async def test_a_tools_result_reaches_the_task_that_waits_for_it(
    world: World, reef_to: ReefTo, mock_agent: str, path: str
) -> None:
    async with world.connector(reef_to(mock_agent + path)):
        thread = await world.thread()
        await thread.say("tool")
        end = await thread.next("run_finished", outcome="success")
        (called,) = (await held_by(thread)).of("tool-input-available")
        await result_for(thread, end["runId"], {"sky": "blue", "degrees": 4}, call=called["toolCallId"])
        await thread.next("run_finished", outcome="success")
        held = await held_by(thread)
        assert held.calls == [("get_weather", {"city": "Oslo", "days": 2}, None)]
        told = held.text.removeprefix("Somebody has to look out of the window.")
        assert told in {"The tool said: sky blue, degrees 4", "The tool said: degrees 4, sky blue"}


@all_dialects
async def test_an_interrupt_stops_the_agent_too(world: World, reef_to: ReefTo, mock_agent: str, path: str) -> None:
    async with world.connector(reef_to(mock_agent + path)):
        thread = await world.thread()
        await thread.say("long")
        started = await thread.next("run_started")
        await thread.next("message_part")
        with anyio.fail_after(2.0):
            await interrupt(thread, started["runId"])
            await thread.next("run_finished", outcome="interrupted")
        await thread.say("And now?")
        assert await thread.answered() == "You said: And now?"


@all_dialects
async def test_failures_are_told_and_files_shown(world: World, reef_to: ReefTo, mock_agent: str, path: str) -> None:
    async with world.connector(reef_to(mock_agent + path)):
        thread = await world.thread()
        await thread.say("fail")
        assert (await thread.answered(outcome="failed")).endswith("The mock agent fails, as it was asked to.")
        await thread.say("file")
        await thread.next("run_finished", outcome="success")
        assert (await held_by(thread)).files == [
            "data:text/plain;base64,QSBmaWxlIG9mIHRoZSBtb2NrIGFnZW50J3MuCg==",
            "https://example.com/mock.pdf",
        ]
        await thread.bubble.send_message(thread.thread_id, "look", files=[("p.png", b"\x89PNG fake", "image/png")])
        assert await thread.answered() == "You said: look (with p.png of 9 bytes)"
