"""A server of its own with a bot on a thread, for readers of the bot's events that are programs of others."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from bubble.client import BubbleConnection, Run

__all__ = ["BOT", "THREAD", "Stage", "a_stage"]

BOT = "helper"
THREAD = "stage"


@dataclass(frozen=True, kw_only=True)
class Stage:
    """The bot's own connection, and the administrator's."""

    bot: BubbleConnection
    admin: BubbleConnection

    @property
    def path(self) -> str:
        """What is read."""
        return f"/v1/bots/{BOT}/events?sessionId={THREAD}"

    def speaking(self) -> Run:
        """A run of the bot's."""
        return self.bot.run(THREAD, kind="agent_work")


@asynccontextmanager
async def a_stage(admin: BubbleConnection, **options: object) -> AsyncIterator[Stage]:
    """Brings the bot; `options` are those of its connection."""
    await admin.create_principal(BOT, kind="bot", owner_principal_id="admin")
    await admin.create_thread(thread_id=THREAD)
    await admin.put_grant(THREAD, BOT, "participant")
    token = (await admin.mint_token(BOT)).token
    async with BubbleConnection(admin.base_url, token=token, **options) as bot:  # type: ignore[arg-type]
        yield Stage(bot=bot, admin=admin)
