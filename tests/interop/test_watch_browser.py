"""A bot's state in a real browser's `EventSource`, which comes back by itself with the id that it had last."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bubble.client import BubbleConnection
from tests.docs.chromium import Tab, chromium, opened_tab
from tests.docs.ports import free_ports
from tests.interop.watch_stage import Stage, a_stage
from tests.server.serving import a_child
from tests.server.world import ADMIN_TOKEN

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(chromium() is None, reason="missing: chromium"),
]

LOG_IN = """fetch("/v1/sessions", {
  method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ token: TOKEN }),
}).then((answer) => answer.status)"""

# As a page would: rows by id, and what is not a row aside. It keeps no cursor: that is the browser's.
WATCH = """
globalThis.rows = {};
globalThis.seen = [];
globalThis.ids = [];
globalThis.source = new EventSource(PATH);
for (const type of TYPES) {
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
}
"""
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
