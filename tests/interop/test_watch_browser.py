"""A bot's state in a real browser's `EventSource`, which comes back by itself with the id that it had last."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from bubble.client import BubbleConnection
from tests.docs.chromium import Tab, chromium, opened_tab
from tests.docs.markdown import ROOT
from tests.docs.ports import free_ports
from tests.faults.signals import send_signal
from tests.interop.nginx import Site, running_site
from tests.interop.watch_stage import Stage, a_stage
from tests.server.serving import a_child
from tests.server.world import ADMIN_TOKEN

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(chromium() is None, reason="missing: chromium"),
]

needs_nginx = pytest.mark.skipif(shutil.which("nginx") is None, reason="missing: nginx")

EXAMPLES = ROOT / "docs" / "examples"

LOG_IN = """fetch("/v1/sessions", {
  method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ token: TOKEN }),
}).then((answer) => answer.status)"""

# As a page would: rows by id, and what is not a row aside. It keeps no cursor: that is the browser's.
WATCH = """
globalThis.rows = {};
globalThis.seen = [];
globalThis.ids = [];
globalThis.watch = (path) => { globalThis.source = new EventSource(path); TYPES.forEach(listen); };
const listen = (type) => {
  source.addEventListener(type, (event) => {
    if (event.data === undefined) return;  // the browser's own: the connection was lost
    const data = JSON.parse(event.data);
    seen.push(type);
    if (["message", "entry", "message.deleted", "reset"].includes(type)) ids.push(event.lastEventId);
    if (type === "message") rows[data.entryId] = data.text;
    if (type === "entry") rows[data.entryId] = data.entryKind;
    if (type === "message.deleted") delete rows[data.entryId];
    if (type === "reset") rows = {};
    if (type === "stream.closed") source.close();
  });
};
watch(PATH);
"""
AGAIN = "watch(`${PATH}&resumeFrom=${ids.at(-1)}`)"
TYPES = [
    *("connected", "heartbeat", "message", "entry", "entry.unavailable", "message.deleted", "reset", "resync-required"),
    *("turn.failed", "bot.state.changed", "bot.updated", "agent.state", "computer.actions", "box.state"),
    *("page.title.changed", "stream.closed", "error"),
]


async def watch(tab: Tab, stage: Stage) -> None:
    script = WATCH.replace("PATH", json.dumps(stage.path)).replace("TYPES", json.dumps(TYPES))
    await tab.run(f"{{ {script} }}")


async def texts(tab: Tab) -> object:
    return await tab.run("Object.values(rows)")


@pytest.mark.requirement("WA-32", "WA-85")
async def test_a_browser_shows_a_bot_and_resumes_by_itself_across_a_restart(tmp_path: Path) -> None:
    [port] = free_ports(1)
    settings = {"port": port, "store": f"sqlite:///{tmp_path / 'bubble.db'}"}
    async with opened_tab() as tab:
        async with a_child(**settings) as server, BubbleConnection(server.url, token=server.token) as admin:
            await tab.go(f"{server.url}/login")
            assert await tab.run(LOG_IN.replace("TOKEN", json.dumps(ADMIN_TOKEN))) == 201
            async with a_stage(admin) as stage:
                await watch(tab, stage)
                async with stage.speaking() as run:
                    await run.text("Grüße, ")
                    await tab.until("Object.values(rows).includes('Grüße, ')")
                    await run.text("Welt\u2028!")
                    await tab.until("Object.values(rows).includes('Grüße, Welt\u2028!')")
                await tab.until("seen.includes('agent.state')")
            assert await server.stop() == 0
        await tab.until("seen.at(-1) === 'error' || source.readyState === EventSource.CONNECTING")
        async with a_child(**settings) as server, BubbleConnection(server.url, token=server.token) as admin:
            token = (await admin.mint_token("helper")).token
            async with BubbleConnection(server.url, token=token) as bot, bot.run("stage", kind="agent_work") as run:
                await run.text("Back again.")
            await tab.until("Object.values(rows).includes('Back again.')")
        shown = await texts(tab)
        ids = await tab.run("ids")
        assert isinstance(shown, list)
        assert {"Grüße, Welt\u2028!", "Back again."} <= set(shown)
        assert isinstance(ids, list)
        assert len(ids) == len(set(ids))  # nothing was lost, and nothing came twice


# While the server is away nginx gives an empty stream and not a 502, on which a browser gives up. Its log tells from where they resume.
PATIENT = {
    "    location / {\n": """\
    location @away {
        default_type text/event-stream;
        return 200 "retry: 100\\n\\n";
    }

    location / {
        error_page 502 =200 @away;
""",
    "$status ": "$status last=$http_last_event_id ",
}


@asynccontextmanager
async def logged_in(site: Site) -> AsyncIterator[Tab]:
    """A browser with a page of the site."""
    async with opened_tab() as tab:
        await tab.call("Security.setIgnoreCertificateErrors", ignore=True)
        await tab.go(f"{site.url}/login")
        assert await tab.run(LOG_IN.replace("TOKEN", json.dumps(site.token))) == 201
        yield tab


@needs_nginx
@pytest.mark.requirement("WA-32", "WA-85", "WA-86")
async def test_behind_nginx_a_browser_resumes_by_its_last_event_id_across_a_restart(tmp_path: Path) -> None:
    with running_site(tmp_path, nginx=PATIENT) as site:
        admin = BubbleConnection(site.url, token=site.token, ssl_context=site.context)
        async with logged_in(site) as tab, admin, a_stage(admin, ssl_context=site.context) as stage:
            await watch(tab, stage)
            async with stage.speaking() as run:
                await run.text("before")
                await tab.until("Object.values(rows).includes('before')")
            await tab.until("seen.filter((type) => type === 'agent.state').length > 2")
            await asyncio.to_thread(site.server.stop)
            last = await tab.run("ids.at(-1)")
            await tab.until("seen.includes('error') && source.readyState === EventSource.CONNECTING")
            await asyncio.to_thread(site.server.start)
            async with stage.speaking() as run:
                await run.text("after")
            await tab.until("Object.values(rows).includes('after')")
            ids = await tab.run("ids")
        assert isinstance(ids, list)
        assert len(ids) == len(set(ids))
        assert last in ids
        assert f"last={last} " in site.log


@needs_nginx
@pytest.mark.requirement("WA-80", "WA-85", "WA-86")
async def test_behind_nginx_a_page_goes_on_by_itself_where_the_browser_gave_up_on_a_502(tmp_path: Path) -> None:
    with running_site(tmp_path) as site:
        admin = BubbleConnection(site.url, token=site.token, ssl_context=site.context)
        async with logged_in(site) as tab, admin, a_stage(admin, ssl_context=site.context) as stage:
            await watch(tab, stage)
            async with stage.speaking() as run:
                await run.text("before")
            await tab.until("Object.values(rows).includes('before')")
            await asyncio.to_thread(site.server.stop)
            await tab.until("source.readyState === EventSource.CLOSED")
            await asyncio.to_thread(site.server.start)
            async with stage.speaking() as run:
                await run.text("after")
            await tab.run("{ " + AGAIN.replace("PATH", json.dumps(stage.path)) + " }")
            await tab.until("Object.values(rows).includes('after')")
            ids = await tab.run("ids")
        assert isinstance(ids, list)
        assert len(ids) == len(set(ids))


@asynccontextmanager
async def public_site(port: int, directory: Path, *, thread_id: str = "tour") -> AsyncIterator[None]:
    """The guide's application, on that port and with its data in the directory."""
    shutil.copy(EXAMPLES / "bot.html", directory)
    code = (EXAMPLES / "public_bot.py").read_text(encoding="utf-8").replace("127.0.0.1:8001", f"127.0.0.1:{port}")
    (directory / "public_bot.py").write_text(code.replace('"tour"', f'"{thread_id}"'), encoding="utf-8")
    options = ["--port", str(port), "--log-level", "warning", "--timeout-graceful-shutdown", "1"]
    command = [sys.executable, "-m", "uvicorn", "public_bot:app", *options]
    environment = {**os.environ, "TOKEN": ADMIN_TOKEN}
    process = await asyncio.create_subprocess_exec(*command, cwd=directory, env=environment)
    try:
        yield
    finally:
        send_signal(process)
        await process.wait()


@pytest.mark.requirement("WA-85", "WA-91")
async def test_the_page_of_the_guide_shows_a_bot_to_somebody_without_a_token(tmp_path: Path) -> None:
    [port] = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    async with opened_tab() as tab, BubbleConnection(f"{url}/bubble", token=ADMIN_TOKEN) as admin:
        async with public_site(port, tmp_path):
            await admin.create_principal("guide", kind="bot", owner_principal_id="admin")
            await admin.create_thread(thread_id="tour")
            await admin.put_grant("tour", "guide", "participant")
            token = (await admin.mint_token("guide")).token
            await tab.go(f"{url}/")
            async with BubbleConnection(f"{url}/bubble", token=token) as bot, bot.run("tour") as run:
                await run.text("<b>Hello</b> ")
                await tab.until("document.querySelector('#rows').textContent.includes('<b>Hello</b>')")
                await tab.until("document.querySelector('#doing').textContent === 'working'")
                await run.text("there")
                await tab.until("document.querySelector('#rows').textContent.includes('<b>Hello</b> there')")
            await tab.until("document.querySelector('#doing').textContent === 'idle'")
        async with public_site(port, tmp_path):
            async with BubbleConnection(f"{url}/bubble", token=token) as bot, bot.run("tour") as run:
                await run.text("And back.")
            await tab.until("document.querySelector('#rows').textContent.includes('And back.')")
            assert await tab.run("document.querySelectorAll('#rows dt').length") == 4


@pytest.mark.requirement("WA-85", "WA-91")
async def test_the_page_of_the_guide_begins_anew_where_its_cursor_is_of_another_session(tmp_path: Path) -> None:
    [port] = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    async with opened_tab() as tab, BubbleConnection(f"{url}/bubble", token=ADMIN_TOKEN) as admin:
        async with public_site(port, tmp_path):
            await admin.create_principal("guide", kind="bot", owner_principal_id="admin")
            token = (await admin.mint_token("guide")).token
            async with BubbleConnection(f"{url}/bubble", token=token) as bot:
                for thread_id in ("tour", "other"):
                    await admin.create_thread(thread_id=thread_id)
                    await admin.put_grant(thread_id, "guide", "participant")
                    await bot.send_message(thread_id, f"On the {thread_id}.")
            await tab.go(f"{url}/")
            await tab.until("document.querySelector('#rows').textContent.includes('On the tour.')")
        async with public_site(port, tmp_path, thread_id="other"):
            await tab.until("document.querySelector('#rows').textContent.includes('On the other.')")
            assert not await tab.run("document.querySelector('#rows').textContent.includes('On the tour.')")
            async with httpx2.AsyncClient(base_url=url) as http:
                refused = await http.get("/live", headers={"Last-Event-ID": "7"})
                assert (refused.status_code, refused.json()) == (400, {"code": "invalid_cursor"})
