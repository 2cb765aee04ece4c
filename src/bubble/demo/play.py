"""The play: two people and a bot on one thread of a real server, each with a connection of its own.

*Theory of operation.* The bot (`bot.Echo`) follows the thread like everybody else and acts upon what people say. Ada follows from the first
event to the last, once as events and once as messages. Grace follows too, leaves in the middle of the long reply, notes her place as her
cursor on the server, and later resumes after it while the bot is still streaming. Nobody guesses at times: who has to wait for something,
waits for a cue that is given when Ada or Grace gets the event in question.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

from bubble.client import BubbleConnection
from bubble.demo.assembled import prove_messages
from bubble.demo.bot import HOLDS_AT, Echo
from bubble.demo.cues import Cues
from bubble.demo.proof import Claim, prove_readers, prove_replies
from bubble.demo.recordings import recording
from bubble.demo.scene import Scene
from bubble.demo.script import (
    ADA,
    BOT,
    CAST,
    COUNT,
    GRACE,
    LONG_REPLY,
    REFUND,
    SCRIPT,
    TITLE,
    Line,
    all_replies,
    bot_runs,
    run_of_reply,
)
from bubble.protocol.events import RunInterruptRequested, ToolCallApproval

__all__ = ["Play"]

_LONG_RUN: Final = run_of_reply(LONG_REPLY)
# How much of the long reply Grace has seen when she leaves, and Ada when Grace comes back; the bot goes on meanwhile.
_LEAVES_AFTER: Final = int(len(recording(LONG_REPLY)) * 0.35)
_RETURNS_AFTER: Final = int(len(recording(LONG_REPLY)) * HOLDS_AT)
# How far the bot has counted when Ada has heard enough.
_COUNTED: Final = 12


class Play:
    """One performance on the server at `url`. `pace` scales the pauses of the bot: 1 to watch it, 0 to check it."""

    def __init__(self, url: str, admin_token: str, *, pace: float = 1.0) -> None:
        self.scene = Scene()
        self._url = url
        self._admin_token = admin_token
        self._pace = pace
        self._tokens: dict[str, str] = {}
        self._thread_id = ""
        self._ada_saw = Cues(BOT.principal_id)
        self._grace_saw = Cues(BOT.principal_id)

    async def perform(self) -> Sequence[Claim]:
        """Plays it all and gives what can be claimed afterwards. Raises `BubbleError` where the server does not take part."""
        await self._cast()
        async with (
            self._as(ADA.principal_id) as ada,
            self._as(GRACE.principal_id) as grace,
            self._as(BOT.principal_id) as bot,
        ):
            self.scene.stage = "Ada makes a thread and invites Grace and the bot."
            thread = await ada.create_thread(
                title=TITLE, participants={GRACE.principal_id: "participant", BOT.principal_id: "participant"}
            )
            self._thread_id = thread.thread_id
            echo = Echo(bot, self._thread_id, pace=self._pace, may_go_on=self._grace_has_left)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._ada_follows(ada))
                tasks.create_task(self._ada_reads_messages(ada))
                tasks.create_task(self._grace_follows(grace))
                tasks.create_task(echo.perform())
                tasks.create_task(self._people_talk({ADA.principal_id: ada, GRACE.principal_id: grace}))
            self.scene.stage = "Everybody has everything."
            return await self._prove(ada)

    @asynccontextmanager
    async def _as(self, principal_id: str) -> AsyncIterator[BubbleConnection]:
        async with BubbleConnection(self._url, token=self._tokens[principal_id]) as bubble:
            yield bubble

    async def _cast(self) -> None:
        self.scene.stage = "An administrator registers two people and a bot."
        async with BubbleConnection(self._url, token=self._admin_token) as admin:
            for member in CAST:
                await admin.create_principal(
                    member.principal_id,
                    kind="bot" if member.is_bot else "user",
                    display_name=member.display_name,
                    owner_principal_id=ADA.principal_id if member.is_bot else None,
                )
                minted = await admin.mint_token(member.principal_id, name="demonstration")
                self._tokens[member.principal_id] = minted.token

    # --- those who follow -------------------------------------------------------------------------------------------------------

    async def _ada_follows(self, ada: BubbleConnection) -> None:
        reader = self.scene.readers[ADA.principal_id]
        async with ada.subscribe_thread(self._thread_id) as events:
            reader.presence = "live"
            async for event in events:
                reader.take(event)
                self._ada_saw.note(event)
                if _is_all(self._ada_saw):
                    break
        reader.presence = "done"

    async def _ada_reads_messages(self, ada: BubbleConnection) -> None:
        async with ada.follow_messages(self._thread_id) as updates:
            async for update in updates:
                self.scene.take(update)
                last = [each for each in update.messages if each["id"] == bot_runs()[-1]]
                if last and last[0]["metadata"]["bubble"]["status"] == "finished":
                    return

    async def _grace_follows(self, grace: BubbleConnection) -> None:
        await self._grace_reads(grace, from_seq=1, is_coming_back=False)
        reader = self.scene.readers[GRACE.principal_id]
        reader.presence, reader.left_at = "away", await grace.advance_cursor(self._thread_id, reader.seq)
        self.scene.stage = "Grace has left; the bot goes on without her."
        await self._ada_saw.until(lambda saw: saw.chunks[_LONG_RUN] >= _RETURNS_AFTER)
        self.scene.stage = "Grace is back and goes on after her cursor, while the bot still streams."
        place = await grace.get_cursor(self._thread_id)
        await self._grace_reads(grace, from_seq=place + 1, is_coming_back=True)
        reader.presence = "done"

    async def _grace_reads(self, grace: BubbleConnection, *, from_seq: int, is_coming_back: bool) -> None:
        reader = self.scene.readers[GRACE.principal_id]
        async with grace.subscribe_thread(self._thread_id, from_seq=from_seq) as events:
            reader.resumed(events.through_seq)
            async for event in events:
                reader.take(event)
                self._grace_saw.note(event)
                if _is_all(self._grace_saw) or (
                    not is_coming_back and self._grace_saw.chunks[_LONG_RUN] == _LEAVES_AFTER
                ):
                    break

    async def _grace_has_left(self) -> None:
        await self._grace_saw.until(lambda saw: saw.chunks[_LONG_RUN] >= _LEAVES_AFTER)

    # --- people -----------------------------------------------------------------------------------------------------------------

    async def _people_talk(self, people: Mapping[str, BubbleConnection]) -> None:
        for line in SCRIPT:
            self.scene.stage = f"{line.speaker.display_name} asks, the bot answers token by token."
            await people[line.speaker.principal_id].send_message(self._thread_id, line.text)
            await self._others_act(line, people)
            runs = {*map(run_of_reply, line.replies), line.act or run_of_reply(line.replies[-1])}
            # A checker gives the bound argument of a lambda no type.
            await self._ada_saw.until(lambda saw, runs=runs: runs <= saw.over)  # type: ignore[misc]

    async def _others_act(self, line: Line, people: Mapping[str, BubbleConnection]) -> None:
        if line.act == "refund":
            await self._ada_saw.until(lambda saw: REFUND in saw.asks)
            self.scene.stage = "The bot waits for consent; Grace gives it."
            await asyncio.sleep(self._pace)
            consent = ToolCallApproval(
                principal_id=GRACE.principal_id, run_id=REFUND, tool_call_id=self._ada_saw.asks[REFUND], approved=True
            )
            await people[GRACE.principal_id].append_event(self._thread_id, consent)
        elif line.act == "count":
            await self._ada_saw.until(lambda saw: saw.chunks[COUNT] > _COUNTED)
            self.scene.stage = "Ada has heard enough and asks the bot to stop."
            request = RunInterruptRequested(principal_id=ADA.principal_id, run_id=COUNT)
            await people[ADA.principal_id].append_event(self._thread_id, request)

    # --- afterwards -------------------------------------------------------------------------------------------------------------

    async def _prove(self, ada: BubbleConnection) -> Sequence[Claim]:
        stored = [event async for event in ada.iter_events(self._thread_id)]
        page = await ada.get_message_page(self._thread_id, limit=200)
        grace = self.scene.readers[GRACE.principal_id]
        readers = {
            "Ada, who followed from first to last,": self.scene.readers[ADA.principal_id].seen,
            f"Grace, who left after seq {grace.left_at} and resumed by her cursor,": grace.seen,
        }
        replies = {run_of_reply(name): recording(name) for name in all_replies()}
        return [
            *prove_readers(stored, readers),
            *prove_replies(stored, replies),
            *await prove_messages(
                stored, self.scene.messages, page.messages, replies, assembler=ada.assembler.create()
            ),
        ]


def _is_all(saw: Cues) -> bool:
    return saw.over.issuperset(bot_runs())
