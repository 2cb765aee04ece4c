"""A connector on a real server: it joins the threads that its bot is granted, and leaves them."""

from __future__ import annotations

import asyncio
import logging

import pytest

from bubble.amphibian.agents import Reply, Turn
from bubble.amphibian.connector import Connector
from bubble.amphibian.store import AmphibianStore
from bubble.protocol.errors import Forbidden, Unauthenticated
from tests.amphibian.logs import ME
from tests.amphibian.world import PATIENCE, Listener, Scripted, World, answer

pytestmark = pytest.mark.anyio


class Talking:
    """An answer that goes on until it is cut off."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.saw_cancel = asyncio.Event()

    async def __call__(self, turn: Turn, reply: Reply) -> None:
        try:
            while True:
                await reply.run.text(f"{turn.text}. ")
                await reply.run.flush()
                self.begun.set()
        except asyncio.CancelledError:
            self.saw_cancel.set()
            raise


async def until(event: asyncio.Event) -> None:
    async with asyncio.timeout(PATIENCE):
        await event.wait()


async def gone(connector: Connector, thread_id: str) -> None:
    """Waits until no driver is at work on the thread."""
    seat = connector._seats.get(thread_id)
    if seat is not None:
        async with asyncio.timeout(PATIENCE):
            await asyncio.wait({seat.task})


# --- who ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("AM-20")
async def test_it_refuses_to_start_with_the_token_of_another_principal(world: World) -> None:
    expected = 'The token is that of principal "bot", but `bubble.principalId` is "tob".'
    with pytest.raises(Forbidden) as raised:
        async with world.connector(Scripted(), principal_id="tob"):
            raise AssertionError("it started")
    assert raised.value.message == expected


async def test_it_does_not_start_with_a_token_that_is_refused(world: World) -> None:
    async with world.server.connect("bubble_agent_wrong") as bubble, await AmphibianStore.open() as store:
        connector = Connector(Scripted(), bubble=bubble, principal_id=ME, store=store)
        with pytest.raises(Unauthenticated):
            await connector.run(stop=asyncio.Event())


# --- coming and going -----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("AM-21")
@pytest.mark.parametrize("before", [True, False], ids=["before it starts", "while it runs"])
async def test_it_answers_on_a_thread_that_it_is_let_in_to(world: World, *, before: bool) -> None:
    thread = await world.thread() if before else None
    async with world.connector(Scripted()):
        thread = thread or await world.thread()
        await thread.say("Hello")
        assert await thread.answered() == "You said: Hello"


@pytest.mark.requirement("AM-21")
async def test_where_it_is_an_owner_it_answers_too(world: World) -> None:
    thread = await world.thread()
    await world.alice.put_grant(thread.thread_id, ME, "owner")
    async with world.connector(Scripted()):
        await thread.say("Hello")
        assert await thread.answered() == "You said: Hello"


@pytest.mark.requirement("AM-21")
async def test_an_observer_only_looks_on_until_it_may_take_part(world: World) -> None:
    thread = await world.thread(with_bot=False)
    await world.alice.put_grant(thread.thread_id, ME, "observer")
    async with world.connector(agent := Scripted()) as connector:
        other = await world.thread()
        await other.say("one")
        await other.answered()
        assert set(connector.drivers) == {other.thread_id}
        await world.alice.put_grant(thread.thread_id, ME, "participant")
        await thread.say("two")
        await thread.answered()
    assert [turn.text for turn in agent.turns] == ["one", "two"]


@pytest.mark.requirement("AM-21")
@pytest.mark.parametrize("to", [None, "observer"])
async def test_a_revoked_grant_stops_the_reply_within_a_second(world: World, to: str | None) -> None:
    talking = Talking()
    agent = Listener(talking)
    async with world.connector(agent) as connector:
        thread = await world.thread()
        await thread.say("one")
        await until(talking.begun)
        async with asyncio.timeout(1):
            if to is None:
                await world.alice.remove_grant(thread.thread_id, ME)
            else:
                await world.alice.put_grant(thread.thread_id, ME, to)
            await talking.saw_cancel.wait()
        await until(agent.was_cancelled)
        await gone(connector, thread.thread_id)
        assert connector.drivers == {}
        other = await world.thread()
        agent._responds = answer
        await other.say("still here")
        assert await other.answered() == "You said: still here"


@pytest.mark.requirement("AM-14", "AM-21")
async def test_let_in_again_it_goes_on(world: World) -> None:
    talking = Talking()
    agent = Listener(talking)
    async with world.connector(agent):
        thread = await world.thread()
        await thread.say("one")
        await until(talking.begun)
        await world.alice.remove_grant(thread.thread_id, ME)
        await until(agent.was_cancelled)
        agent._responds = answer
        await world.alice.put_grant(thread.thread_id, ME, "participant")
        await thread.next("run_finished", by="system:bubble", outcome="lost")
        await thread.say("two")
        assert await thread.answered() == "You said: two"
    assert await thread.open_runs() == 0
    assert [turn.text for turn in agent.turns] == ["one", "two"]


@pytest.mark.requirement("AM-21")
async def test_let_go_and_let_in_at_once_it_never_works_twice_on_a_thread(world: World) -> None:
    async with world.connector(agent := Scripted()) as connector:
        thread = await world.thread()
        for _ in range(10):
            await world.alice.remove_grant(thread.thread_id, ME)
            await world.alice.put_grant(thread.thread_id, ME, "participant")
        await thread.say("Hello")
        assert await thread.answered() == "You said: Hello"
        assert set(connector.drivers) == {thread.thread_id}
    assert len(agent.turns) == 1


async def test_a_thread_that_is_deleted_is_left(world: World) -> None:
    async with world.connector(Scripted()) as connector:
        thread = await world.thread()
        async with asyncio.timeout(PATIENCE):
            await connector.attended(thread.thread_id)
        await world.alice.delete_thread(thread.thread_id)
        await gone(connector, thread.thread_id)
        other = await world.thread()
        await other.say("Hello")
        assert await other.answered() == "You said: Hello"


async def test_a_role_that_cannot_speak_makes_it_leave_in_peace(
    world: World, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a role of the deployment's own, of which it cannot know what it may do."""
    caplog.set_level(logging.INFO, logger="bubble.amphibian")

    async def refuses(*given: object, **more: object) -> None:
        del given, more
        raise Forbidden('Principal "bot" lacks "events.run_started".')

    async with world.connector(Scripted()) as connector:
        thread = await world.thread()
        await connector.attended(thread.thread_id)
        monkeypatch.setattr("bubble.client.runs.Run._append_start", refuses)
        await thread.say("Hello")
        await gone(connector, thread.thread_id)
    assert f"No longer on thread {thread.thread_id}" in caplog.text


# --- many at once ---------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_five_hundred_threads_are_attended_to_by_one_connector(world: World) -> None:
    agent = Scripted()
    made = [(await world.alice.create_thread(participants={ME: "participant"})).thread_id for _ in range(500)]
    async with world.connector(agent) as connector, asyncio.timeout(60):
        for thread_id in made:
            await connector.attended(thread_id)

        async def ask(thread_id: str) -> None:
            async with world.alice.run(thread_id, kind="user_input") as run:
                await run.text(thread_id)

        await asyncio.gather(*map(ask, made))
        await agent.asked(500)
    assert {turn.thread_id: turn.text for turn in agent.turns} == {thread_id: thread_id for thread_id in made}


async def test_a_long_reply_on_one_thread_holds_up_no_other(world: World) -> None:
    talking = Talking()

    async def talks(turn: Turn, reply: Reply) -> None:
        await (talking if turn.text == "talk" else answer)(turn, reply)

    async with world.connector(Scripted(talks)):
        busy, other = await world.thread(), await world.thread()
        await busy.say("talk")
        await until(talking.begun)
        await other.say("Hello")
        assert await other.answered() == "You said: Hello"


# --- the end --------------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("AM-22")
async def test_it_ends_in_time_with_an_agent_that_does_not_leave(world: World) -> None:
    release = asyncio.Event()

    async def stays(turn: Turn, reply: Reply) -> None:
        await reply.run.text(turn.text)
        await reply.run.flush()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    thread = await world.thread()
    async with asyncio.timeout(10):
        async with world.connector(Scripted(stays)):
            await thread.say("one")
            await thread.next("message_part")
    assert (await thread.answered(outcome="failed")).startswith("one")
    assert await thread.open_runs() == 0
    release.set()


@pytest.mark.slow
@pytest.mark.requirement("AM-22")
async def test_an_agent_that_does_not_come_to_an_end_of_its_cancelling_does_not_hold_up_the_end(world: World) -> None:
    class Stuck(Listener):
        async def cancel(self, thread_id: str, session: object) -> None:
            del thread_id, session
            self.was_cancelled.set()
            await asyncio.Event().wait()

    talking = Talking()
    agent = Stuck(talking)
    async with asyncio.timeout(10):
        async with world.connector(agent):
            thread = await world.thread()
            await thread.say("one")
            await until(talking.begun)
    assert agent.was_cancelled.is_set()


async def test_a_token_that_is_revoked_in_the_middle_of_a_reply_ends_it_all(world: World) -> None:
    talking = Talking()
    agent = Listener(talking)

    async def revoked_in_the_middle() -> None:
        async with world.connector(agent):
            thread = await world.thread()
            await thread.say("one")
            await until(talking.begun)
            for token in await world.server.admin.list_tokens(ME):
                await world.server.admin.revoke_token(ME, token.token_id)
            await until(agent.was_cancelled)

    with pytest.raises(Unauthenticated):
        await revoked_in_the_middle()
    assert len(agent.cancelled) == 1
