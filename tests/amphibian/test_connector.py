"""A connector on a real server: it joins, answers, and leaves."""

from __future__ import annotations

import pytest

from tests.amphibian.world import Scripted, World

pytestmark = pytest.mark.anyio


async def test_it_answers_on_a_thread_that_it_is_let_in_to(world: World) -> None:
    async with world.connector(Scripted()):
        thread = await world.thread()
        await thread.say("Hello")
        assert await thread.answered(outcome="success") == "You said: Hello"
