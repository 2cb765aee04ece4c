"""What an agent keeps about one thread between its turns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from bubble.protocol.jsontext import JSONValue, dump_json, load_json

__all__ = ["SaveSession", "Session"]

SaveSession = Callable[[bytes], Awaitable[None]]


class Session:
    """A small JSON object of one thread, as durable as the connector's store. No two threads share one."""

    def __init__(self, thread_id: str, *, text: bytes = b"{}", save: SaveSession) -> None:
        self.thread_id = thread_id
        self._text = text
        self._save = save

    def get(self) -> dict[str, JSONValue]:
        """What was set last; empty at first. The caller's to change."""
        value = load_json(self._text)
        return value if isinstance(value, dict) else {}

    async def set(self, value: Mapping[str, JSONValue]) -> None:
        """Keeps `value` in place of what was there: seen by `get` at once, durable on return. `ValueError` for what is no JSON.

        Where the store cannot be written, no reply fails for it: it returns after a second, the log says so, and the value is written with
        whatever is kept next.
        """
        self._text = dump_json(dict(value))
        await self._save(self._text)
