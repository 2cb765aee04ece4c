"""A real Chromium without a window, driven over its DevTools protocol: just enough to open a page, look at it and press a button."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from tests.faults.signals import send_signal

__all__ = ["Tab", "a_tab", "find_chromium"]

SECONDS = 30.0


def find_chromium() -> str | None:
    """The program, if it is installed."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if (found := shutil.which(name))), None)


class Tab:
    """One page. `complaints` gathers errors of its scripts and everything that its Content-Security-Policy stopped."""

    def __init__(self, socket: ClientConnection) -> None:
        self.complaints: list[str] = []
        self._socket = socket
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._session = ""

    async def open(self, url: str) -> None:
        """Goes there and waits until the page is loaded."""
        await self._call("Page.navigate", url=url)
        await self.until("document.readyState === 'complete' && location.href !== 'about:blank'")

    async def value(self, expression: str) -> object:
        """What the expression is, in the page."""
        answer = await self._call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        found: object = answer["result"].get("value")
        return found

    async def until(self, condition: str) -> None:
        """Waits until the condition holds; the page itself says when."""
        async with asyncio.timeout(SECONDS):
            while True:
                # Going to another page ends the wait in the page without an answer that means anything.
                waiting = f"new Promise(done => {{ const look = () => ({condition}) ? done(true) : setTimeout(look, 20); look(); }})"
                answer = await self._call("Runtime.evaluate", expression=waiting, awaitPromise=True, returnByValue=True)
                if answer.get("result", {}).get("value") is True:
                    return

    async def attach(self) -> None:
        """Makes the page."""
        target = (await self._call("Target.createTarget", url="about:blank"))["targetId"]
        self._session = (await self._call("Target.attachToTarget", targetId=target, flatten=True))["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            await self._call(f"{domain}.enable")

    async def listen(self) -> None:
        """Takes what the browser says, until it is gone."""
        async for text in self._socket:
            message = json.loads(text)
            if "id" in message:
                self._answers.pop(message["id"]).set_result(message.get("result", {}))
            elif message["method"] == "Log.entryAdded" and message["params"]["entry"]["level"] == "error":
                self.complaints.append(message["params"]["entry"]["text"])
            elif message["method"] == "Runtime.exceptionThrown":
                self.complaints.append(json.dumps(message["params"]["exceptionDetails"]))

    async def _call(self, method: str, **params: object) -> dict[str, Any]:
        number = next(self._numbers)
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        message: dict[str, object] = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        await self._socket.send(json.dumps(message))
        async with asyncio.timeout(SECONDS):
            return await answer


@asynccontextmanager
async def a_tab(chromium: str, profile: Path) -> AsyncIterator[Tab]:
    """A browser with an empty profile, and one page in it."""
    arguments = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--remote-debugging-port=0",
        f"--user-data-dir={profile}",
    ]
    browser = await asyncio.create_subprocess_exec(chromium, *arguments, stderr=asyncio.subprocess.PIPE)
    try:
        async with asyncio.timeout(SECONDS), connect(await _address(browser), max_size=None) as socket:
            tab = Tab(socket)
            listening = asyncio.create_task(tab.listen())
            await tab.attach()
            yield tab
            listening.cancel()
            await asyncio.wait([listening])
    finally:
        send_signal(browser, signal.SIGKILL)
        await browser.wait()


async def _address(browser: asyncio.subprocess.Process) -> str:
    assert browser.stderr is not None
    async for line in browser.stderr:
        if found := re.search(r"DevTools listening on (ws://\S+)", line.decode("utf-8", "replace")):
            return found[1]
    raise RuntimeError("the browser did not start")
