"""What the guide promises of its careful bot, shown on a real server with the bot as a process of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from bubble.client import BubbleConnection, ThreadSubscription
from bubble.protocol.jsontext import JSONValue
from tests.docs.conftest import Desk, desk_in
from tests.docs.markdown import ROOT
from tests.docs.terminal import Job
from tests.docs.test_pages import Reader

GUIDE = ROOT / "docs" / "guides" / "write-a-bot.md"
LISTENS = "careful is listening\n"
SECONDS = 60

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A desk with a server, the bots' files, and the token of the bot `careful` in `$bot`."""
    with desk_in(tmp_path_factory.mktemp("bots")) as desk:
        Reader(desk).sit_down(GUIDE)
        for name in ("echo_bot.py", "careful_bot.py"):
            source = (ROOT / "docs" / "examples" / name).read_text(encoding="utf-8")
            (desk.terminal.directory / name).write_text(source, encoding="utf-8")
        desk.terminal.run("bubble principals create careful --kind bot")
        desk.terminal.run("bot=$(bubble tokens mint careful)")
        yield desk


def start(place: Desk) -> Job:
    """One more process of the bot, which listens when this returns."""
    command = place.here("BUBBLE_URL=http://127.0.0.1:3000 BUBBLE_TOKEN=$bot exec python careful_bot.py\n")
    job = place.terminal.start(command)
    job.wait_for(LISTENS)
    return job


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """A thread with the bot on it, seen by the administrator."""

    bubble: BubbleConnection
    thread_id: str
    events: ThreadSubscription

    async def say(self, text: str) -> int:
        """Says something; the seq with which it ends."""
        return (await self.bubble.send_message(self.thread_id, text)).finished_seq

    async def next(self, kind: str, run_id: str) -> dict[str, JSONValue]:
        """The next event of this kind in this run."""
        async for stored in self.events:
            event = stored.to_dict()
            if event["type"] == kind and event.get("runId") == run_id:
                return event
        raise AssertionError("the subscription ended")

    async def answer(self) -> None:
        """Returns once the bot has answered something."""
        async for stored in self.events:
            event = stored.to_dict()
            if event["type"] == "run_finished" and event["principalId"] == "careful":
                return

    async def count(self, kind: str) -> int:
        """How many events of the bot there are of this kind."""
        found = [each.to_dict() async for each in self.bubble.iter_events(self.thread_id)]
        return sum(event["type"] == kind and event.get("principalId") == "careful" for event in found)


@asynccontextmanager
async def conversation(place: Desk) -> AsyncIterator[Conversation]:
    token = place.terminal.run("bubble tokens mint admin 2> /dev/null").strip()
    async with BubbleConnection(place.here("http://127.0.0.1:3000"), token=token) as bubble:
        thread = await bubble.create_thread(participants={"careful": "participant"})
        async with bubble.subscribe_thread(thread.thread_id) as events, asyncio.timeout(SECONDS):
            yield Conversation(bubble=bubble, thread_id=thread.thread_id, events=events)


async def test_a_bot_that_is_killed_in_its_answer_closes_it_and_goes_on(place: Desk) -> None:
    bot = start(place)
    async with conversation(place) as talk:
        seq = await talk.say("a long story " * 200)
        await talk.next("message_part", f"echo-{seq}")
        bot.kill()
        bot = start(place)
        assert (await talk.next("run_finished", f"echo-{seq}"))["outcome"] == "failed"
        again = await talk.say("and now?")
        assert (await talk.next("run_finished", f"echo-{again}"))["outcome"] == "success"
        assert await talk.count("run_started") == 2
    bot.stop()


@pytest.mark.parametrize("name", ["echo_bot.py", "careful_bot.py"])
async def test_ctrl_c_ends_a_bot_quietly(place: Desk, name: str) -> None:
    command = f"BUBBLE_URL=http://127.0.0.1:3000 BUBBLE_TOKEN=$bot exec python {name}\n"
    async with conversation(place) as talk:
        bot = place.terminal.start(place.here(command))
        await talk.say("Are you there?")
        await talk.answer()
        bot.stop()
    assert "Traceback" not in bot.output
    assert "Error" not in bot.output


@pytest.mark.parametrize("name", ["echo_bot.py", "careful_bot.py"])
def test_a_bot_that_the_server_refuses_says_so_in_one_sentence(place: Desk, name: str) -> None:
    command = f"BUBBLE_URL=http://127.0.0.1:3000 BUBBLE_TOKEN=bubble_agent_gone python {name} 2>&1 || true"
    said = place.terminal.run(place.here(command)).splitlines()
    assert len(said) == 1
    assert said[0].startswith(f"{name.removesuffix('.py')}: ")


@pytest.mark.parametrize("name", ["echo_bot.py", "careful_bot.py"])
@pytest.mark.parametrize("given", ["BUBBLE_URL=http://127.0.0.1:3000", "BUBBLE_TOKEN=$bot"])
def test_a_bot_that_is_not_told_all_that_it_needs_says_so_in_one_sentence(place: Desk, name: str, given: str) -> None:
    command = f"env -u BUBBLE_URL -u BUBBLE_TOKEN {given} python {name} 2>&1 || true"
    [said] = place.terminal.run(place.here(command)).splitlines()
    assert said.startswith(f"{name.removesuffix('.py')}: ")
    assert "BUBBLE_TOKEN" in said


async def test_a_bot_that_is_asked_to_stop_says_that_it_was(place: Desk) -> None:
    bot = start(place)
    async with conversation(place) as talk:
        seq = await talk.say("a long story " * 200)
        await talk.next("message_part", f"echo-{seq}")
        stop = {"type": "run_interrupt_requested", "principalId": "admin", "runId": f"echo-{seq}"}
        await talk.bubble.append_event(talk.thread_id, stop)
        assert (await talk.next("run_finished", f"echo-{seq}"))["outcome"] == "interrupted"
    bot.stop()


async def test_of_two_copies_of_a_bot_one_answers(place: Desk) -> None:
    bots = [start(place), start(place)]
    async with conversation(place) as talk:
        seq = await talk.say("Hello")
        await talk.next("run_finished", f"echo-{seq}")
        place.terminal.wait_for(f"message {seq} was answered before\n")
        assert await talk.count("run_started") == 1
    for bot in bots:
        bot.stop()


async def test_a_bot_that_is_removed_leaves_the_other_threads_alone(place: Desk) -> None:
    bot = start(place)
    async with conversation(place) as first, conversation(place) as second:
        answered = await first.say("Hello")
        await first.next("run_finished", f"echo-{answered}")
        await first.bubble.remove_grant(first.thread_id, "careful")
        bot.wait_for(f"no longer on {first.thread_id}\n")
        seq = await second.say("Are you still there?")
        assert (await second.next("run_finished", f"echo-{seq}"))["outcome"] == "success"
    bot.stop()
