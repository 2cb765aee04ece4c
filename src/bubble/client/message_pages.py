"""Pages of messages as the server assembles them (protocol, section 6): for who wants to read, and neither to fold nor to follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from bubble.assembler import BubbleMessage, Grouping
from bubble.client.http import Call, HttpClient
from bubble.client.paths import thread_path
from bubble.protocol.errors import InternalError
from bubble.protocol.jsontext import load_json

__all__ = ["MessagePage", "read_message_page"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePage:
    """Messages in order, as they are at `head_seq`; `next_before` is the `before` of the page before, None at the beginning."""

    messages: Sequence[BubbleMessage]
    head_seq: int
    next_before: int | None


async def read_message_page(
    http: HttpClient, thread_id: str, *, before: int | None, limit: int | None, grouping: Grouping
) -> MessagePage:
    """The newest messages that opened before the seq `before`, or before the end. `InternalError` for an answer that is none."""
    given = {"before": before, "limit": limit, "grouping": grouping}
    call = Call(
        method="GET",
        path=thread_path(thread_id, "/messages"),
        params={name: str(value) for name, value in given.items() if value is not None},
        repeatable=True,
    )
    try:
        page = load_json((await http.send(call)).body)
    except (ValueError, RecursionError) as error:
        raise InternalError(f"The server's answer cannot be read: {error}.") from None
    if not (isinstance(page, dict) and isinstance(page.get("messages"), list) and isinstance(page.get("headSeq"), int)):
        raise InternalError("The server's answer cannot be read: it is no page of messages.")
    return MessagePage(
        messages=cast("list[BubbleMessage]", page["messages"]),
        head_seq=cast("int", page["headSeq"]),
        next_before=cast("int | None", page.get("nextBefore")),
    )
