"""The play: two people and a bot on one thread of a real server, each with a connection of its own.

*Theory of operation.* The bot follows the thread like everybody else and answers each finished run of a person with recorded replies. Ada
follows from the first event to the last. Grace follows too, leaves in the middle of the long reply, notes her place as her cursor on the
server, and later resumes after it while the bot is still streaming. Nobody guesses at times: who has to wait for something, waits for a
cue that is given when Ada or Grace gets the event in question.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

from msgspec import Raw

from bubble.cli.messages import message_run
from bubble.client import BubbleConnection
from bubble.demo.cues import Cues
from bubble.demo.proof import Claim, prove_readers, prove_replies
from bubble.demo.recordings import recording
from bubble.demo.scene import Scene
from bubble.demo.script import ADA, BOT, CAST, GRACE, SCRIPT, TITLE, Line, all_replies
from bubble.protocol.events import RunFinished

__all__ = ["Play"]

# How much of the long reply Grace has seen when she leaves, and Ada when Grace comes back; the bot goes on meanwhile.
_LEAVES_AFTER: Final = 0.35
_RETURNS_AFTER: Final = 0.7


class Play:
    """One performance on the server at `url`. `pace` scales the pauses between chunks: 1 to watch it, 0 to check it."""

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
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._ada_follows(ada))
                tasks.create_task(self._grace_follows(grace))
                tasks.create_task(self._bot_answers(bot))
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
                self.scene.transcript.apply(event)
                self._ada_saw.note(event)
                if self._ada_saw.replies == len(all_replies()):
                    break
        reader.presence = "done"

    async def _grace_follows(self, grace: BubbleConnection) -> None:
        await self._grace_reads(grace, from_seq=1, leaves_after=self._chunks_until(_LEAVES_AFTER))
        reader = self.scene.readers[GRACE.principal_id]
        reader.presence, reader.left_at = "away", await grace.advance_cursor(self._thread_id, reader.seq)
        self.scene.stage = "Grace has left; the bot goes on without her."
        await self._ada_saw.chunks_are(self._chunks_until(_RETURNS_AFTER))
        self.scene.stage = "Grace is back and goes on after her cursor, while the bot still streams."
        place = await grace.get_cursor(self._thread_id)
        await self._grace_reads(grace, from_seq=place + 1, leaves_after=None)
        reader.presence = "done"

    async def _grace_reads(self, grace: BubbleConnection, *, from_seq: int, leaves_after: int | None) -> None:
        reader = self.scene.readers[GRACE.principal_id]
        async with grace.subscribe_thread(self._thread_id, from_seq=from_seq) as events:
            reader.resumed(events.through_seq)
            async for event in events:
                reader.take(event)
                self._grace_saw.note(event)
                if self._grace_saw.chunks == leaves_after or self._grace_saw.replies == len(all_replies()):
                    break

    def _chunks_until(self, part: float) -> int:
        # Counted over the whole play: what comes before the long reply, and a part of that.
        *before, last = (len(recording(name)) for name in all_replies())
        return sum(before) + int(last * part)

    # --- those who speak --------------------------------------------------------------------------------------------------------

    async def _people_talk(self, people: Mapping[str, BubbleConnection]) -> None:
        replies = 0
        for line in SCRIPT:
            self.scene.stage = f"{line.speaker.display_name} asks, the bot answers token by token."
            speaker = line.speaker.principal_id
            await people[speaker].append_events(self._thread_id, message_run(speaker, line.text))
            replies += len(line.replies)
            await self._ada_saw.replies_are(replies)

    async def _bot_answers(self, bot: BubbleConnection) -> None:
        lines = iter(SCRIPT)
        async with bot.subscribe_thread(self._thread_id) as events:
            async for stored in events:
                event = stored.event
                if isinstance(event, RunFinished) and event.principal_id != BOT.principal_id:
                    line = next(lines)
                    for name in line.replies:
                        await self._reply(bot, name, line, snapshot_seq=stored.seq)
                    if line is SCRIPT[-1]:
                        return

    async def _reply(self, bot: BubbleConnection, name: str, line: Line, *, snapshot_seq: int) -> None:
        async with bot.run(self._thread_id, kind="agent_work", snapshot_seq=snapshot_seq) as run:
            for number, chunk in enumerate(recording(name), start=1):
                await run.part(Raw(chunk))
                await asyncio.sleep(line.pause * self._pace)
                if line.absence and number == self._rest_of_long_reply():
                    await self._grace_saw.chunks_are(self._chunks_until(_LEAVES_AFTER))

    def _rest_of_long_reply(self) -> int:
        # Up to here the bot does not wait for anybody; the rest is kept until Grace has left, however fast it all goes.
        return int(len(recording(SCRIPT[-1].replies[-1])) * _RETURNS_AFTER)

    # --- afterwards -------------------------------------------------------------------------------------------------------------

    async def _prove(self, ada: BubbleConnection) -> Sequence[Claim]:
        stored = [event async for event in ada.iter_events(self._thread_id)]
        grace = self.scene.readers[GRACE.principal_id]
        readers = {
            "Ada, who followed from first to last,": self.scene.readers[ADA.principal_id].seen,
            f"Grace, who left after seq {grace.left_at} and resumed by her cursor,": grace.seen,
        }
        replies = [recording(name) for name in all_replies()]
        return [*prove_readers(stored, readers), *prove_replies(stored, replies, by=BOT.principal_id)]
