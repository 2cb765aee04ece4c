"""Bubble: the log that people and agents share.

What is listed here is the public surface; a name is loaded when it is first used, so that a client does not pay for the server.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from bubble.protocol import version

if TYPE_CHECKING:
    from bubble.assembler import MessageReducer, ReducerError, create_assembler, parse_partial_json
    from bubble.client import BubbleConnection
    from bubble.protocol.errors import BubbleError
    from bubble.server.app import create_app
    from bubble.server.settings import Settings
    from bubble.store.opening import open_store
    from bubble.watch import WatchCursor, WatchDecoder, bot_events_sse, watch_bot

__all__ = [
    "BubbleConnection",
    "BubbleError",
    "MessageReducer",
    "ReducerError",
    "Settings",
    "WatchCursor",
    "WatchDecoder",
    "__version__",
    "bot_events_sse",
    "create_app",
    "create_assembler",
    "open_store",
    "parse_partial_json",
    "watch_bot",
]

__version__ = version.VERSION

_HOMES = {
    "BubbleConnection": "bubble.client",
    "BubbleError": "bubble.protocol.errors",
    "MessageReducer": "bubble.assembler",
    "ReducerError": "bubble.assembler",
    "Settings": "bubble.server.settings",
    "create_app": "bubble.server.app",
    "create_assembler": "bubble.assembler",
    "parse_partial_json": "bubble.assembler",
    "open_store": "bubble.store.opening",
    "WatchCursor": "bubble.watch",
    "WatchDecoder": "bubble.watch",
    "bot_events_sse": "bubble.watch",
    "watch_bot": "bubble.watch",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
