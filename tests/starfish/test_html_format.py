"""`format=html`: pages and streams of messages with the Markdown of their texts as HTML, for whoever asks for it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from bubble.protocol.sse import SseDecoder
from tests.server.world import Json, Person, World, a_world

pytestmark = pytest.mark.anyio

TEXT = "*so* <b>not</b>"
HTML = "<p><em>so</em> &lt;b&gt;not&lt;/b&gt;</p>\n"


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with a_world() as it:
        yield it


async def shown(person: Person, path: str, count: int) -> list[Json]:
    """The first messages of a stream."""
    decoder = SseDecoder()
    messages: list[Json] = []
    async with person.http.stream("GET", path) as answer:
        assert answer.status_code == 200
        async for piece in answer.aiter_bytes():
            messages += [json.loads(event.data) for event in decoder.feed(piece) if event.event == "message"]
            if len(messages) >= count:
                break
    return messages


def texts(messages: list[Json], member: str) -> list[object]:
    return [part[member] for message in messages for part in message["parts"] if part["type"] == "text"]  # type: ignore[union-attr, index, call-overload]


@pytest.mark.requirement("SF-06")
async def test_a_page_has_html_in_place_of_text_only_where_it_is_asked_for(world: World) -> None:
    alice = await world.user("alice")
    thread = await alice.thread()
    await alice.post(f"/v1/threads/{thread}/events:batch", {"events": alice.message("r", TEXT)})
    plain = (await alice.get(f"/v1/threads/{thread}/messages")).json()["messages"]
    rich = (await alice.get(f"/v1/threads/{thread}/messages?format=html")).json()["messages"]
    assert texts(plain, "text") == [TEXT]
    assert texts(rich, "html") == [HTML]
    for message in rich:
        for part in message["parts"]:
            if part.pop("html", None) is not None:
                part["text"] = TEXT
    assert rich == plain


@pytest.mark.requirement("SF-06")
async def test_viewers_of_both_formats_share_one_following_and_get_what_they_asked_for(world: World) -> None:
    alice = await world.user("alice")
    thread = await alice.thread()
    await alice.post(f"/v1/threads/{thread}/events:batch", {"events": alice.message("r", TEXT)})
    path = f"/v1/threads/{thread}/messages/stream"
    async with alice.http.stream("GET", path) as answer:
        pieces = answer.aiter_bytes()
        assert b"subscription_opened" in await anext(pieces)
        rich = await shown(alice, f"{path}?format=html", 2)
        assert world.app.services.followings.statistics().followings == 1
    assert texts(rich, "html") == [HTML]
    assert texts(await shown(alice, path, 2), "text") == [TEXT]


@pytest.mark.requirement("SF-06")
async def test_a_format_that_is_none_is_refused(world: World) -> None:
    alice = await world.user("alice")
    thread = await alice.thread()
    for path in ("messages", "messages/stream"):
        await alice.get(f"/v1/threads/{thread}/{path}?format=pdf", expect=400)
