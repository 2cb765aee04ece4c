"""The pages of the guide for browsers, in a browser."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from bubble.client import BubbleConnection
from tests.docs.chromium import Tab, chromium, opened_tab
from tests.docs.conftest import Desk, desk_in
from tests.docs.markdown import blocks
from tests.docs.test_pages import BROWSER_GUIDE, Reader

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(chromium() is None, reason="missing: chromium"),
    pytest.mark.skipif(shutil.which("curl") is None, reason="missing: curl"),
]

SERVE = "bubble serve\n"
MOUNTED = "uvicorn mounted:app --port 8001 --no-access-log\n"

CREATE_FOLLOW_AND_SAY = """(async () => {
  const { csrfToken } = await (await fetch("/bubble/v1/whoami")).json();
  const headers = { "Content-Type": "application/json", "X-Bubble-CSRF": csrfToken };
  const answer = await fetch("/bubble/v1/threads", { method: "POST", headers, body: "{}" });
  const { threadId } = await answer.json();
  globalThis.seen = [];
  follow(threadId, (event) => seen.push(event));
  watch(threadId, (messages) => (globalThis.shown = messages));
  await say(threadId, "Hello from a page");
  return answer.status;
})()"""

REGISTER_A_BOT = """(async () => {
  const { csrfToken } = await (await fetch("/bubble/v1/whoami")).json();
  const headers = { "Content-Type": "application/json", "X-Bubble-CSRF": csrfToken };
  const post = (path, body) => fetch(`/bubble/v1/${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  await post("principals", { principalId: "asking", kind: "bot", displayName: "Asking", ownerPrincipalId: "admin" });
  await post("threads", { threadId: "desk", participants: [{ principalId: "asking", role: "participant" }] });
  return (await (await post("principals/asking/tokens", {})).json()).token;
})()"""

SHOW_CALLS = """
globalThis.shown = [];
watch("desk", (messages) => (globalThis.shown = messages));
globalThis.called = (id) =>
  shown.flatMap((message) => message.parts.map((part) => [message, part])).find(([, part]) => part.toolCallId === id);
"""

OPEN_A_SOCKET = """
globalThis.frames = [];
globalThis.socket = new WebSocket(`ws://${location.host}/bubble/v1/ws`);
socket.onopen = () => socket.send('{"type":"grants.subscribe"}');
socket.onmessage = ({ data }) => frames.push(JSON.parse(data).type);
"""


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """The desk of somebody who has followed the guide to its end."""
    with desk_in(tmp_path_factory.mktemp("followed")) as desk:
        reader = Reader(desk)
        reader.sit_down(BROWSER_GUIDE)
        for block in blocks(BROWSER_GUIDE):
            reader.follow(block)
        yield desk


def saved(desk: Desk, name: str) -> str:
    return (desk.terminal.directory / name).read_text(encoding="utf-8")


async def lines_of(tab: Tab) -> object:
    return await tab.run("[...document.querySelectorAll('#events li')].map((line) => line.textContent.trim())")


async def test_the_dashboard_shows_the_thread_and_goes_on_after_a_restart_of_the_server(followed: Desk) -> None:
    async with opened_tab() as tab:
        await tab.go(f"http://127.0.0.1:{followed.ports[8000]}/")
        await tab.until("document.querySelectorAll('#events li').length === 11")
        followed.terminal.stop(SERVE)
        followed.terminal.start(SERVE)
        followed.terminal.wait_for("Bubble listens on …\n")
        followed.terminal.run('bubble post $thread "After the restart"')
        await tab.until("document.querySelectorAll('#events li').length === 16")
        shown = await lines_of(tab)
        assert isinstance(shown, list)
        assert shown[8] == "message_part Written with curl."
        assert shown[13] == "message_part After the restart"


@asynccontextmanager
async def logged_in(desk: Desk) -> AsyncIterator[Tab]:
    """A page of the application that Bubble is mounted in, started anew, in a browser that used the login link."""
    command = desk.here(MOUNTED)
    desk.terminal.stop(command)
    desk.terminal.start(command).wait_for("…Uvicorn running on…\n")
    origin = f"http://127.0.0.1:{desk.ports[8001]}"
    (code,) = {found for job in desk.terminal.jobs for found in re.findall(rf"{origin}/bubble/login\S+", job.output)}
    async with opened_tab() as tab:
        await tab.go(code)
        await tab.until("!location.pathname.endsWith('/login')")
        await tab.go(f"{origin}/")
        yield tab


async def test_a_page_of_the_same_origin_lives_by_its_session(followed: Desk) -> None:
    async with logged_in(followed) as tab:
        await tab.run("".join(saved(followed, name) for name in ("follow.js", "messages.js", "say.js", "decide.js")))
        made = await tab.run(CREATE_FOLLOW_AND_SAY)
        assert made == 201
        await tab.until("seen.length === 6")
        assert await tab.run("seen.map((event) => event.seq)") == [1, 2, 3, 4, 5, 6]
        assert await tab.run("seen[3].part.delta") == "Hello from a page"
        await tab.until("shown.length === 2 && shown[1].metadata.bubble.status === 'finished'")
        assert await tab.run("shown[1].parts.map((part) => part.text)") == ["Hello from a page"]
        await tab.run(OPEN_A_SOCKET)
        await tab.until("frames.includes('grants.snapshot')")


async def test_a_page_of_the_same_origin_decides_on_tool_calls_and_answers_them(followed: Desk) -> None:
    url = f"http://127.0.0.1:{followed.ports[8001]}/bubble"
    async with logged_in(followed) as tab:
        token = await tab.run(REGISTER_A_BOT)
        await tab.run("".join(saved(followed, name) for name in ("messages.js", "say.js", "decide.js")))
        await tab.run(SHOW_CALLS)
        async with BubbleConnection(url, token=str(token)) as bot, bot.run("desk", kind="agent_work") as run:
            refund = await run.tool_call("refund", {"amount": 20}, tool_call_id="call-1")
            async with asyncio.TaskGroup() as tasks:
                decision = tasks.create_task(refund.approval())
                await tab.until("called('call-1')?.[1].state === 'approval-requested'")
                await tab.run("decide('desk', ...called('call-1'), false, 'too much')")
            assert (decision.result().approved, decision.result().reason) == (False, "too much")
            weigh = await run.tool_call("weigh", {"order": 7}, tool_call_id="call-2")
            await tab.until("called('call-2')?.[1].state === 'input-available'")
            await tab.run("giveResult('desk', ...called('call-2'), '2 kg')")
            assert await weigh.result() == "2 kg"
