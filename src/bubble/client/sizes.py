"""What fits into an event of the server at hand. It is asked for its limits once, and only where something is large."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator

from bubble.client.answers import ProtocolInfo
from bubble.protocol.errors import PayloadTooLarge
from bubble.protocol.limits import Limits

__all__ = ["Sizes", "pieces"]

# Whatever a server's settings are, an event of so many bytes is worth no question; should it be refused, the server says so itself.
_SMALL = 64 * 1024
_FEW = 50
# Characters of text in one chunk. As JSON a character has at most 12 bytes, mostly one, and a piece must fit into an event.
_PIECE = 64 * 1024


def pieces(text: str) -> Iterator[str]:
    """The text in pieces that each fit into an event by the default limits; an empty text is one empty piece."""
    yield text[:_PIECE]
    for start in range(_PIECE, len(text), _PIECE):
        yield text[start : start + _PIECE]


class Sizes:
    """The server's limits, as far as something is measured against them."""

    def __init__(self, ask: Callable[[], Awaitable[ProtocolInfo]]) -> None:
        self._ask = ask
        self._limits: Limits | None = None

    async def limits(self) -> Limits:
        """The limits of the server (protocol, section 2)."""
        if self._limits is None:
            self._limits = (await self._ask()).limits
        return self._limits

    async def check_event(self, text: bytes, *, what: str) -> None:
        """`PayloadTooLarge`, naming `what`, where an event's JSON text has more bytes than the server takes."""
        if len(text) > _SMALL and len(text) > (most := (await self.limits()).event_bytes):
            raise PayloadTooLarge(
                f"{what} is too large: {len(text):,} bytes as an event, where the server takes {most:,}."
            )

    async def check_file(self, size: int, *, name: str) -> None:
        """`PayloadTooLarge` where a file of `size` bytes cannot travel within an event, before it is read or encoded."""
        if size > _SMALL and size > (most := (await self.limits()).event_bytes * 3 // 4):
            raise PayloadTooLarge(
                f"{name} has {size:,} bytes. Within an event the server takes a file of less than {most:,};"
                " put a larger one where others can fetch it, and give its URL."
            )

    async def check_batch(self, count: int, size: int) -> None:
        """`PayloadTooLarge` where `count` events of `size` bytes together are more than the server appends at once."""
        if count <= _FEW and size <= _SMALL:
            return
        limits = await self.limits()
        if count > limits.batch_events or size > limits.batch_bytes:
            raise PayloadTooLarge(
                f"The message is too large: {count:,} events of {size:,} bytes, where the server appends at most"
                f" {limits.batch_events:,} of {limits.batch_bytes:,} bytes at once. Send it as several messages, or files by their URLs."
            )
