"""Plain functions as agents."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from bubble.amphibian.agents import Turn
from bubble.amphibian.functions import AnswerFunction, FunctionAgent
from tests.amphibian.logs import interrupt
from tests.amphibian.world import PATIENCE, World

pytestmark = pytest.mark.anyio


async def in_pieces(turn: Turn) -> AsyncGenerator[str, None]:
    for piece in ("You said: ", turn.text):
        yield piece


async def as_a_whole(turn: Turn) -> str:
    return f"You said: {turn.text}"


def at_once(turn: Turn) -> str:
    return f"You said: {turn.text}"


@pytest.mark.parametrize("function", [in_pieces, as_a_whole, at_once])
async def test_a_function_answers(world: World, function: AnswerFunction) -> None:
    async with world.connector(FunctionAgent(function)):
        thread = await world.thread()
        await thread.say("Hello")
        assert await thread.answered() == "You said: Hello"


@pytest.mark.parametrize("nothing", [None, ""])
async def test_a_function_may_have_nothing_to_say(world: World, nothing: str | None) -> None:
    async with world.connector(FunctionAgent(lambda _: nothing)):
        thread = await world.thread()
        await thread.say("Hello")
        assert await thread.answered() == ""


async def test_a_function_that_is_cut_off_gets_to_clean_up(world: World) -> None:
    cleaned_up = asyncio.Event()

    async def goes_on(turn: Turn) -> AsyncGenerator[str, None]:
        try:
            while True:
                yield turn.text
                await asyncio.sleep(0)
        finally:
            cleaned_up.set()

    async with world.connector(FunctionAgent(goes_on)):
        thread = await world.thread()
        await thread.say("Hello")
        await thread.append(interrupt(str((await thread.next("run_started"))["runId"])))
        await thread.answered(outcome="interrupted")
        async with asyncio.timeout(PATIENCE):
            await cleaned_up.wait()
