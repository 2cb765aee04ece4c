"""Where frames come from.

A source is asked for the frames of one bot's session, from a cursor on or from the beginning. It may tell of other bots and sessions as
well, and repeat what was before the cursor: the decoder knows what is new. The generator ends where the stream ended cleanly, and raises
`WatchError` for every other end. Closing it lets go of what it holds.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Final, Protocol, TypeAlias

from bubble.watch.cursor import WatchCursor
from bubble.watch.decoder import WatchDecoder
from bubble.watch.frame_json import decode_frame, parse_frame
from bubble.watch.frames import Rows, WatchFrame

__all__ = ["Frame", "RecordedSource", "WatchSource"]

#: A frame as a value, or as JSON data.
Frame: TypeAlias = WatchFrame | Mapping[str, object]

_LINES_AT_ONCE: Final = 256


class WatchSource(Protocol):
    """Gives the frames of one stream each time it is asked."""

    def frames(self, *, bot_id: str, session_id: str, cursor: WatchCursor | None) -> AsyncGenerator[Frame, None]:
        """A new stream, for whoever has everything up to `cursor`."""


class RecordedSource:
    """Frames from a file of JSON lines, or from anything that can be iterated over: for tests, and to see something again.

    Asked to go on from a cursor it begins with the frame that brought it, or with all of them if none did. What can be iterated over only
    once can be watched only once.
    """

    def __init__(self, recording: Path | Iterable[Frame]) -> None:
        self._recording = recording

    async def frames(self, *, bot_id: str, session_id: str, cursor: WatchCursor | None) -> AsyncGenerator[Frame, None]:
        """The frames, or those that are left."""
        frames = self._all()
        if cursor is not None:
            for frame in await _from(cursor, frames, WatchDecoder(bot_id=bot_id, session_id=session_id)):
                yield frame
        async for frame in frames:
            yield frame

    async def _all(self) -> AsyncIterator[WatchFrame]:
        if isinstance(self._recording, Path):
            with self._recording.open("rb") as file:
                while lines := await asyncio.to_thread(lambda: list(islice(file, _LINES_AT_ONCE))):
                    for frame in (parse_frame(line) for line in lines if line.strip()):
                        if frame is not None:
                            yield frame
        else:
            for each in self._recording:
                frame = decode_frame(each) if isinstance(each, Mapping) else each
                if frame is not None:
                    yield frame


async def _from(cursor: WatchCursor, frames: AsyncIterator[WatchFrame], decoder: WatchDecoder) -> list[WatchFrame]:
    """What to begin with, having looked for the cursor from the beginning on, as it was given out."""
    passed: list[WatchFrame] = []
    wanted = cursor.encode()
    async for frame in frames:
        passed.append(frame)
        if any(event.id == wanted for event in decoder.decode(frame)):
            return [frame] if isinstance(frame, Rows) else []  # the rest of its rows may be new
    return passed
