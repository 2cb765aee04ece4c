"""The bundled pages in a real browser: the login link logs in once, and the reference can be read."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bubble.server.routes import OPERATIONS
from tests.faults.signals import send_signal
from tests.interop.browser import Tab, a_tab, find_chromium

CHROMIUM = find_chromium()
CHILD = Path(__file__).parents[1] / "server" / "child.py"

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="missing: chromium"),
]


@pytest.fixture
async def server() -> AsyncIterator[dict[str, str]]:
    """A server on its first start: `url`, `token` and `login`."""
    options = {"port": 0, "store": "memory:", "log": {"level": "error"}}
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(CHILD), json.dumps(options), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    async with asyncio.timeout(30):
        started: dict[str, str] = json.loads(await process.stdout.readline())
    yield started
    send_signal(process)
    await process.wait()


@pytest.fixture
async def tab(tmp_path: Path) -> AsyncIterator[Tab]:
    """An empty browser."""
    assert CHROMIUM is not None
    async with a_tab(CHROMIUM, tmp_path / "profile") as it:
        yield it


def text(id: str) -> str:
    return f"document.getElementById('{id}').textContent"


@pytest.mark.requirement("PR-4-26", "PR-4-28", "PR-6-43")
async def test_the_login_link_logs_a_browser_in_once(server: dict[str, str], tab: Tab) -> None:
    await tab.open(server["login"])
    await tab.until(f"location.pathname === '/' && {text('me')} === 'Administrator'")
    assert await tab.value("location.search") == ""
    assert await tab.value("document.cookie") == ""
    # The login asks first who is logged in, and the browser notes that nobody was.
    assert [complaint for complaint in tab.complaints if "401" not in complaint] == []
    await tab.value("document.getElementById('log-out').click()")
    await tab.until("location.pathname === '/login' && document.getElementById('by-token').hidden === false")

    await tab.open(server["login"])
    await tab.until(f"{text('problem')}.includes('used before')")
    await tab.value(f"document.getElementById('token').value = {json.dumps(server['token'])}")
    await tab.value("document.querySelector('button').click()")
    await tab.until(f"location.pathname === '/' && {text('me')} === 'Administrator'")


@pytest.mark.requirement("PR-6-06", "PR-6-45")
async def test_the_reference_shows_every_operation_and_runs_into_no_policy(server: dict[str, str], tab: Tab) -> None:
    await tab.open(f"{server['url']}/docs")
    await tab.until("document.getElementById('summary').textContent.includes('Version')")
    shown = await tab.value("[...document.querySelectorAll('article')].map(article => article.id)")
    assert isinstance(shown, list)
    assert {operation.name for operation in OPERATIONS} <= set(shown)
    broken = """
        [...document.querySelectorAll("main a, nav a")]
            .filter((link) => link.hash && !document.getElementById(decodeURIComponent(link.hash.slice(1)))).length
    """
    assert await tab.value(broken) == 0
    assert tab.complaints == []
