"""What an agent hears by itself, within its run, and what becomes of it when the relay has not heard of it yet."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from bubble.amphibian.agents import Reply, Turn
from bubble.amphibian.forward import AbortReason, Forward
from bubble.amphibian.forwards import Forwards
from bubble.amphibian.sessions import Session
from bubble.client import BubbleConnection
from bubble.client.tool_calls import ToolCall
from bubble.protocol.errors import BubbleError, Conflict, Forbidden, NotFound
from tests.amphibian.logs import ME, finish, interrupt
from tests.amphibian.world import Listener, Thread, World, chunk_types, text_of

pytestmark = pytest.mark.anyio

Wait = Callable[[ToolCall], Awaitable[object]]


# --- before the relay -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def deaf_relay(monkeypatch: pytest.MonkeyPatch) -> None:
    """A relay that aborts nothing and passes nothing on: what the agent learns, it learns by its own wait."""

    def nothing(*_: object) -> None: ...

    monkeypatch.setattr(Forwards, "abort_run", nothing)
    monkeypatch.setattr(Forwards, "hear", nothing)


async def in_a_group(call: ToolCall) -> None:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_approval(call))
        tasks.create_task(_approval(call))


async def hidden(call: ToolCall) -> None:
    try:
        await call.approval()
    except Exception as error:
        raise RuntimeError("a library's own error") from error


async def _approval(call: ToolCall) -> None:
    await call.approval()


WAITS = {"approval": ToolCall.approval, "result": ToolCall.result, "in a group": in_a_group, "wrapped": hidden}


class Waiting:
    """Calls a tool and waits in some way; says what it can when it was let go on."""

    def __init__(self, wait: Wait) -> None:
        self._wait = wait

    async def __call__(self, turn: Turn, reply: Reply) -> None:
        if turn.text == "one":
            await self._wait(await reply.run.tool_call("refund", {}, tool_call_id="c1"))
        await reply.run.text(f"Done: {turn.text}")


async def asked(thread: Thread) -> str:
    """The run in which the agent has called its tool."""
    await thread.say("one")
    return str((await thread.next("message_part"))["runId"])


@pytest.mark.usefixtures("deaf_relay")
@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS.keys())
async def test_a_reply_that_waits_is_interrupted_also_where_it_hears_of_it_first(world: World, wait: Wait) -> None:
    agent = Listener(Waiting(wait))
    async with world.connector(agent):
        thread = await world.thread()
        run = await asked(thread)
        await thread.append(interrupt(run))
        end = await thread.next("run_finished")
        assert (end["runId"], end["outcome"], "error" in chunk_types(thread.seen)) == (run, "interrupted", False)
        await thread.say("two")
        assert await thread.answered() == "Done: two"
    assert ([turn.text for turn in agent.turns], agent.cancelled) == (["one", "two"], [thread.thread_id])


@pytest.mark.usefixtures("deaf_relay")
async def test_a_run_that_somebody_else_finishes_is_left_also_where_the_agent_hears_of_it_first(world: World) -> None:
    agent = Listener(Waiting(ToolCall.approval))
    async with world.connector(agent):
        thread = await world.thread()
        await thread.append(finish(await asked(thread)))
        await thread.say("two")
        assert await thread.answered() == "Done: two"
    assert ([turn.text for turn in agent.turns], agent.cancelled) == (["one", "two"], [thread.thread_id])


# --- what a failure tells of ----------------------------------------------------------------------------------------------------


class Attempt:
    """A forward of the bot's whose agent fails with `error`, at once or when it is let go on."""

    def __init__(self, thread: Thread, bubble: BubbleConnection, error: BaseException) -> None:
        self.has_begun, self.go_on, self.has_left = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._error = error

        async def save(session: bytes) -> None: ...

        async def tell(run_id: str, text: str) -> None: ...

        session = Session(thread.thread_id, text=b"{}", save=save)
        reply = Reply(thread_id=thread.thread_id, session=session, open_run=lambda: bubble.run(thread.thread_id))
        self.forward = Forward(reply, self._fail, tell_directly=tell)

    async def _fail(self, _: Reply) -> None:
        self.has_begun.set()
        await self.go_on.wait()
        self.has_left.set()
        raise self._error


def in_group(error: Exception) -> BaseException:
    return ExceptionGroup("tasks", [error])


@pytest.mark.parametrize("error", [NotFound("Gone."), Forbidden("No."), in_group(NotFound("Gone."))], ids=str)
async def test_a_failure_that_tells_of_a_removal_settles_nothing(world: World, error: Exception) -> None:
    thread = await world.thread()
    async with world.server.connect(world.bot) as bubble:
        attempt = Attempt(thread, bubble, error)
        settling = asyncio.create_task(attempt.forward.carry_out(starts=True))
        attempt.go_on.set()
        await attempt.has_left.wait()
        attempt.forward.abort("revoked")
        assert not await settling
    assert ((await thread.next("run_finished"))["outcome"], text_of(thread.seen)) == ("failed", "")
    assert attempt.forward.has_fled


@pytest.mark.parametrize("reason", ["revoked", "lost"])
async def test_a_run_that_ended_because_the_bot_was_removed_settles_nothing_though_it_is_let_in_again_at_once(
    world: World, reason: AbortReason
) -> None:
    thread = await world.thread()
    async with world.server.connect(world.bot) as bubble:
        attempt = Attempt(thread, bubble, Conflict("The run has finished."))
        settling = asyncio.create_task(attempt.forward.carry_out(starts=True))
        await attempt.has_begun.wait()
        await world.alice.remove_grant(thread.thread_id, ME)
        await world.alice.put_grant(thread.thread_id, ME, "participant")
        attempt.go_on.set()
        await attempt.has_left.wait()
        attempt.forward.abort(reason)
        assert not await settling
    assert (await thread.next("run_finished", by=None))["outcome"] == "lost"


@pytest.mark.parametrize(("outcome", "reason"), [("lost", "lost"), ("failed", "finished_elsewhere")])
async def test_the_relay_tells_the_end_that_the_server_made_from_anybody_elses(
    world: World, monkeypatch: pytest.MonkeyPatch, outcome: str, reason: AbortReason
) -> None:
    heard: list[AbortReason] = []
    monkeypatch.setattr(Forwards, "abort_run", lambda _self, _run, why: heard.append(why))
    async with world.connector(Listener(Waiting(ToolCall.approval))):
        thread = await world.thread()
        await thread.append(finish(await asked(thread), outcome=outcome))
        await thread.say("two")
        await thread.answered()
    assert heard == [reason]


@pytest.mark.parametrize("error", [NotFound("Gone."), Forbidden("No."), Conflict("Taken.")], ids=str)
async def test_the_agents_own_failure_of_the_same_kind_is_told(world: World, error: BubbleError) -> None:
    thread = await world.thread()
    async with world.server.connect(world.bot) as bubble:
        attempt = Attempt(thread, bubble, error)
        attempt.go_on.set()
        assert await attempt.forward.carry_out(starts=True)
    end = await thread.next("run_finished", by=ME)
    assert (end["outcome"], text_of(thread.seen)) == ("failed", error.message)
    assert not attempt.forward.has_fled
