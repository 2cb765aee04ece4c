"""The cursor: up to where somebody has a session, as a string (spec 3, "Resume cursor").

Unpadded base64url over compact JSON with `botId`, `sessionId`, `generation` and `afterUpdatedSeq`, to the byte what `JSON.stringify` makes
of it. There is one text for each cursor, which may come back padded: whatever else `encode` would not write, to the last character, is
none.
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass
from typing import Final, Never

from bubble.protocol.sse import MAX_ID
from bubble.watch.errors import WatchError
from bubble.watch.wire import MAX_GENERATION, MAX_UINT64, is_uint64

__all__ = ["WatchCursor"]

_NAMES: Final = ("botId", "sessionId", "generation", "afterUpdatedSeq")
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchCursor:
    """Everything of a bot's session up to the row `after_updated_seq` (0 to 2^64-1) of a `generation` (0 to 2^53-1).

    `encode()` and `WatchCursor.decode(text)` are inverse, but for the padding, which may be there.
    """

    bot_id: str
    session_id: str
    generation: int
    after_updated_seq: int

    def encode(self) -> str:
        """The string that goes out as an event's id and comes back as `resume_from`."""
        values = (self.bot_id, self.session_id, self.generation, str(self.after_updated_seq))
        text = json.dumps(dict(zip(_NAMES, values, strict=True)), separators=(",", ":"), ensure_ascii=False)
        return base64.urlsafe_b64encode(_utf8(text)).decode("ascii").rstrip("=")

    @classmethod
    def decode(cls, text: str) -> WatchCursor:
        """The cursor that `text` is. `WatchError` `invalid_cursor` if it is none."""
        bot_id, session_id, generation, after = _values(text)
        if not (isinstance(bot_id, str) and bot_id and isinstance(session_id, str)):
            _refuse("`botId` and `sessionId` must be strings, and `botId` not empty")
        if type(generation) is not int or not 0 <= generation <= MAX_GENERATION:
            _refuse("`generation` must be an integer from 0 to 2^53-1")
        if not isinstance(after, str) or not is_uint64(after):
            _refuse("`afterUpdatedSeq` must be a decimal string from 0 to 2^64-1")
        cursor = cls(bot_id=bot_id, session_id=session_id, generation=generation, after_updated_seq=int(after))
        own = cursor.encode()
        if text not in (own, own + "=" * (-len(own) % 4)):
            _refuse("it was changed on its way")
        return cursor

    @classmethod
    def longest(cls, *, bot_id: str, session_id: str) -> int:
        """How many characters a cursor of this session can have; an id on the wire has at most 2,048."""
        last = cls(bot_id=bot_id, session_id=session_id, generation=MAX_GENERATION, after_updated_seq=MAX_UINT64)
        return len(last.encode())


def _utf8(text: str) -> bytes:
    # `JSON.stringify` escapes a lone surrogate and nothing else beyond ASCII; two halves that follow each other are one character there.
    joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return _LONE_SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", joined).encode("utf-8")


def _values(text: str) -> list[object]:
    # Neither decoder has to be strict: whatever they pass over makes the text another one than that of the cursor.
    try:
        value = json.loads(base64.urlsafe_b64decode(text[:MAX_ID] + "=="))
    except (ValueError, RecursionError):
        _refuse("it must be base64url of JSON")
    if not isinstance(value, dict) or value.keys() != set(_NAMES):
        _refuse(f"it must have exactly {', '.join(_NAMES)}")
    return [value[name] for name in _NAMES]


def _refuse(why: str) -> Never:
    raise WatchError(
        "invalid_cursor", f"This is no cursor that a watch gave: {why}. Resume with the id of an event, as it came."
    )
