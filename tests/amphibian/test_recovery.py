"""A connector that comes back: what is asked again, what is not, and what becomes of runs that were left open."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bubble.amphibian.agents import Agent, Reply, Session, Turn
from bubble.amphibian.backlog import BacklogPolicy
from bubble.amphibian.connector import Connector
from bubble.amphibian.past import find_beginning
from bubble.amphibian.settlement import SettlementTracker
from bubble.amphibian.store import AmphibianStore, ThreadKey
from bubble.client import BubbleConnection
from bubble.protocol.errors import Unavailable
from bubble.protocol.events import SequencedEvent
from tests.amphibian.logs import ME, finish, part, start
from tests.amphibian.world import PATIENCE, Listener, Scripted, Thread, World

pytestmark = pytest.mark.anyio

CUT_OFF = "The connector ended before this reply was complete."
STOPPED = "The connector was stopped before this reply was complete. It is taken up again when the connector is back."


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "db.sqlite")


@asynccontextmanager
async def attending(
    world: World, agent: Agent, path: str, *, policy: BacklogPolicy | None = None
) -> AsyncIterator[Connector]:
    """A connector whose store is a file."""
    async with await AmphibianStore.open(path) as store, world.connector(agent, store=store, policy=policy) as running:
        yield running


async def checkpoint_of(world: World, thread: Thread, path: str) -> int | None:
    key = ThreadKey(server=world.server.url, principal_id=ME, thread_id=thread.thread_id)
    async with await AmphibianStore.open(path) as store:
        return (await store.read(key)).checkpoint


async def set_checkpoint(world: World, thread: Thread, path: str, seq: int) -> None:
    key = ThreadKey(server=world.server.url, principal_id=ME, thread_id=thread.thread_id)
    async with await AmphibianStore.open(path) as store:
        store.note_checkpoint(key, SettlementTracker(seq))


async def as_bot(world: World, thread: Thread, *events: Mapping[str, object]) -> None:
    """What a connector of the past left."""
    async with world.server.connect(world.bot) as bot:
        await bot.append_events(thread.thread_id, events)


def note_calls(monkeypatch: pytest.MonkeyPatch, calls: list[str], *names: str) -> None:
    """Has each call of these methods of the client noted."""
    for name in names:
        original = getattr(BubbleConnection, name)

        def noted(
            *args: object, name: str = name, original: Callable[..., object] = original, **more: object
        ) -> object:
            calls.append(name)
            return original(*args, **more)

        monkeypatch.setattr(BubbleConnection, name, noted)


class Never:
    """An answer that begins and does not end."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()

    async def __call__(self, turn: Turn, reply: Reply) -> None:
        await reply.run.text(f"{turn.text}? ")
        await reply.run.flush()
        self.begun.set()
        await asyncio.Event().wait()


# --- what is asked again --------------------------------------------------------------------------------------------------------


async def test_a_restart_without_new_events_asks_nothing(world: World, path: str) -> None:
    async with attending(world, Scripted(), path):
        thread = await world.thread()
        await thread.say("one")
        await thread.answered()
    agent = Scripted()
    async with attending(world, agent, path):
        await thread.say("two")
        await thread.answered()
    assert [turn.text for turn in agent.turns] == ["two"]


async def test_a_restart_asks_nothing_again_that_was_answered_beside_an_open_run(world: World, path: str) -> None:
    async with attending(world, Scripted(), path):
        thread = await world.thread()
        await thread.append(start("open"))
        await thread.append(part("open", "slow "))
        await thread.say("one")
        await thread.answered()
    agent = Scripted()
    async with attending(world, agent, path):
        await thread.append(part("open", "but sure"))
        await thread.append(finish("open"))
        await thread.answered()
    assert [turn.text for turn in agent.turns] == ["slow but sure"]


@pytest.mark.requirement("AM-22", "AM-14")
async def test_a_reply_that_a_shutdown_cut_off_is_told_and_begins_anew(world: World, path: str) -> None:
    agent = Listener(never := Never())
    async with attending(world, agent, path):
        thread = await world.thread()
        await thread.say("one")
        await asyncio.wait_for(never.begun.wait(), PATIENCE)
    assert agent.cancelled == [thread.thread_id]
    assert await thread.answered(outcome="failed") == f"one? {STOPPED}"
    async with attending(world, Scripted(), path):
        assert await thread.answered() == "You said: one"
    assert await thread.open_runs() == 0


@pytest.mark.requirement("AM-12", "AM-13", "AM-14")
async def test_the_question_of_a_reply_that_was_left_open_is_asked_again(world: World, path: str) -> None:
    thread = await world.thread()
    await thread.say("one")
    asked = (await thread.log())[-1]["seq"]
    half = [part("half", f"{n} ", ME) for n in range(60)]
    await as_bot(world, thread, {**start("half", ME, kind="agent_work"), "snapshotSeq": asked}, *half)
    async with attending(world, Scripted(), path):
        assert (await thread.answered(outcome="failed")).endswith(CUT_OFF)
        assert await thread.answered() == "You said: one"
    assert await thread.open_runs() == 0


@pytest.mark.requirement("AM-13")
async def test_runs_are_closed_after_the_window_is_known(
    world: World, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is appended to close them is not in the window: it would push a question out of it."""
    thread = await world.thread()
    await thread.say("one")
    head = (await thread.log())[-1]["seq"]
    await as_bot(world, thread, start("half", ME, kind="agent_work"))
    calls: list[str] = []
    note_calls(monkeypatch, calls, "get_thread", "list_runs")
    agent = Scripted()
    async with attending(world, agent, path, policy=BacklogPolicy(max_replay=1)):
        await thread.answered()
    assert calls == ["get_thread", "list_runs"]
    assert [(turn.text, turn.through_seq) for turn in agent.turns] == [("one", head)]


@pytest.mark.parametrize("outcome", ["success", None])
async def test_what_an_own_run_of_the_window_answered_is_not_asked_again(
    world: World, path: str, outcome: str | None
) -> None:
    """The reply was complete, but the process died before its checkpoint was written."""
    thread = await world.thread()
    await thread.say("one")
    asked = int(str((await thread.log())[-1]["seq"]))
    await thread.say("two")
    await as_bot(
        world,
        thread,
        start("a", ME, kind="agent_work", snapshot=asked),
        part("a", "1", ME),
        finish("a", ME, outcome=outcome),
    )
    agent = Scripted()
    async with attending(world, agent, path):
        await thread.next("run_finished", runId="a")
        assert await thread.answered() == "You said: two"
    assert len(agent.turns) == 1


@pytest.mark.parametrize("outcome", ["failed", "lost", "interrupted"])
async def test_what_an_own_run_of_the_window_left_is_asked_again(world: World, path: str, outcome: str) -> None:
    thread = await world.thread()
    await thread.say("one")
    asked = int(str((await thread.log())[-1]["seq"]))
    await as_bot(world, thread, start("a", ME, kind="agent_work", snapshot=asked), finish("a", ME, outcome=outcome))
    async with attending(world, Scripted(), path):
        assert await thread.answered() == "You said: one"


async def test_a_reply_that_somebody_stopped_is_not_given_again(world: World, path: str) -> None:
    thread = await world.thread()
    await thread.say("one")
    asked = int(str((await thread.log())[-1]["seq"]))
    await as_bot(world, thread, start("a", ME, kind="agent_work", snapshot=asked))
    await thread.append({"type": "run_interrupt_requested", "principalId": "alice", "runId": "a"})
    await as_bot(world, thread, finish("a", ME, outcome="interrupted"))
    agent = Scripted()
    async with attending(world, agent, path):
        await thread.say("two")
        await thread.answered()
    assert [turn.text for turn in agent.turns] == ["two"]


@pytest.mark.requirement("AM-14")
async def test_runs_of_others_are_left_open(world: World, path: str) -> None:
    thread = await world.thread()
    await thread.append(start("hers"))
    await as_bot(world, thread, start("mine", ME), start("mine too", ME))
    async with attending(world, Scripted(), path):
        for _ in range(2):
            await thread.next("run_finished", outcome="failed")
    assert [run.run_id async for run in world.alice.list_runs(thread.thread_id, state="open")] == ["hers"]


@pytest.mark.requirement("AM-14")
async def test_a_run_that_was_cut_off_tells_the_people_why_it_ends(world: World, path: str) -> None:
    thread = await world.thread()
    await as_bot(world, thread, start("mine", ME), part("mine", "I was about to ", ME))
    async with attending(world, Scripted(), path):
        assert await thread.answered(outcome="failed") == f"I was about to {CUT_OFF}"


# --- runs that go on over a restart ---------------------------------------------------------------------------------------------


async def chatter(thread: Thread) -> None:
    """More events than a window holds."""
    for number in range(11):
        await thread.say(f"<{number}>")


@pytest.mark.requirement("AM-07", "RF-103")
@pytest.mark.parametrize("ends", ["while it is away", "while it is there"])
@pytest.mark.parametrize("rest", [[], [part("long", "but sure")]], ids=["its end alone", "its second half"])
async def test_a_run_that_goes_on_over_a_restart_is_asked_as_a_whole_however_far_back_it_began(
    world: World, path: str, ends: str, rest: Sequence[Mapping[str, object]]
) -> None:
    async with attending(world, Scripted(), path):
        thread = await world.thread()
        await thread.append(start("long"))
        await thread.append(part("long", "slow "))
        await chatter(thread)
        while "<10>" not in await thread.answered():
            pass
    async with attending(world, Scripted(), path) as connector:  # from now on its beginning is out of sight
        await connector.attended(thread.thread_id)
    agent = Scripted()
    if ends == "while it is away":
        await thread.bubble.append_events(thread.thread_id, [*rest, finish("long")])
    async with attending(world, agent, path):
        if ends == "while it is there":
            await thread.bubble.append_events(thread.thread_id, [*rest, finish("long")])
        await thread.answered()
    (turn,) = agent.turns
    assert turn.text == "slow " + ("but sure" if rest else "")
    assert (turn.run_ids, turn.authors) == (("long",), ("alice",))
    assert await checkpoint_of(world, thread, path) == (await thread.log())[-1]["seq"]


@pytest.mark.requirement("AM-07")
async def test_what_ended_after_a_run_that_is_mended_is_part_of_the_same_question(world: World, path: str) -> None:
    thread = await world.thread()
    await thread.append(start("long"))
    await thread.append(part("long", "slow"))
    await set_checkpoint(world, thread, path, 3)
    await thread.append(finish("long"))
    await thread.say("quick")
    agent = Scripted()
    async with attending(world, agent, path):
        await thread.answered()
    assert [turn.text for turn in agent.turns] == ["slow\n\nquick"]


@pytest.mark.requirement("AM-07", "AM-08")
@pytest.mark.parametrize("ends", ["while it is away", "while it is there"])
async def test_of_a_run_that_the_join_cuts_in_half_nothing_is_asked(
    world: World, path: str, ends: str, caplog: pytest.LogCaptureFixture
) -> None:
    thread = await world.thread(with_bot=False)
    await thread.append(start("half"))
    await thread.append(part("half", "not for the bot"))
    await world.alice.put_grant(thread.thread_id, ME, "participant")
    rest = [part("half", ", nor is this"), finish("half")]
    if ends == "while it is away":
        await thread.bubble.append_events(thread.thread_id, rest)
    agent = Scripted()
    async with attending(world, agent, path):
        if ends == "while it is there":
            await thread.bubble.append_events(thread.thread_id, rest)
        await thread.say("for the bot")
        await thread.answered()
    assert [turn.text for turn in agent.turns] == ["for the bot"]
    assert "Run half on thread" in caplog.text
    assert await checkpoint_of(world, thread, path) == (await thread.log())[-1]["seq"]


@pytest.mark.requirement("AM-02")
async def test_told_to_catch_up_it_asks_a_run_as_a_whole_that_the_join_would_cut(world: World, path: str) -> None:
    thread = await world.thread(with_bot=False)
    await thread.append(start("whole"))
    await thread.append(part("whole", "for all"))
    await world.alice.put_grant(thread.thread_id, ME, "participant")
    await chatter(thread)
    agent = Scripted()
    policy = BacklogPolicy(on_first_join="catch_up", max_replay=0)
    async with attending(world, agent, path, policy=policy) as connector:
        await connector.attended(thread.thread_id)
        await thread.append(finish("whole"))
        await thread.answered()
    assert [turn.text for turn in agent.turns] == ["for all"]


async def test_runs_that_are_left_open_for_ever_cost_a_restart_nothing(
    world: World, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread = await world.thread()
    await thread.append(start("left"))
    for _ in range(50):
        await chatter(thread)
    head = int(str((await thread.log())[-1]["seq"]))
    reads: list[int] = []
    iter_events = BubbleConnection.iter_events

    def noted(self: BubbleConnection, thread_id: str, **more: Any) -> AsyncIterator[SequencedEvent]:  # noqa: ANN401 - as there
        reads.append(more["from_seq"])
        return iter_events(self, thread_id, **more)

    monkeypatch.setattr(BubbleConnection, "iter_events", noted)
    for _ in range(2):
        async with attending(world, Scripted(), path) as connector:
            await connector.attended(thread.thread_id)
    assert min(reads) > head - 300


@pytest.mark.parametrize(
    ("run_id", "farthest", "found"),
    [("hers", 100, ["run_started", "message_part"]), ("hers", 6, []), ("over", 100, []), ("mine", 100, [])],
    ids=["whole", "too far", "over before", "the bot's own"],
)
async def test_the_beginning_of_a_run_is_had_as_a_whole_or_not_at_all(
    world: World, run_id: str, farthest: int, found: Sequence[str]
) -> None:
    thread = await world.thread()
    for event in (start("hers"), part("hers", "slow "), start("over"), finish("over")):
        await thread.append(event)
    await as_bot(world, thread, start("mine", ME), part("hers", "mine", ME), *[part("mine", who=ME)] * 5)
    async with world.server.connect(world.bot) as bot:
        events = await find_beginning(
            bot, thread.thread_id, run_id=run_id, before=14, own_id=ME, stops_at_join=True, farthest=farthest
        )
    assert [stored.to_dict()["type"] for stored in events] == found


# --- where it begins ------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("AM-01", "AM-18")
async def test_at_first_what_came_since_the_join_is_one_question(world: World, path: str) -> None:
    thread = await world.thread(with_bot=False)
    await thread.say("before")
    await world.alice.put_grant(thread.thread_id, ME, "participant")
    for text in ("one", "two"):
        await thread.say(text)
    async with attending(world, Scripted(), path):
        assert await thread.answered() == "You said: one\n\ntwo"


@pytest.mark.requirement("AM-02")
async def test_told_to_catch_up_it_goes_through_what_was_before_the_join(world: World, path: str) -> None:
    thread = await world.thread(with_bot=False)
    await thread.say("before")
    await world.alice.put_grant(thread.thread_id, ME, "participant")
    async with attending(world, Scripted(), path, policy=BacklogPolicy(on_first_join="catch_up")):
        assert await thread.answered() == "You said: before"


@pytest.mark.requirement("AM-03", "AM-05")
@pytest.mark.parametrize("checkpoint", [None, 1])
async def test_told_to_skip_it_asks_nothing_of_the_past_and_keeps_the_head(
    world: World, path: str, checkpoint: int | None
) -> None:
    thread = await world.thread()
    head = 0
    for text in ("one", "two"):
        await thread.say(text)
        head += 5
    if checkpoint is not None:
        await set_checkpoint(world, thread, path, checkpoint)
    policy = BacklogPolicy(on_first_join="skip_to_head", on_resume="skip_to_head")
    agent = Scripted()
    async with attending(world, agent, path, policy=policy) as connector:
        async with asyncio.timeout(PATIENCE):
            await connector.attended(thread.thread_id)
    assert agent.turns == []
    assert await checkpoint_of(world, thread, path) == 2 + head


@pytest.mark.requirement("AM-04")
async def test_with_a_checkpoint_it_goes_on_after_it(world: World, path: str) -> None:
    thread = await world.thread()
    await thread.say("one")
    await set_checkpoint(world, thread, path, int(str((await thread.log())[-1]["seq"])))
    await thread.say("two")
    async with attending(world, Scripted(), path):
        assert await thread.answered() == "You said: two"


@pytest.mark.requirement("AM-09")
async def test_what_is_left_out_is_counted_in_the_log(
    world: World, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="bubble.amphibian")
    thread = await world.thread()
    for number in range(20):
        await thread.say(f"<{number}>")
    async with attending(world, Scripted(), path):
        assert await thread.answered() == "You said: " + "\n\n".join(f"<{number}>" for number in range(10, 20))
    assert f"Skipped 50 event(s) of thread {thread.thread_id}, up to 52." in caplog.text
    assert await checkpoint_of(world, thread, path) == int(str((await thread.log())[-1]["seq"]))


@pytest.mark.requirement("AM-09")
async def test_the_checkpoint_says_at_once_what_was_left_out(world: World, path: str) -> None:
    never = Never()
    thread = await world.thread()
    for number in range(20):
        await thread.say(f"<{number}>")
    async with attending(world, Scripted(never), path):
        await asyncio.wait_for(never.begun.wait(), PATIENCE)
    assert await checkpoint_of(world, thread, path) == 52


@pytest.mark.requirement("AM-10")
async def test_the_servers_cursor_is_no_authority(world: World, path: str) -> None:
    thread = await world.thread()
    await thread.say("one")
    async with world.server.connect(world.bot) as bot:
        await bot.advance_cursor(thread.thread_id, int(str((await thread.log())[-1]["seq"])))
    async with attending(world, Scripted(), path):
        assert await thread.answered() == "You said: one"


@pytest.mark.requirement("AM-10")
async def test_the_cursor_is_advanced_as_a_receipt(world: World, path: str) -> None:
    async with attending(world, Scripted(), path):
        thread = await world.thread()
        await thread.say("one")
        await thread.answered()
    async with world.server.connect(world.bot) as bot:
        assert await bot.get_cursor(thread.thread_id) >= 7


@pytest.mark.requirement("AM-18")
async def test_what_comes_while_the_past_is_gone_through_is_neither_missed_nor_doubled(world: World, path: str) -> None:
    thread = await world.thread()
    agent = Scripted()
    texts = [f"<{number}>" for number in range(60)]

    async def speak() -> None:
        for text in texts:
            await thread.say(text)

    speaking = asyncio.create_task(speak())
    async with attending(world, agent, path, policy=BacklogPolicy(max_replay=1_000)):
        await speaking
        await thread.say("last")
        while "last" not in (await thread.answered()).split("\n\n")[-1]:
            pass
    told = "\n\n".join(turn.text for turn in agent.turns).split("\n\n")
    assert told == [*texts, "last"]


@pytest.mark.requirement("AM-07")
async def test_a_very_long_message_of_the_past_is_asked_as_a_whole(world: World, path: str) -> None:
    thread = await world.thread()
    words = [f"{number} " for number in range(2_500)]
    await thread.append(start("long"))
    for first in range(0, len(words), 500):
        await thread.bubble.append_events(thread.thread_id, [part("long", word) for word in words[first : first + 500]])
    await thread.append(finish("long"))
    agent = Scripted()
    async with attending(world, agent, path):
        await thread.answered()
    assert [turn.text for turn in agent.turns] == ["".join(words)]


async def test_on_a_thread_that_was_set_back_it_goes_on_from_its_head(
    world: World, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    """As when the server was restored from a backup."""
    thread = await world.thread()
    await thread.say("before the backup")
    await set_checkpoint(world, thread, path, 10_000)
    agent = Scripted()
    async with attending(world, agent, path) as connector:
        async with asyncio.timeout(PATIENCE):
            await connector.attended(thread.thread_id)
        await thread.say("after it")
        await thread.answered()
    assert [turn.text for turn in agent.turns] == ["after it"]
    assert f"Thread {thread.thread_id} was set back to event 7" in caplog.text
    assert await checkpoint_of(world, thread, path) == (await thread.log())[-1]["seq"]


# --- sessions -------------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("AM-16")
async def test_threads_have_sessions_of_their_own_that_survive_a_restart(world: World, path: str) -> None:
    async def counts(turn: Turn, reply: Reply) -> None:
        kept = reply.session.get()
        count = int(str(kept.get("count", 0))) + 1
        await reply.session.set({**kept, "count": count, turn.text: "\ud83d"})
        await reply.run.text(f"{count}")

    threads = [await world.thread(), await world.thread()]
    for expected in ("1", "2"):
        async with attending(world, Scripted(counts), path):
            for thread in threads:
                await thread.say(f"to {thread.thread_id}")
                assert await thread.answered() == expected
    async with await AmphibianStore.open(path) as store:
        for thread in threads:
            key = ThreadKey(server=world.server.url, principal_id=ME, thread_id=thread.thread_id)
            assert thread.thread_id in (await store.read(key)).session.decode()


class Resuming(Listener):
    """One that looks after its session first, and then perhaps fails."""

    def __init__(self, *failures: Exception) -> None:
        super().__init__()
        self.did: list[str] = []
        self._failures = list(failures)

    async def resume(self, thread_id: str, session: Session) -> None:
        self.did.append(f"resume {thread_id} {session.get()}")
        await asyncio.sleep(0)
        if self._failures:
            raise self._failures.pop()
        self.did.append("resumed")

    async def respond(self, turn: Turn, reply: Reply) -> None:
        self.did.append(turn.text)
        await reply.session.set({"asked": turn.text})
        await super().respond(turn, reply)


async def test_an_agent_looks_after_its_session_before_it_is_asked_anything(world: World, path: str) -> None:
    thread = await world.thread()
    for text, session in (("one", {}), ("two", {"asked": "one"})):
        await thread.say(text)
        agent = Resuming()
        async with attending(world, agent, path):
            await thread.answered()
        assert agent.did == [f"resume {thread.thread_id} {session}", "resumed", text]


async def test_an_agent_that_fails_with_its_session_is_asked_all_the_same(
    world: World, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    thread = await world.thread()
    await thread.say("one")
    async with attending(world, Resuming(RuntimeError("a mistake")), path):
        assert await thread.answered() == "You said: one"
    assert f"The agent was not told what becomes of thread {thread.thread_id}." in caplog.text


# --- a server that is out of reach ----------------------------------------------------------------------------------------------


class Breaking(Listener):
    """The first answer breaks off for want of the server, as after an outage that is longer than the client's patience."""

    async def respond(self, turn: Turn, reply: Reply) -> None:
        await super().respond(turn, reply)
        if len(self.turns) == 1:
            await reply.run.flush()
            await reply.run._outbox.fail(Unavailable("Out of reach."))


async def test_a_reply_that_the_server_does_not_take_begins_anew(world: World, path: str) -> None:
    agent = Breaking()
    async with attending(world, agent, path):
        thread = await world.thread()
        await thread.say("one")
        assert await thread.answered(outcome="failed") == "You said: one"
        assert await thread.answered() == "You said: one"
    assert [turn.text for turn in agent.turns] == ["one", "one"]
    assert await thread.open_runs() == 0


@pytest.mark.parametrize("error", [Unavailable("Out of reach."), RuntimeError("a mistake")])
async def test_a_thread_on_which_something_fails_is_begun_anew(
    world: World, path: str, error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    get_thread, fails = BubbleConnection.get_thread, [error, error]

    async def failing(self: BubbleConnection, thread_id: str) -> object:
        if fails:
            raise fails.pop()
        return await get_thread(self, thread_id)

    thread = await world.thread()
    await thread.say("one")
    monkeypatch.setattr(BubbleConnection, "get_thread", failing)
    async with attending(world, Scripted(), path):
        assert await thread.answered() == "You said: one"
    assert caplog.text.count(f"Beginning anew on thread {thread.thread_id}: {error}") == 2
