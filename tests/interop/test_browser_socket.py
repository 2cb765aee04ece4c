"""A browser's own WebSocket against the server: the protocol page's client, as it is meant to be used."""

from __future__ import annotations

import json

import pytest

from tests.docs.chromium import chromium, opened_tab
from tests.server.websocket.live import Live, part, serving

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.timeout(120),
    pytest.mark.skipif(chromium() is None, reason="missing: chromium"),
]

FOLLOW = """
(url) => {
  globalThis.lines = [];
  let throughSeq = null;
  const ws = new WebSocket(url);
  ws.addEventListener("open", () => ws.send(JSON.stringify({ type: "thread.subscribe", threadId: "thread-1", fromSeq: 1 })));
  ws.addEventListener("message", (message) => {
    const frame = JSON.parse(message.data);
    if (frame.type === "thread.subscription_opened") {
      throughSeq = frame.throughSeq;
      lines.push(`opened ${throughSeq}`);
    } else if (frame.type === "thread.event") {
      lines.push(`${frame.event.seq <= (throughSeq ?? -Infinity) ? "backlog" : "live"} ${frame.event.seq}`);
    } else {
      lines.push(`${frame.type} ${frame.reason ?? frame.code}`);
    }
  });
  return true;
}
"""


async def _page_with_ticket(live: Live) -> str:
    ticket = (await live.call("POST", "/v1/ws/tickets"))["ticket"]
    return f"ws://127.0.0.1:{live.port}/v1/ws?ticket={ticket}"


@pytest.mark.requirement("WS-55")
async def test_a_page_tells_backlog_from_live_by_through_seq() -> None:
    async with serving() as live, opened_tab() as tab:
        await live.thread("thread-1")
        await live.append("thread-1", part("before"))
        await tab.go(f"http://127.0.0.1:{live.port}/docs")
        url = await _page_with_ticket(live)
        await tab.run(f"({FOLLOW})({json.dumps(url)})")
        await tab.until("lines.length === 4")
        await live.append("thread-1", part("after 😀"))
        await tab.until("lines.length === 5")
        assert await tab.run("lines") == ["opened 3", "backlog 1", "backlog 2", "backlog 3", "live 4"]
        await live.call("DELETE", "/v1/threads/thread-1")
        await tab.until("lines.length === 7")
        shown = await tab.run("lines")
        assert isinstance(shown, list)
        assert shown[5:] == ["error not_found", "thread.subscription_closed not_found"]
