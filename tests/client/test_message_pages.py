"""Pages of messages, as the client reads them."""

from __future__ import annotations

import httpx2
import pytest

from bubble.client import BubbleConnection
from bubble.protocol.errors import InternalError

pytestmark = pytest.mark.anyio


def client(body: bytes, asked: list[httpx2.URL] | None = None) -> BubbleConnection:
    """A client of a server that answers everything with this."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        if asked is not None:
            asked.append(request.url)
        return httpx2.Response(200, content=body, headers={"Content-Type": "application/json"})

    return BubbleConnection("http://bubble.test", token="t", transport=httpx2.MockTransport(answer))


PAGE = rb'{"messages":[{"id":"r","parts":[{"type":"text","text":"\ud83d"}],"metadata":{"own":1}}],"headSeq":7,"nextBefore":3}'


async def test_a_page_is_asked_for_and_read_as_it_is() -> None:
    asked: list[httpx2.URL] = []
    async with client(PAGE, asked) as bubble:
        page = await bubble.get_message_page("t", before=9, limit=1, grouping="run")
    assert str(asked[0]) == "http://bubble.test/v1/threads/t/messages?before=9&limit=1&grouping=run"
    assert (page.head_seq, page.next_before) == (7, 3)
    [message] = map(dict, page.messages)
    assert message == {"id": "r", "parts": [{"type": "text", "text": "\ud83d"}], "metadata": {"own": 1}}


async def test_the_last_page_has_none_before() -> None:
    async with client(b'{"messages":[],"headSeq":0,"nextBefore":null}') as bubble:
        page = await bubble.get_message_page("t")
    assert (page.messages, page.next_before) == ([], None)


@pytest.mark.parametrize("body", [b"[", b"[]", b"{}", b'{"messages":{},"headSeq":1}', b'{"messages":[],"headSeq":"1"}'])
async def test_an_answer_that_is_no_page_is_an_error(body: bytes) -> None:
    async with client(body) as bubble:
        with pytest.raises(InternalError, match="The server's answer cannot be read"):
            await bubble.get_message_page("t")
