"""Reef that was killed in the middle: what becomes of the agent's task, and of the question."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from bubble.amphibian.store import AmphibianStore, ThreadKey
from bubble.reef.agent import ReefAgent
from tests.amphibian.lives import Lives
from tests.amphibian.logs import ME, start
from tests.amphibian.nursery import nursery
from tests.amphibian.processes import Scene, scene
from tests.amphibian.world import PATIENCE, Thread, World
from tests.reef.processes import MockProcess, ReefProcess, configured
from tests.reef.raw_agent import Answer, Asked, Feeds, RawAgent, event_stream, json_answer, raw_agent
from tests.reef.test_conversations import ASKS, WORKS, artifact, done, in_turn, interrupt, sent, status, texts

pytestmark = pytest.mark.anyio

ReefTo = Callable[..., ReefAgent]
KILLS = int(os.environ.get("BUBBLE_REEF_KILLS", "100"))
SEED = int(os.environ.get("BUBBLE_SEED", str(random.SystemRandom().randrange(2**32))))
AT_WORK = {"taskId": "t", "artifacts": [], "atWork": True}


def key_of(world: World, thread: Thread) -> ThreadKey:
    return ThreadKey(server=world.server.url, principal_id=ME, thread_id=thread.thread_id)


def at_work_on(seq: object) -> Mapping[str, object]:
    """The session while the task `t` works on the question that ends at this seq."""
    return {**AT_WORK, "question": seq}


async def at_work_for_last_run(thread: Thread) -> Mapping[str, object]:
    """The session while the task `t` works on the question that the bot's last run is for."""
    return at_work_on((await thread.runs_of_bot())[-1]["snapshotSeq"])


async def kept(world: World, thread: Thread, store: AmphibianStore) -> Mapping[str, Any]:
    """The session, as a start after a kill would find it."""
    session: Mapping[str, Any] = json.loads((await store.read(key_of(world, thread))).session)
    return session


async def left_at_work(world: World, store: AmphibianStore) -> Thread:
    """A thread as a process leaves it that is killed while the task `t` works: the pointer, and a run without end."""
    thread = await world.thread()
    await thread.say("Pay")
    asked = (await thread.log())[-1]["seq"]
    async with world.server.connect(world.bot) as bot:
        await bot.append_event(thread.thread_id, start("half", ME, kind="agent_work", snapshot=int(str(asked))))
    await store.write_session(key_of(world, thread), json.dumps(at_work_on(asked)).encode())
    return thread


def asking(task: Answer) -> Callable[[Asked], Answer]:
    """An agent that answers messages, and questions about its task like this."""
    return lambda asked: {"stream": done("Paid"), "get": task}.get(asked.procedure, json_answer({}))


def task_in(state: str) -> Answer:
    return json_answer({"id": "t", "status": {"state": f"TASK_STATE_{state}"}})


# --- what is kept ---------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("RF-46")
async def test_a_task_is_kept_from_its_first_event_on_and_dropped_at_its_end(world: World, reef_to: ReefTo) -> None:
    feeds = Feeds()
    async with (
        raw_agent(feeds) as raw,
        await AmphibianStore.open() as store,
        world.connector(reef_to(raw.url), store=store),
    ):
        thread = await world.thread()
        await thread.say("Go")
        await raw.was_asked("stream")
        feeds[0].send(artifact("Working"))
        await thread.next("message_part")
        assert await kept(world, thread, store) == await at_work_for_last_run(thread)
        feeds[0].send(status("COMPLETED"))
        await thread.answered()
        assert await kept(world, thread, store) == {}


@pytest.mark.requirement("RF-46")
async def test_a_task_that_goes_on_is_not_kept_again_with_each_event(
    world: World, reef_to: ReefTo, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[bytes] = []
    write_session = AmphibianStore.write_session

    async def noted(self: AmphibianStore, key: ThreadKey, session: bytes) -> None:
        written.append(session)
        await write_session(self, key, session)

    monkeypatch.setattr(AmphibianStore, "write_session", noted)
    pieces = [artifact("piece ", append=True) for _ in range(50)]
    async with (
        raw_agent(in_turn(event_stream(*pieces, status("COMPLETED")))) as raw,
        world.connector(reef_to(raw.url)),
    ):
        thread = await world.thread()
        await thread.say("Go")
        await thread.answered()
    assert [json.loads(session) for session in written] == [await at_work_for_last_run(thread), {}]


async def test_a_task_that_is_continued_is_at_work_before_the_agent_says_anything(
    world: World, reef_to: ReefTo
) -> None:
    feeds = Feeds()
    async with (
        raw_agent(feeds) as raw,
        await AmphibianStore.open() as store,
        world.connector(reef_to(raw.url, idle_seconds=PATIENCE), store=store),
    ):
        thread = await world.thread()
        await thread.say("Pay")
        await raw.was_asked("stream")
        feeds[0].send(status("INPUT_REQUIRED", {"text": "May I?"}))
        await thread.answered()
        assert await kept(world, thread, store) == {"taskId": "t", "artifacts": []}
        await thread.say("Yes")
        await raw.was_asked("stream", times=2)
        assert await kept(world, thread, store) == await at_work_for_last_run(thread)
        feeds[1].end("cut")
        await thread.answered(outcome="failed")


@pytest.mark.requirement("RF-59")
async def test_an_interrupt_drops_what_was_kept(world: World, reef_to: ReefTo) -> None:
    async with (
        raw_agent(in_turn(WORKS)) as raw,
        await AmphibianStore.open() as store,
        world.connector(reef_to(raw.url), store=store),
    ):
        thread = await world.thread()
        await thread.say("Go")
        run = await thread.next("run_started")
        await thread.next("message_part")
        await interrupt(thread, run["runId"])
        await thread.next("run_finished", outcome="interrupted")
        await raw.was_asked("cancel")
        assert await kept(world, thread, store) == {}


@pytest.mark.requirement("RF-46")
async def test_a_store_that_somebody_else_holds_up_neither_spoils_an_answer_nor_shows_on_the_thread(
    world: World, reef_to: ReefTo, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = str(tmp_path / "reef.db")
    async with raw_agent(in_turn(done("One"), ASKS, done("Two"))) as raw, await AmphibianStore.open(path) as store:
        async with world.connector(reef_to(raw.url), store=store):
            thread = await world.thread()
            await thread.say("Hi")
            await thread.answered()
            with closing(sqlite3.connect(path, isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                with anyio.fail_after(PATIENCE / 2):
                    await thread.say("Pay")
                    assert await thread.answered() == "May I?"
                    await thread.say("Yes")
                    assert await thread.answered() == "Two"
        assert [message.get("taskId") for message in sent(raw)] == [None, None, "t"]
        assert await kept(world, thread, store) == {}
    assert path not in str(await thread.log())
    assert f"the session of thread {thread.thread_id} is not kept" in caplog.text.lower()
    assert path in caplog.text


# --- what is found --------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("RF-46", "RF-49")
@pytest.mark.parametrize(
    ("task", "does"),
    [
        (task_in("WORKING"), ["get", "cancel", "stream"]),
        (task_in("COMPLETED"), ["get", "get", "stream"]),
        (Answer(status=404), ["get", "cancel", "stream"]),
        (Answer(ending="open"), ["get", "cancel", "stream"]),
    ],
    ids=["works", "has finished and says nothing", "is unknown", "is not told"],
)
async def test_a_task_whose_turn_was_cut_off_is_ended_before_the_question_is_asked_anew(
    world: World, reef_to: ReefTo, task: Answer, does: list[str]
) -> None:
    async with raw_agent(asking(task)) as raw, await AmphibianStore.open() as store:
        thread = await left_at_work(world, store)
        async with world.connector(reef_to(raw.url), store=store):
            assert await thread.answered() == "Paid"
        assert [asked.procedure for asked in raw.asked] == does
        assert [message.get("taskId") for message in sent(raw)] == [None]
        assert await kept(world, thread, store) == {}
        assert await thread.open_runs() == 0


async def test_an_answer_that_was_shown_in_a_reply_that_was_cut_off_itself_is_not_taken_for_given(
    world: World, reef_to: ReefTo
) -> None:
    paid = {"id": "t", "status": {"state": "TASK_STATE_COMPLETED"}, "artifacts": [{"parts": [{"text": "Paid"}]}]}
    answers = iter([event_stream(artifact("Only", task="u"), ending="open"), done("Paid, only ten", task="v")])
    async with raw_agent(lambda asked: next(answers) if asked.procedure == "stream" else json_answer(paid)) as raw:
        async with await AmphibianStore.open() as store:
            thread = await left_at_work(world, store)
            await thread.say("Only ten")
            async with world.connector(reef_to(raw.url), store=store):
                await raw.was_asked("stream")
                await thread.next("message_part", part={"type": "text-delta", "id": "text-1", "delta": "Only"})
                at_kill = await kept(world, thread, store)
            await store.write_session(key_of(world, thread), json.dumps(at_kill).encode())
            async with world.connector(reef_to(raw.url), store=store):
                assert await thread.answered() == "Paid, only ten"
        assert [texts(message) for message in sent(raw)] == [["Only ten"], ["Pay\n\nOnly ten"]]


async def test_a_task_whose_turn_was_cut_off_is_ended_though_nobody_asks_anything(
    world: World, reef_to: ReefTo
) -> None:
    async with raw_agent(asking(task_in("WORKING"))) as raw, await AmphibianStore.open() as store:
        thread = await world.thread()
        await store.write_session(key_of(world, thread), json.dumps(AT_WORK).encode())
        async with world.connector(reef_to(raw.url), store=store):
            await raw.was_asked("cancel")
        assert sent(raw) == []


@pytest.mark.requirement("RF-91")
async def test_a_stop_does_not_wait_until_a_task_that_was_cut_off_is_ended(world: World, reef_to: ReefTo) -> None:
    async with raw_agent(lambda _: Answer(ending="open")) as raw, await AmphibianStore.open() as store:
        thread = await world.thread()
        await store.write_session(key_of(world, thread), json.dumps(AT_WORK).encode())
        with anyio.fail_after(1.0):
            async with world.connector(reef_to(raw.url), store=store):
                await raw.was_asked("get")
        assert await kept(world, thread, store) == AT_WORK


# --- kill -9 --------------------------------------------------------------------------------------------------------------------


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Scene]:
    """A server with a thread and a bot."""
    async with scene(tmp_path) as found:
        yield found


async def reef_to_raw(here: Scene, raw: RawAgent) -> ReefProcess:
    reef = ReefProcess(configured(here, raw))
    await reef.start()
    here.stack.push_async_callback(reef.stop, signal.SIGKILL)
    return reef


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.requirement("RF-46", "RF-49", "RF-103")
async def test_killed_in_the_middle_of_a_reply_it_cancels_the_agents_task_and_asks_again(here: Scene) -> None:
    async with raw_agent(in_turn(WORKS, done("Done", task="u"))) as raw:
        reef = await reef_to_raw(here, raw)
        await here.thread.say("Go")
        await here.thread.next("message_part")
        await reef.stop(signal.SIGKILL)
        await reef_to_raw(here, raw)
        assert await here.thread.answered() == "Done"
        assert [asked.procedure for asked in raw.asked] == ["stream", "get", "cancel", "stream"]
        assert await here.thread.open_runs() == 0


@pytest.mark.slow
@pytest.mark.timeout(120 + 2 * KILLS)
@pytest.mark.requirement("RF-103")
async def test_killed_at_any_moment_it_leaves_no_question_unanswered_and_no_run_open(here: Scene) -> None:
    print(f"BUBBLE_SEED={SEED}")  # noqa: T201 - a failure must be repeatable
    async with (
        MockProcess.running(pace=0.002) as mock,
        nursery("tests.reef.bridge", str(configured(here, mock))) as reefs,
    ):
        lives = Lives(here, reefs, chance=random.Random(SEED))  # noqa: S311 - moments, no secrets
        await lives.live(KILLS)
    told = await lives.told()
    print(f"{len(told.replies)} replies; cut: {told.cut_before} and {told.cut_in_the_middle} in the middle")  # noqa: T201
    answered = " ".join(told.replies).split()
    assert [question for question in lives.asked if question not in answered] == []
    assert await here.thread.open_runs() == 0
    assert told.cut_before >= KILLS // 20
    assert told.cut_in_the_middle >= KILLS // 4
    assert len(told.replies) >= KILLS // 10
