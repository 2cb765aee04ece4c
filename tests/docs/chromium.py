"""A real browser without a screen, told what to do over its DevTools protocol."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import shutil
import tempfile
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from websockets.asyncio.client import ClientConnection, connect

from tests.faults.signals import send_signal

__all__ = ["NAMES", "Tab", "chromium", "opened_tab"]

NAMES = ("chromium", "chromium-browser", "google-chrome")
SECONDS = 60


class _Navigated(Exception):
    """The page went elsewhere while an expression was waited for."""


class Tab:
    """One page."""

    def __init__(self, devtools: ClientConnection, session: str) -> None:
        self._devtools = devtools
        self._session = session
        self._numbers = itertools.count(1_000)

    async def call(self, method: str, **parameters: object) -> dict[str, object]:
        """The result of one command."""
        number = next(self._numbers)
        command = {"id": number, "sessionId": self._session, "method": method, "params": parameters}
        await self._devtools.send(json.dumps(command))
        return await _answer(self._devtools, number)

    async def go(self, url: str) -> None:
        """Opens a page, and returns when it is loaded."""
        await self.call("Page.navigate", url=url)
        await self.until("document.readyState === 'complete' && location.href !== 'about:blank'")

    async def run(self, script: str) -> object:
        """The value of an expression in the page, awaited if it is a promise. AssertionError with what it raised."""
        result = await self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        value = result["result"]
        assert isinstance(value, dict)
        return value.get("value")

    async def until(self, condition: str) -> None:
        """Returns when the expression is true in the page. TimeoutError if it never is."""
        waiting = f"(async () => {{ while (!({condition})) await new Promise((next) => setTimeout(next, 20)); }})()"
        async with asyncio.timeout(SECONDS):
            while True:
                try:
                    await self.run(waiting)
                except _Navigated:
                    continue
                return


async def _answer(devtools: ClientConnection, number: int) -> dict[str, object]:
    async with asyncio.timeout(SECONDS):
        while True:
            message = json.loads(await devtools.recv())
            if message.get("id") == number:
                if "navigated" in str(message.get("error")):
                    raise _Navigated
                assert "error" not in message, message["error"]
                result: dict[str, object] = message["result"]
                return result


def chromium() -> str | None:
    """The browser's command, if there is one."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@asynccontextmanager
async def opened_tab() -> AsyncIterator[Tab]:
    """A browser with one empty page, its profile thrown away afterwards."""
    command = chromium()
    assert command is not None
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile:
        process = await asyncio.create_subprocess_exec(
            command,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--remote-debugging-port=0",
            f"--user-data-dir={profile}",
            "about:blank",
            stdout=DEVNULL,
            stderr=PIPE,
        )
        try:
            assert process.stderr is not None
            address = await _address(process.stderr)
            drained = asyncio.create_task(process.stderr.read())
            async with connect(address, max_size=None, proxy=None) as devtools:
                yield await _tab(devtools)
        finally:
            send_signal(process)
            await process.wait()
        await drained


async def _address(stderr: asyncio.StreamReader) -> str:
    said = b""
    async with asyncio.timeout(SECONDS):
        while line := await stderr.readline():
            said += line
            if found := re.search(rb"DevTools listening on (ws://\S+)", line):
                return found[1].decode("ascii")
    raise AssertionError(said.decode("utf-8", "replace"))


async def _tab(devtools: ClientConnection) -> Tab:
    await devtools.send(json.dumps({"id": 1, "method": "Target.createTarget", "params": {"url": "about:blank"}}))
    target = (await _answer(devtools, 1))["targetId"]
    attach = {"targetId": target, "flatten": True}
    await devtools.send(json.dumps({"id": 2, "method": "Target.attachToTarget", "params": attach}))
    return Tab(devtools, str((await _answer(devtools, 2))["sessionId"]))
