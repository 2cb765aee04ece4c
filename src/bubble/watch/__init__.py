"""One bot's live state, as events in a program and as server-sent events for a page."""

from __future__ import annotations

from bubble.watch.connect import AskFor, ConnectSource
from bubble.watch.cursor import WatchCursor
from bubble.watch.decoder import WatchDecoder
from bubble.watch.errors import WATCH_ERROR_CODES, WatchError, WatchErrorCode
from bubble.watch.events import WatchEvent
from bubble.watch.frame_json import decode_frame, parse_frame
from bubble.watch.frames import WatchFrame
from bubble.watch.sources import Frame, RecordedSource, WatchSource
from bubble.watch.sse import BotEventsSse, bot_events_sse, encode_event
from bubble.watch.watching import BotWatch, watch_bot

__all__ = [
    "WATCH_ERROR_CODES",
    "AskFor",
    "BotEventsSse",
    "BotWatch",
    "ConnectSource",
    "Frame",
    "RecordedSource",
    "WatchCursor",
    "WatchDecoder",
    "WatchError",
    "WatchErrorCode",
    "WatchEvent",
    "WatchFrame",
    "WatchSource",
    "bot_events_sse",
    "decode_frame",
    "encode_event",
    "parse_frame",
    "watch_bot",
]
