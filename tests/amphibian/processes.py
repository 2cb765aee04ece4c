"""A bot in a process of its own, on a server in another one."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio

from bubble.client import Backoff, BubbleConnection
from tests.amphibian.logs import ME
from tests.amphibian.world import Thread
from tests.faults.processes import ServerProcess
from tests.faults.signals import send_signal

__all__ = ["ATTENDING", "BotProcess", "Scene", "scene"]

ROOT = Path(__file__).parents[2]
ATTENDING = "echo is attending"
PATIENCE = 60.0
CONFIG = """
[bubble]
url = "{url}"
token = {{file = "token"}}
principalId = "bot"
[backlog]
maxReplay = 10000
[store]
path = "{store}"
"""


class BotProcess:
    """The bot. `said` is what it wrote so far."""

    def __init__(self, config: Path) -> None:
        self.said = ""
        self._config = config
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process is not None
        return self._process.pid

    async def start(self) -> None:
        """Starts it without waiting for anything."""
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.amphibian.bot", str(self._config)),
            cwd=ROOT,
            env={name: value for name, value in os.environ.items() if not name.startswith("BUBBLE_")},
            stderr=asyncio.subprocess.PIPE,
        )

    async def hears(self, text: str) -> None:
        """Waits until it has written this."""
        with anyio.fail_after(PATIENCE):
            while text not in self.said:
                line = await self._stderr().readline()
                assert line, f"The bot ended: {self.said}"
                self.said += line.decode()

    async def ended(self) -> int:
        """Waits for its end; the exit code."""
        assert self._process is not None
        with anyio.fail_after(PATIENCE):
            self.said += (await self._stderr().read()).decode()
            return await self._process.wait()

    async def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Ends it with a signal; the exit code."""
        assert self._process is not None
        send_signal(self._process, how)
        return await self.ended()

    def _stderr(self) -> asyncio.StreamReader:
        assert self._process is not None
        assert self._process.stderr is not None
        return self._process.stderr


@dataclass
class Scene:
    """A server process, its admin as the person `admin`, a thread with the bot, and the bot's configuration."""

    server: ServerProcess
    admin: BubbleConnection
    thread: Thread
    config: Path
    stack: AsyncExitStack

    async def bot(self) -> BotProcess:
        """The bot, attending. It ends with the scene in any case."""
        bot = await self.starting_bot()
        await bot.hears(ATTENDING)
        return bot

    async def starting_bot(self) -> BotProcess:
        """The bot, before anything else. It ends with the scene in any case."""
        bot = BotProcess(self.config)
        await bot.start()
        self.stack.push_async_callback(bot.stop, signal.SIGKILL)
        return bot

    async def new_token(self) -> None:
        """A token for the bot, in place of the one before, which is revoked."""
        for token in await self.admin.list_tokens(ME):
            await self.admin.revoke_token(ME, token.token_id)
        write(self.config.with_name("token"), (await self.admin.mint_token(ME)).token)


def write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


@asynccontextmanager
async def scene(directory: Path) -> AsyncIterator[Scene]:
    """Everything but the bot itself."""
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(ServerProcess.running(directory))
        admin = BubbleConnection(server.url, token=server.admin_token, backoff=Backoff(first=0.02, longest=0.2))
        await stack.enter_async_context(admin)
        await admin.create_principal(ME, kind="bot")
        made = await admin.create_thread(participants={ME: "participant"})
        events = await stack.enter_async_context(admin.subscribe_thread(made.thread_id))
        config = directory / "echo.toml"
        write(config, CONFIG.format(url=server.url, store=directory / "echo.db"))
        thread = Thread(made.thread_id, admin, events, who="admin")
        found = Scene(server, admin, thread, config, stack)
        await found.new_token()
        yield found
