"""What goes wrong around a reply, with the bot and the server in processes of their own: no hang, nothing lost, no run left open."""

from __future__ import annotations

import asyncio
import os
import random
import re
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.amphibian.lives import Lives
from tests.amphibian.logs import ME, interrupt
from tests.amphibian.nursery import nursery
from tests.amphibian.processes import ATTENDING, BotProcess, Scene, scene, write
from tests.amphibian.world import text_of
from tests.faults.signals import send_signal

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(300)]

KILLS = int(os.environ.get("BUBBLE_KILLS", "100"))
SEED = int(os.environ.get("BUBBLE_SEED", str(random.SystemRandom().randrange(2**32))))
LONG = "word " * 300
TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}"


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Scene]:
    async with scene(tmp_path) as found:
        yield found


async def begins(here: Scene, text: str) -> None:
    """Says something and waits until the answer has begun."""
    await here.thread.say(text)
    await repeats(here, text.split(maxsplit=1)[0])


async def repeats(here: Scene, word: str) -> str:
    """Waits until the bot says this word; the run."""
    while True:
        event = await here.thread.next("message_part")
        if text_of([event]) == f"{word} ":
            return str(event["runId"])


# --- the server -----------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("AM-18")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
async def test_a_server_that_restarts_in_the_middle_of_a_reply_changes_nothing(
    here: Scene, how: signal.Signals
) -> None:
    bot = await here.bot()
    await begins(here, LONG)
    await here.server.stop(how)
    await here.server.start()
    assert (await here.thread.answered()).split() == f"You said: {LONG}".split()
    await here.thread.say("again")
    assert await here.thread.answered() == "You said: again "
    assert len(await here.thread.runs_of_bot()) == 2
    assert await bot.stop() == 0


@pytest.mark.requirement("AM-22")
async def test_a_bot_that_is_stopped_while_the_server_is_away_ends_in_time(here: Scene) -> None:
    bot = await here.bot()
    await begins(here, "wait")
    await here.server.stop(signal.SIGKILL)
    async with asyncio.timeout(10):
        await bot.stop()
    await here.server.start()
    await here.bot()
    assert (await here.thread.answered(outcome="failed")).startswith("You said: wait")


async def test_a_bot_that_finds_no_server_says_so_once_and_attends_when_there_is_one(here: Scene) -> None:
    await here.server.stop(signal.SIGKILL)
    bot = await here.starting_bot()
    await bot.hears("Trying again.\n")
    line = rf"{TIME} WARNING bubble\.amphibian: Cannot reach {re.escape(here.server.url)}: .+ Trying again\.\n"
    assert re.fullmatch(line, bot.said)
    await here.server.start()
    await bot.hears(ATTENDING)
    rest = rf"{TIME} INFO bubble\.amphibian: Reached {re.escape(here.server.url)}\.\n{ATTENDING}\n"
    assert re.fullmatch(line + rest, bot.said)


# --- signals --------------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("AM-22", "AM-14")
async def test_a_bot_that_is_stopped_in_the_middle_of_a_reply_says_so_and_begins_anew(here: Scene) -> None:
    bot = await here.bot()
    await begins(here, "wait")
    async with asyncio.timeout(10):
        assert await bot.stop() == 0
    assert f"cancelled on {here.thread.thread_id}" in bot.said
    assert "The connector was stopped" in await here.thread.answered(outcome="failed")
    assert await here.thread.open_runs() == 0
    await here.bot()
    run_id = await repeats(here, "wait")
    await here.thread.append(interrupt(run_id, "admin"))
    assert await here.thread.answered(outcome="interrupted") == "You said: wait "


@pytest.mark.requirement("AM-22")
async def test_a_bot_whose_agent_does_not_leave_ends_in_time(here: Scene) -> None:
    bot = await here.bot()
    await begins(here, "stay")
    async with asyncio.timeout(10):
        await bot.stop()
    assert "The connector was stopped" in await here.thread.answered(outcome="failed")
    assert await here.thread.open_runs() == 0


async def test_a_second_signal_ends_it_at_once(here: Scene) -> None:
    bot = await here.bot()
    await begins(here, "stay")
    await here.server.stop(signal.SIGKILL)
    assert bot._process is not None
    send_signal(bot._process, signal.SIGINT)
    async with asyncio.timeout(5):
        while bot._process.returncode is None:
            send_signal(bot._process, signal.SIGINT)
            await asyncio.sleep(0)
        assert await bot.ended() == 128 + signal.SIGINT


# --- rights ---------------------------------------------------------------------------------------------------------------------


async def test_a_token_that_is_revoked_in_the_middle_of_a_reply_ends_the_bot_and_a_new_one_goes_on(here: Scene) -> None:
    bot = await here.bot()
    await begins(here, "wait")
    await here.new_token()
    async with asyncio.timeout(10):
        assert await bot.ended() == 1
    assert f"cancelled on {here.thread.thread_id}" in bot.said
    assert bot.said.splitlines()[-1].startswith("echo: ")
    await here.bot()
    assert "The connector ended" in await here.thread.answered(outcome="failed")
    assert (await here.thread.next("run_started"))["snapshotSeq"] == 7


@pytest.mark.requirement("AM-21")
async def test_a_grant_that_is_revoked_in_the_middle_of_a_reply_ends_it_alone(here: Scene) -> None:
    bot = await here.bot()
    await begins(here, "wait")
    await here.admin.remove_grant(here.thread.thread_id, ME)
    await bot.hears(f"cancelled on {here.thread.thread_id}")
    await here.admin.put_grant(here.thread.thread_id, ME, "participant")
    await here.thread.next("run_finished", by="system:bubble", outcome="lost")
    assert await here.thread.open_runs() == 0
    await here.thread.say("again")
    assert await here.thread.answered() == "You said: again "
    assert await bot.stop() == 0


# --- kill -9 --------------------------------------------------------------------------------------------------------------------


@pytest.mark.timeout(120 + 2 * KILLS)
async def test_kills_at_any_moment_lose_no_question_and_leave_no_run_open(here: Scene) -> None:
    print(f"BUBBLE_SEED={SEED}")  # noqa: T201 - a failure must be repeatable
    async with nursery("tests.amphibian.bot", str(here.config), "--forks") as bots:
        lives = Lives(here, bots, chance=random.Random(SEED))  # noqa: S311 - not for secrets
        await lives.live(KILLS)
    told = await lives.told()
    print(f"{len(told.replies)} replies; cut: {told.cut_before} and {told.cut_in_the_middle} in the middle")  # noqa: T201
    answered = " ".join(told.replies).split()
    assert [each for each in lives.asked if each not in answered] == []
    assert await here.thread.open_runs() == 0
    assert told.cut_in_the_middle >= KILLS // 4
    assert len(told.replies) >= KILLS // 10


# --- beginning ------------------------------------------------------------------------------------------------------------------


async def said_by(config: Path) -> tuple[int, str]:
    bot = BotProcess(config)
    await bot.start()
    return await bot.ended(), bot.said


@pytest.mark.requirement("AM-25")
async def test_a_configuration_that_is_wrong_is_one_sentence_and_status_2(tmp_path: Path) -> None:
    config = tmp_path / "echo.toml"
    write(config, "[bubble]\nurl = 7\n")
    expected = f"echo: `bubble.url` (from {config}): Input should be a valid string.\n"
    assert await said_by(config) == (2, expected)


@pytest.mark.requirement("AM-20")
async def test_a_principal_that_is_not_the_tokens_is_one_sentence_and_status_1(here: Scene) -> None:
    write(here.config, here.config.read_text(encoding="utf-8").replace('"bot"', '"tob"'))
    sentence = 'echo: The token is that of principal "bot", but `bubble.principalId` is "tob".\n'
    assert await said_by(here.config) == (1, sentence)


async def test_a_store_that_is_damaged_is_one_sentence_and_status_1(here: Scene) -> None:
    write(here.config.with_name("echo.db"), "This is no database. " * 400)
    code, said = await said_by(here.config)
    assert (code, said.count("\n")) == (1, 1)
    assert "is damaged" in said


async def test_a_second_copy_does_not_start_and_a_new_one_does_right_after_a_kill(here: Scene) -> None:
    bot = await here.bot()
    code, said = await said_by(here.config)
    database = re.escape(str(here.config.with_name("echo.db")))
    sentence = rf"echo: {database} is in use by another connector, process {bot.pid} \(its lock is {database}\.lock\)\. Stop .+\n"
    assert code == 1
    assert re.fullmatch(sentence, said)
    await begins(here, "once")
    await bot.stop(signal.SIGKILL)
    await here.bot()
    await here.thread.say("again")
    await here.thread.answered()
