"""Events of a watch as server-sent events (spec 3, "SSE bytes").

*Theory of operation.* The reader pulls. As long as it does not come back for more, nothing is taken from the iterator of events, so what is
held for a reader that has stopped reading is the one record it has not taken, and no keep-alive is made for it. While nothing happens the
step that waits for the next event is left alone, however many keep-alives pass; it is cancelled when the reader is gone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from bubble.protocol.sse import KEEP_ALIVE, encode_sse
from bubble.watch.errors import WatchErrorCode, code_of
from bubble.watch.events import WatchEvent

__all__ = ["CLOSED", "SSE_HEADERS", "BotEventsSse", "bot_events_sse", "encode_error", "encode_event"]

SSE_HEADERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "content-type": "text/event-stream; charset=utf-8",
        "cache-control": "no-cache, no-transform",
        "x-accel-buffering": "no",
    }
)
KEEP_ALIVE_MS: Final = 15_000
#: The last record of a watch that ended cleanly.
CLOSED: Final = encode_sse("stream.closed", {})

_log = logging.getLogger("bubble")


def encode_event(event: WatchEvent) -> bytes:
    """One event as one record, named by its type."""
    return encode_sse(event.type, msgspec.to_builtins(event.data), id=event.id)


def encode_error(code: WatchErrorCode) -> bytes:
    """The last record of a watch that failed."""
    return encode_sse("error", {"code": code})


def bot_events_sse(events: AsyncIterator[WatchEvent], *, keep_alive_ms: int = KEEP_ALIVE_MS) -> BotEventsSse:
    """The bytes to stream for `events`, which are closed when the bytes are; the response needs `headers`.

    A comment is sent whenever nothing came for `keep_alive_ms`. The last record is `stream.closed`, or `error` with a `WatchErrorCode`. On
    `stream.closed` a page must close its `EventSource`, which would otherwise come back with the same id.
    """
    if keep_alive_ms <= 0:
        raise ValueError("`keep_alive_ms` must be positive.")
    return BotEventsSse(events, keep_alive_ms=keep_alive_ms)


class BotEventsSse:
    """Bytes of server-sent events. Made by `bot_events_sse`; iterate over it once."""

    headers: Final = SSE_HEADERS

    def __init__(self, events: AsyncIterator[WatchEvent], *, keep_alive_ms: int) -> None:
        self._events = events
        self._keep_alive = keep_alive_ms / 1000

    def __aiter__(self) -> AsyncIterator[bytes]:
        # A generator, because whoever drops one that is not finished gets it closed by the event loop.
        return self._records()

    async def _records(self) -> AsyncGenerator[bytes, None]:
        step: asyncio.Future[WatchEvent] | None = None
        try:
            while True:
                step = asyncio.ensure_future(anext(self._events))
                while not (await asyncio.wait({step}, timeout=self._keep_alive))[0]:
                    yield KEEP_ALIVE
                yield encode_event(step.result())
        except StopAsyncIteration:
            yield CLOSED
        except Exception as error:  # noqa: BLE001 - whatever it is, the page is told the code and nothing else
            _log.warning("a watch ended with an error", exc_info=error)
            yield encode_error(code_of(error))
        finally:
            await _close(step, self._events)


async def _close(step: asyncio.Future[WatchEvent] | None, events: AsyncIterator[WatchEvent]) -> None:
    if step is not None and not step.done():
        step.cancel()
        await asyncio.wait({step})
    close = getattr(events, "aclose", None)
    if close is not None:
        await close()
