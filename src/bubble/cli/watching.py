"""Following the server's stream of a bot's events, over as many connections as it takes."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from bubble.cli.failures import CommandError
from bubble.cli.output import note, write_json
from bubble.cli.profiles import Target, resolve_target
from bubble.cli.remote import outage_in_words
from bubble.cli.watchlines import WatchLines

if TYPE_CHECKING:
    import httpx2

    from bubble.protocol.errors import BubbleError

__all__ = ["watch"]

# The server sends something every 15 seconds.
_SILENCE: Final = 60.0
_MOST_MEBIBYTES: Final = 64
_CURSOR: Final = re.compile("[A-Za-z0-9_=-]*")
_WHY: Final = {
    "not_found": "The thread is gone, or you may not see it any longer.",
    "unauthenticated": "The token is no longer valid. Log in with `bubble login URL`.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Event:
    type: str
    id: str | None
    data: Any


class _TooLarge(Exception):
    """A row of the stream is larger than what is held of one; `id` is its cursor."""

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self.id = id


async def watch(profile: str | None, bot_id: str, thread_id: str, *, resume: str | None, as_json: bool) -> None:
    """Shows the events until the watch ends. Raises `CommandError` or a `BubbleError` where it ends badly."""
    from bubble.protocol.errors import InvalidRequest

    if not _CURSOR.fullmatch(resume or ""):  # which no header could carry
        raise InvalidRequest(f"`--resume` is no cursor: {resume!r}. Resume with the id of an event, as it came.")
    lines = WatchLines(bot_id)
    async for event in _events(resolve_target(profile), bot_id, thread_id, resume):
        if as_json:
            id_ = {} if event.id is None else {"id": event.id}
            write_json({"type": event.type, **id_, "data": event.data})
        else:
            lines.tell(event.type, event.data)
        if event.type == "error":
            raise CommandError(_WHY.get(event.data["code"], f"The watch ended: {event.data['code']}."))


async def _events(target: Target, bot_id: str, thread_id: str, resume: str | None) -> AsyncIterator[_Event]:
    """Every event to the end of the watch. Where a connection is lost or the server restarts, it goes on from the last id."""
    import httpx2

    from bubble.client.backoff import Backoff
    from bubble.protocol.errors import Unavailable

    backoff, last, failures, was_open = Backoff(), resume, 0, False
    url = f"{target.url}/v1/bots/{quote(bot_id, safe='')}/events?sessionId={quote(thread_id, safe='')}"
    async with httpx2.AsyncClient(timeout=httpx2.Timeout(10.0, read=_SILENCE)) as client:
        while True:
            problem = Unavailable("The connection was lost.")
            try:
                async for event in _stream(client, url, target.token, last):
                    if event.type == "error" and event.data["code"] == "unavailable":
                        break
                    if failures:
                        note(outage_in_words(None))
                    failures, was_open, last = 0, True, event.id or last
                    yield event
                    if event.type in ("stream.closed", "error"):
                        return
            except _TooLarge as row:
                note(f"A row of more than {_MOST_MEBIBYTES} MiB was left out; it has the id {row.id}.")
                was_open, last = True, row.id
                continue
            except Unavailable as error:
                if not was_open:
                    raise
                problem = error
            if not failures:
                note(outage_in_words(problem))
            await asyncio.sleep(backoff.wait(failures))
            failures += 1


async def _stream(client: httpx2.AsyncClient, url: str, token: str, last: str | None) -> AsyncIterator[_Event]:
    import httpx2

    from bubble.protocol.errors import Unavailable
    from bubble.protocol.sse import SseDecoder, SseOverflow

    headers = {"Authorization": f"Bearer {token}", **({"Last-Event-ID": last} if last else {})}
    decoder, seen = SseDecoder(max_bytes=_MOST_MEBIBYTES * 1024 * 1024, last_event_id=last or ""), last or ""
    try:
        async with client.stream("GET", url, headers=headers) as response:
            if response.status_code != httpx2.codes.OK:
                raise await _refusal(response)
            async for chunk in response.aiter_raw():
                for event in decoder.decode(chunk):
                    is_its_own = event.id != seen  # an id that came before stays with the events that have none
                    seen = event.id
                    yield _Event(type=event.event, id=event.id if is_its_own else None, data=json.loads(event.data))
    except SseOverflow:
        if decoder.open_id != seen:
            raise _TooLarge(decoder.open_id) from None
        raise CommandError("The server sent an event that is too large to be held.") from None
    except httpx2.RequestError as error:
        raise Unavailable(f"Cannot reach {url.partition('/v1/')[0]}: {str(error) or type(error).__name__}.") from None


async def _refusal(response: httpx2.Response) -> BubbleError:
    from bubble.protocol.errors import InternalError, Unavailable, error_from_code

    try:
        said = json.loads(await response.aread())
        return error_from_code(said["code"], said["message"])
    except (ValueError, LookupError, TypeError):
        kind = Unavailable if response.status_code in (502, 503, 504) else InternalError
        return kind(
            f"{response.url.copy_with(query=None)} answered {response.status_code}, and not as a Bubble server does."
        )
