"""After the play: a thread in the browser, in which the mock agent can be talked to."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from bubble.cli.spawned import SpawnedServer, spawned
from bubble.client import BubbleConnection

__all__ = ["a_talk"]

_BOT: Final = "mock-agent"
_TITLE: Final = "Talk to the mock agent"
_WELCOME: Final = "help"
_CONFIG: Final = """\
[bubble]
url = {url}
token = {token}
principalId = {bot}
[a2a]
agentCardUrl = {agent}
[store]
path = {store}
"""


@asynccontextmanager
async def a_talk(server: SpawnedServer) -> AsyncIterator[str]:
    """A link that logs a browser in, once, and leads into the thread, where the agent has said what it can do.

    The agent is there until the block ends. Raises `CommandError` where a process does not start, `BubbleError` where the server refuses.
    """
    async with BubbleConnection(server.url, token=server.admin_token) as admin:
        me = await admin.who_am_i()
        await admin.create_principal(_BOT, kind="bot", display_name="Mock agent", owner_principal_id=me.principal_id)
        token = (await admin.mint_token(_BOT)).token
        thread = await admin.create_thread(title=_TITLE, participants={_BOT: "participant"})
        async with spawned("mock-agent", "--port", "0", directory=server.directory) as agent:
            config = server.directory / "talk.toml"
            given = {"url": server.url, "token": token, "bot": _BOT, "agent": str(agent["url"])}
            given["store"] = str(server.directory / "talk.db")
            config.write_text(
                _CONFIG.format(**{name: json.dumps(text) for name, text in given.items()}), encoding="utf-8"
            )
            async with spawned("reef", "--config", str(config), directory=server.directory):
                await admin.send_message(thread.thread_id, _WELCOME)
                yield f"{server.login_url}&thread={thread.thread_id}"
