"""Between a thread and an agent, on a real server: what is forwarded, when, and what becomes of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path

import pytest

from bubble.amphibian.agents import AgentFailed, Reply, ToolResult, Turn
from bubble.amphibian.backlog import BacklogPolicy
from bubble.amphibian.store import AmphibianStore
from bubble.protocol.jsontext import JSONValue
from tests.amphibian.logs import ME, finish, interrupt, part, said, start
from tests.amphibian.world import PATIENCE, Listener, Scripted, Thread, World, answer, text_of

pytestmark = pytest.mark.anyio


class Slowly:
    """Answers that begin, and go on when the test says so."""

    def __init__(self, *, leaves: bool = True) -> None:
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()
        self.saw_cancel = asyncio.Event()
        self.at_once = 0
        self.most_at_once = 0
        self._leaves = leaves

    async def __call__(self, turn: Turn, reply: Reply) -> None:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await reply.run.text("Well, ")
            self.begun.set()
            await self._wait()
            await answer(turn, reply)
        finally:
            self.at_once -= 1

    async def _wait(self) -> None:
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.saw_cancel.set()
            if self._leaves:
                raise
            await self.go_on.wait()


async def until(event: asyncio.Event) -> None:
    async with asyncio.timeout(PATIENCE):
        await event.wait()


# --- what is forwarded ----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("AM-11")
async def test_a_reply_says_from_which_state_of_the_thread_it_began(world: World) -> None:
    agent = Scripted()
    async with world.connector(agent):
        thread = await world.thread()
        run_id = await thread.say("Hello")
        await thread.answered()
        (turn,) = agent.turns
        (begin,) = await thread.runs_of_bot()
    last = max(int(str(e["seq"])) for e in await thread.log() if e.get("runId") == run_id)
    assert (begin["snapshotSeq"], turn.through_seq, begin["kind"]) == (last, last, "agent_work")
    assert (turn.run_ids, turn.authors, turn.thread_id) == ((run_id,), ("alice",), thread.thread_id)
    assert [stored.seq for stored in turn.events] == list(range(last - 4, last + 1))


@pytest.mark.requirement("AM-19")
async def test_what_is_said_during_a_reply_is_one_question_after_it(world: World) -> None:
    slowly = Slowly()
    agent = Scripted(slowly)
    async with world.connector(agent):
        thread = await world.thread()
        await thread.say("one")
        await until(slowly.begun)
        for text in ("two", "three"):
            await thread.say(text)
        slowly.go_on.set()
        await thread.answered()
        await thread.answered()
    assert [turn.text for turn in agent.turns] == ["one", "two\n\nthree"]


async def test_two_hundred_who_post_at_once_during_a_reply_are_one_more_question(world: World) -> None:
    slowly = Slowly()
    agent = Scripted(slowly)
    async with world.connector(agent) as connector:
        thread = await world.thread()
        await thread.say("first")
        await until(slowly.begun)
        people = [await world.server.register(f"p{n}") for n in range(200)]
        for person in people:
            await world.alice.put_grant(thread.thread_id, person.principal_id, "participant")

        async def post(who: str, token: str) -> None:
            async with world.server.connect(token) as bubble:
                await bubble.append_events(thread.thread_id, said(f"r-{who}", f"<{who}>", who))

        await asyncio.gather(*(post(each.principal_id, each.token) for each in people))
        await thread.next("run_finished", by=None, runId=next(reversed([f"r-p{n}" for n in range(200)])))
        statistics = connector.drivers[thread.thread_id].statistics()
        assert statistics is not None
        assert (statistics.forwards, slowly.at_once) == (1, 1)
        slowly.go_on.set()
        await agent.asked(2)
        await thread.answered()
        await thread.answered()
    assert slowly.most_at_once == 1
    told = "\n\n".join(turn.text for turn in agent.turns).split("\n\n")
    assert sorted(told) == sorted(["first", *(f"<p{n}>" for n in range(200))])
    assert len(agent.turns) == 2


async def test_the_bots_own_words_are_not_put_to_it(world: World) -> None:
    agent = Scripted()
    async with world.connector(agent):
        thread = await world.thread()
        async with world.server.connect(world.bot) as elsewhere:
            await elsewhere.append_events(thread.thread_id, said("own", "I say", ME, kind="agent_work"))
        await thread.say("Hello")
        await thread.next("run_finished", runId="own")
        await thread.answered()
    assert [turn.text for turn in agent.turns] == ["Hello"]


async def test_a_run_that_goes_on_waits_until_it_is_over(world: World) -> None:
    agent = Scripted()
    async with world.connector(agent):
        thread = await world.thread()
        await thread.append(start("slow"))
        await thread.append(part("slow", "first "))
        await thread.say("quick")
        await thread.answered()
        await thread.append(part("slow", "second"))
        await thread.append(finish("slow"))
        await thread.answered()
    assert [turn.text for turn in agent.turns] == ["quick", "first second"]


async def test_a_run_in_which_nothing_was_said_asks_nothing(world: World) -> None:
    agent = Scripted()
    async with world.connector(agent):
        thread = await world.thread()
        await thread.append(start("empty"))
        await thread.append(finish("empty"))
        await thread.say("Hello")
        await thread.answered()
    assert [turn.text for turn in agent.turns] == ["Hello"]


async def test_files_come_with_the_words(world: World) -> None:
    agent = Scripted()
    async with world.connector(agent):
        thread = await world.thread()
        async with world.alice.run(thread.thread_id, kind="user_input") as run:
            await run.text("Look")
            await run.file(b"\x89PNG", media_type="image/png", filename="a.png")
        await thread.answered()
    (file,) = agent.turns[0].files
    assert (file.url, file.media_type, file.filename) == ("data:image/png;base64,iVBORw==", "image/png", "a.png")


# --- being asked to stop --------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("AM-19")
@pytest.mark.parametrize("leaves", [True, False], ids=["an agent that leaves", "one that does not"])
async def test_a_reply_that_is_asked_to_stop_ends_within_a_second(world: World, *, leaves: bool) -> None:
    slowly = Slowly(leaves=leaves)
    agent = Listener(slowly)
    async with world.connector(agent):
        thread = await world.thread()
        await thread.say("one")
        begin = await thread.next("run_started")
        await until(slowly.begun)
        async with asyncio.timeout(1):
            await thread.append(interrupt(str(begin["runId"])))
            end = await thread.next("run_finished")
        assert (end["runId"], end["outcome"]) == (begin["runId"], "interrupted")
        await until(slowly.saw_cancel)
        await until(agent.was_cancelled)
        slowly.go_on.set()
    assert agent.cancelled == [thread.thread_id]


async def test_a_request_to_stop_another_run_stops_nothing(world: World) -> None:
    slowly = Slowly()
    async with world.connector(Scripted(slowly)):
        thread = await world.thread()
        await thread.append(start("theirs"))
        await thread.say("one")
        await until(slowly.begun)
        await thread.append(interrupt("theirs"))
        await thread.append(finish("theirs"))
        slowly.go_on.set()
        assert await thread.answered() == "Well, You said: one"


async def test_after_a_stop_what_came_meanwhile_is_asked(world: World) -> None:
    slowly = Slowly()
    agent = Listener(slowly)
    async with world.connector(agent):
        thread = await world.thread()
        await thread.say("one")
        begin = await thread.next("run_started")
        await until(slowly.begun)
        await thread.say("two")
        await thread.append(interrupt(str(begin["runId"])))
        slowly.go_on.set()
        assert await thread.answered() == "Well, You said: two"
    assert [turn.text for turn in agent.turns] == ["one", "two"]


async def test_a_run_that_somebody_else_finishes_is_left(world: World) -> None:
    slowly = Slowly()
    agent = Listener(slowly)
    async with world.connector(agent):
        thread = await world.thread()
        await thread.say("one")
        begin = await thread.next("run_started")
        await until(slowly.begun)
        await thread.append(finish(str(begin["runId"])))
        await until(slowly.saw_cancel)
        slowly.go_on.set()
        await thread.say("two")
        assert await thread.answered() == "Well, You said: two"
    assert agent.cancelled == [thread.thread_id]


# --- failures -------------------------------------------------------------------------------------------------------------------


async def failing(turn: Turn, reply: Reply) -> None:
    await reply.run.text("I think ")
    if turn.text == "known":
        raise AgentFailed("The model is asleep.")
    if turn.text == "told":
        await reply.fail("Out of words.")
        return
    if turn.text == "gives up":
        raise asyncio.CancelledError
    if turn.text == "large":
        await reply.run.part({"type": "data-x", "data": "x" * 2_000_000})
    raise ValueError("secret 42")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("known", "The model is asleep."),
        ("told", "Out of words."),
        ("gives up", "The agent gave up."),
        ("unknown", "The agent failed unexpectedly; the connector's log says why."),
        ("large", "The part data-x is too large: "),
    ],
)
async def test_a_failure_is_told_to_the_people(
    world: World, text: str, error: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with world.connector(Scripted(failing)):
        thread = await world.thread()
        await thread.say(text)
        assert (await thread.answered(outcome="failed")).startswith(f"I think {error}")
    assert ("secret 42" in caplog.text) == (text == "unknown")


async def test_after_a_failure_the_next_question_is_asked(world: World) -> None:
    agent = Scripted(failing)
    async with world.connector(agent):
        thread = await world.thread()
        for text in ("unknown", "known"):
            await thread.say(text)
            await thread.answered(outcome="failed")
    assert [turn.text for turn in agent.turns] == ["unknown", "known"]


async def test_an_agent_says_how_its_reply_ended(world: World) -> None:
    async def concludes(turn: Turn, reply: Reply) -> None:
        await answer(turn, reply)
        reply.conclude("interrupted")

    async with world.connector(Scripted(concludes)):
        thread = await world.thread()
        await thread.say("Hello")
        assert await thread.answered(outcome="interrupted") == "You said: Hello"


# --- results of tools -----------------------------------------------------------------------------------------------------------


async def calls_a_tool(turn: Turn, reply: Reply) -> None:
    await reply.run.tool_call("weather", {"in": turn.text}, tool_call_id="c1")
    await reply.run.text("Asking.")


HAS_A_RESULT = "This result is not passed on: its call has been given one already."


def result(run_id: object, output: JSONValue = 20, *, call: str = "c1") -> Mapping[str, object]:
    return {
        "type": "tool_call_result",
        "principalId": "alice",
        "runId": run_id,
        "toolCallId": call,
        "input": {"in": "Rome"},
        "output": output,
    }


async def the_call(thread: Thread) -> object:
    await thread.say("Rome")
    begin = await thread.next("run_started")
    await thread.answered()
    return begin["runId"]


async def test_a_result_of_an_own_call_is_forwarded_in_a_run_of_its_own(world: World) -> None:
    agent = Listener(calls_a_tool)
    async with world.connector(agent):
        thread = await world.thread()
        run_id = await the_call(thread)
        seq = await thread.append(result(run_id))
        assert await thread.answered() == "Result: 20"
        begins = await thread.runs_of_bot()
    (given,) = agent.results
    assert (given.run_id, given.tool_call_id, given.tool_name) == (run_id, "c1", "weather")
    assert (given.input, given.output, given.principal_id, given.seq) == ({"in": "Rome"}, 20, "alice", seq)
    assert "snapshotSeq" not in begins[1]


async def test_a_result_does_not_wait_for_the_reply_under_way(world: World) -> None:
    slowly = Slowly()

    async def first_calls(turn: Turn, reply: Reply) -> None:
        await (calls_a_tool if turn.text == "Rome" else slowly)(turn, reply)

    async with world.connector(Listener(first_calls)):
        thread = await world.thread()
        run_id = await the_call(thread)
        await thread.say("something else")
        await until(slowly.begun)
        await thread.append(result(run_id))
        assert await thread.answered() == "Result: 20"
        slowly.go_on.set()
        assert await thread.answered() == "Well, You said: something else"


async def test_a_result_of_anybody_elses_call_is_not_forwarded(world: World) -> None:
    agent = Listener(calls_a_tool)
    async with world.connector(agent):
        thread = await world.thread()
        run_id = await the_call(thread)
        await thread.append(start("hers"))
        call = {"type": "tool-input-available", "toolCallId": "c1", "toolName": "t", "input": {}}
        await thread.append({**part("hers"), "part": call})
        await thread.append(result("hers"))
        await thread.append(result(run_id, call="unknown"))
        await thread.append(result(run_id, "mine"))
        assert await thread.answered() == "Result: mine"
    assert [each.output for each in agent.results] == ["mine"]


async def test_a_result_that_comes_after_a_restart_finds_its_call_in_the_log(world: World) -> None:
    async with world.connector(Scripted(calls_a_tool)):
        thread = await world.thread()
        run_id = await the_call(thread)
    agent = Listener()
    async with world.connector(agent):
        await thread.append(result(run_id))
        assert await thread.answered() == "Result: 20"
    assert [each.tool_name for each in agent.results] == ["weather"]


async def test_the_first_result_of_a_call_counts_and_another_one_is_dropped(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    agent = Listener(calls_a_tool)
    async with world.connector(agent):
        thread = await world.thread()
        run_id = await the_call(thread)
        await thread.bubble.append_events(thread.thread_id, [result(run_id, "first"), result(run_id, "second")])
        assert await thread.answered() == "Result: first"
        late = await thread.append(result(run_id, "third"))
        await thread.say("Rome")
        await thread.answered()
    assert [each.output for each in agent.results] == ["first"]
    assert f"The result {late} on thread {thread.thread_id} is dropped" in caplog.text


@pytest.mark.parametrize("max_replay", [0, 50], ids=["out of sight", "in the window"])
async def test_the_first_result_counts_over_a_restart_too(world: World, tmp_path: Path, max_replay: int) -> None:
    agent = Listener(calls_a_tool)
    thread = await world.thread()
    await thread.append(start("open"))  # which holds the checkpoint down
    run_id: object = None
    for output in ("first", "second"):
        async with (
            await AmphibianStore.open(str(tmp_path / "store")) as store,
            world.connector(agent, store=store, policy=BacklogPolicy(max_replay=max_replay)) as connector,
        ):
            await connector.attended(thread.thread_id)
            run_id = run_id or await the_call(thread)
            await thread.append(result(run_id, output))
            await thread.say("Rome")
            await thread.answered()
    assert [each.output for each in agent.results] == ["first"]


async def test_a_result_that_an_agent_has_no_use_for_starts_no_run(world: World) -> None:
    class Dropping(Listener):
        async def tool_result(self, result: object, reply: Reply) -> None:
            del result, reply
            self.was_cancelled.set()

    agent = Dropping(calls_a_tool)
    async with world.connector(agent):
        thread = await world.thread()
        run_id = await the_call(thread)
        await thread.append(result(run_id))
        await until(agent.was_cancelled)
        await thread.say("Rome")
        await thread.answered()
    assert len(await thread.runs_of_bot()) == 2


async def test_a_result_whose_forward_fails_is_told_to_the_people(world: World) -> None:
    class Failing(Listener):
        async def tool_result(self, result: object, reply: Reply) -> None:
            del result, reply
            raise AgentFailed("No such task.")

    async with world.connector(Failing(calls_a_tool)):
        thread = await world.thread()
        await thread.append(result(await the_call(thread)))
        assert await thread.answered(outcome="failed") == "No such task."


class RefusesOnce(Listener):
    """One that does not take the first result."""

    async def tool_result(self, result: ToolResult, reply: Reply) -> None:
        if not self.results:
            self.results.append(result)
            raise AgentFailed("Come again.")
        await super().tool_result(result, reply)


async def test_a_result_that_the_agent_did_not_take_can_be_given_again(world: World) -> None:
    agent = RefusesOnce(calls_a_tool)
    async with world.connector(agent):
        thread = await world.thread()
        run_id = await the_call(thread)
        await thread.append(result(run_id))
        assert await thread.answered(outcome="failed") == "Come again."
        await thread.append(result(run_id))
        assert await thread.answered() == "Result: 20"
    assert len(agent.results) == 2


@pytest.mark.parametrize("max_replay", [0, 50], ids=["out of sight", "in the window"])
async def test_a_result_that_the_agent_did_not_take_can_be_given_again_after_a_restart(
    world: World, tmp_path: Path, max_replay: int
) -> None:
    agent, thread = RefusesOnce(calls_a_tool), await world.thread()
    await thread.append(start("open"))  # which holds the checkpoint down
    run_id: object = None
    for outcome, words in (("failed", "Come again."), ("success", "Result: 20"), ("failed", HAS_A_RESULT)):
        async with (
            await AmphibianStore.open(str(tmp_path / "store")) as store,
            world.connector(agent, store=store, policy=BacklogPolicy(max_replay=max_replay)) as connector,
        ):
            await connector.attended(thread.thread_id)
            run_id = run_id or await the_call(thread)
            await thread.append(result(run_id))
            assert await thread.answered(outcome=outcome) == words


async def test_a_second_result_is_not_passed_over_in_silence(world: World) -> None:
    async with world.connector(Listener(calls_a_tool)):
        thread = await world.thread()
        run_id = await the_call(thread)
        await thread.append(result(run_id))
        await thread.answered()
        await thread.append(start("hers"))
        for _ in range(2):
            await thread.append(result("hers"))  # is nothing to this bot
        await thread.append(result(run_id))
        assert await thread.answered(outcome="failed") == HAS_A_RESULT
        assert [begin["kind"] for begin in await thread.runs_of_bot()] == ["agent_work", "agent_work", "system_work"]


async def test_a_reply_can_wait_for_consent(world: World) -> None:
    async def asks(turn: Turn, reply: Reply) -> None:
        call = await reply.run.tool_call("refund", {"amount": 20}, tool_call_id="c1")
        consent = await call.approval()
        await reply.run.text(f"{turn.text}: done." if consent else f"Not done: {consent.reason}")

    async with world.connector(Scripted(asks)):
        thread = await world.thread()
        await thread.say("Refund me")
        begin = await thread.next("run_started")
        while (await thread.next("message_part"))["part"]["type"] != "tool-approval-request":  # type: ignore[index]
            pass
        decision = {"type": "tool_call_approval", "principalId": "alice", "runId": begin["runId"], "toolCallId": "c1"}
        await thread.append({**decision, "approved": False, "reason": "too much"})
        assert await thread.answered() == "Not done: too much"


# --- bots among themselves ------------------------------------------------------------------------------------------------------


async def test_after_a_number_of_turns_without_a_person_it_pauses_and_says_so_once(world: World) -> None:
    agent = Scripted()
    async with world.connector(agent, max_bot_turns=2):
        thread = await world.thread()
        for number in range(2):
            await thread.say(f"bot {number}", kind="agent_work")
            await thread.answered()
        for number in range(2, 4):
            await thread.say(f"bot {number}", kind="agent_work")
        assert "2 turns in a row" in await thread.answered()
        await thread.say("A person here")
        assert await thread.answered() == "You said: bot 2\n\nbot 3\n\nA person here"
        await thread.say("bot 4", kind="agent_work")
        assert await thread.answered() == "You said: bot 4"
    assert sum(e["kind"] == "system_work" for e in await thread.runs_of_bot()) == 1


async def test_what_was_said_in_a_pause_is_not_asked_after_a_restart(world: World) -> None:
    agent = Scripted()
    async with world.connector(agent, max_bot_turns=0):
        thread = await world.thread()
        await thread.say("bot", kind="agent_work")
        assert "pauses" in await thread.answered()
        await thread.say("person")
        await thread.answered()
        await thread.say("bot again", kind="agent_work")
        assert "pauses" in await thread.answered()
    assert text_of([e for e in await thread.log() if e.get("principalId") == ME]).count("pauses") == 2


@pytest.fixture(autouse=True)
def _logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="bubble.amphibian")
