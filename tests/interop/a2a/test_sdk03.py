"""Reef and the official A2A server of generation 0.3, over both of its bindings."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest

from bubble.reef.agent import ReefAgent
from tests.amphibian.world import World
from tests.reef.stage import held_by
from tests.reef.test_conversations import interrupt, result_for

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("RF-54")]

ReefTo = Callable[..., ReefAgent]
both = pytest.mark.parametrize("binding", ["rpc", "rest"])


@both
@pytest.mark.parametrize(
    ("prompt", "text"),
    [("Good morning", "You said: Good morning"), ("repeat", "Three times the same"), ("think", "Aha.")],
)
async def test_what_the_agent_says_is_said_once(
    world: World, reef_to: ReefTo, sdk03: str, binding: str, prompt: str, text: str
) -> None:
    async with world.connector(reef_to(f"{sdk03}/{binding}")):
        thread = await world.thread()
        await thread.say(prompt)
        await thread.next("run_finished", outcome="success")
        held = await held_by(thread)
        assert (held.text, held.assembled_text) == (text, text)
        assert held.reasoning == ("Hm." if prompt == "think" else "")
        assert (held.counts("run_started"), held.counts("run_finished")) == (1, 1)


@both
async def test_a_tools_result_reaches_the_task_that_waits_for_it(
    world: World, reef_to: ReefTo, sdk03: str, binding: str
) -> None:
    async with world.connector(reef_to(f"{sdk03}/{binding}")):
        thread = await world.thread()
        await thread.say("tool")
        end = await thread.next("run_finished", outcome="success")
        await result_for(thread, end["runId"], {"ok": True})
        await thread.next("run_finished", outcome="success")
        held = await held_by(thread)
        assert held.calls == [("approve", {"amount": 12}, None)]
        assert held.text == 'May I?Told: {"ok": true}'


@both
async def test_words_instead_of_a_result_go_to_the_same_task(
    world: World, reef_to: ReefTo, sdk03: str, binding: str
) -> None:
    async with world.connector(reef_to(f"{sdk03}/{binding}")):
        thread = await world.thread()
        for words, text in (("tool", "May I?"), ("why not", "Told: why not"), ("anew", "You said: anew")):
            await thread.say(words)
            assert await thread.answered() == text


@both
async def test_an_interrupt_ends_the_run_at_once(world: World, reef_to: ReefTo, sdk03: str, binding: str) -> None:
    async with world.connector(reef_to(f"{sdk03}/{binding}")):
        thread = await world.thread()
        await thread.say("long")
        started = await thread.next("run_started")
        await thread.next("message_part")
        with anyio.fail_after(2.0):
            await interrupt(thread, started["runId"])
            await thread.next("run_finished", outcome="interrupted")
        await thread.say("Still there?")
        assert await thread.answered() == "You said: Still there?"


@both
async def test_failures_are_told(world: World, reef_to: ReefTo, sdk03: str, binding: str) -> None:
    # When this server's agent raises, the stream breaks, and the one that takes it up again is silent for good.
    async with world.connector(reef_to(f"{sdk03}/{binding}", idle_seconds=0.5)):
        thread = await world.thread()
        await thread.say("fail")
        assert await thread.answered(outcome="failed") == "No quota"
        await thread.say("raise")
        await thread.next("run_finished", outcome="failed")
        assert len((await held_by(thread)).errors) == 2


@both
async def test_files_arrive_whole_in_both_directions(world: World, reef_to: ReefTo, sdk03: str, binding: str) -> None:
    async with world.connector(reef_to(f"{sdk03}/{binding}")):
        thread = await world.thread()
        await thread.say("file")
        await thread.next("run_finished", outcome="success")
        assert (await held_by(thread)).files == ["data:image/png;base64,iVBORyBmYWtl", "https://f.test/d.pdf"]
        await thread.bubble.send_message(thread.thread_id, "look", files=[("p.png", b"\x89PNG fake", "image/png")])
        assert await thread.answered() == "You said: look (p.png: iVBORyBmYWtl)"
