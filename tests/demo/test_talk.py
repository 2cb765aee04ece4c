"""What `bubble demo` leaves open: a link into a thread with an agent in it."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from bubble.cli.spawned import spawned_server
from bubble.client import BubbleConnection
from bubble.demo.talk import a_talk

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


async def said(admin: BubbleConnection, thread_id: str, beginning: str) -> str:
    """The first text of the thread that begins so, as soon as it is there."""
    async with admin.follow_messages(thread_id) as updates:
        async for update in updates:
            texts = [str(part.get("text")) for message in update.messages for part in message["parts"]]
            for text in texts:
                if text.startswith(beginning):
                    return text
    raise AssertionError(beginning)


async def test_the_link_leads_into_a_thread_in_which_the_agent_answers() -> None:
    async with spawned_server() as server, a_talk(server) as link:
        query = parse_qs(urlsplit(link).query)
        (thread_id,), (code,) = query["thread"], query["code"]
        async with httpx2.AsyncClient(base_url=server.url, trust_env=False) as browser:
            assert (await browser.post("/v1/sessions", json={"code": code})).status_code == 201
            assert (await browser.get(f"/v1/threads/{thread_id}")).json()["role"] == "owner"
        async with BubbleConnection(server.url, token=server.admin_token) as admin:
            await said(admin, thread_id, "Begin with one of")
            await admin.send_message(thread_id, "Hello")
            await said(admin, thread_id, "You said: Hello")
