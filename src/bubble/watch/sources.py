"""Where frames come from.

A source is asked for the frames of one bot's session, from a cursor on or from the beginning. It may tell of other bots and sessions as
well, and repeat what was before the cursor: the decoder knows what is new. The generator ends where the stream ended cleanly, and raises
`WatchError` for every other end. Closing it lets go of what it holds.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, Protocol, TypeAlias

from bubble.watch.cursor import WatchCursor
from bubble.watch.decoder import WatchDecoder
from bubble.watch.errors import WatchError, WatchErrorCode
from bubble.watch.frame_json import decode_frame, parse_frame
from bubble.watch.frames import Cleared, Rows, WatchFrame

__all__ = ["Frame", "RecordedSource", "WatchSource"]

#: A frame as a value, or as JSON data.
Frame: TypeAlias = WatchFrame | Mapping[str, object]

_LINES_AT_ONCE: Final = 256
_UNREADABLE: Final[Mapping[type[OSError], WatchErrorCode]] = {
    FileNotFoundError: "not_found",
    PermissionError: "permission_denied",
}


class WatchSource(Protocol):
    """Gives the frames of one stream each time it is asked."""

    def frames(self, *, bot_id: str, session_id: str, cursor: WatchCursor | None) -> AsyncGenerator[Frame, None]:
        """A new stream, for whoever has everything up to `cursor`."""


class RecordedSource:
    """Frames from a file of JSON lines, or from anything that can be iterated over: for tests, and to see something again.

    Asked to go on from a cursor it looks through all of it and begins with the frame that brought the cursor, or with all of them if none
    did. Where a generation recurs, several may have: nobody can tell which of them is meant, so the last of those transcripts is given from
    its beginning, after a `reset`. What can be iterated over only once can be watched only once, and
    what that raises goes on as it is.
    """

    def __init__(self, recording: Path | Iterable[Frame]) -> None:
        self._recording = recording

    async def frames(self, *, bot_id: str, session_id: str, cursor: WatchCursor | None) -> AsyncGenerator[Frame, None]:
        """The frames, or those that are left."""
        if cursor is None:
            async for frame in self._all():
                yield frame
        else:
            decoder = WatchDecoder(bot_id=bot_id, session_id=session_id)
            for frame in _after(cursor, [frame async for frame in self._all()], decoder):
                yield frame

    async def _all(self) -> AsyncIterator[WatchFrame]:
        if isinstance(self._recording, Path):
            async for line in _lines(self._recording):
                frame = parse_frame(line)
                if frame is not None:
                    yield frame
        else:
            for each in self._recording:
                frame = each if isinstance(each, WatchFrame) else decode_frame(each)
                if frame is not None:
                    yield frame


async def _lines(path: Path) -> AsyncIterator[bytes]:
    """The lines of a file that are not empty. `WatchError` where it cannot be read: it is the same the next time."""
    try:
        with path.open("rb") as file:
            while lines := await asyncio.to_thread(lambda: list(islice(file, _LINES_AT_ONCE))):
                for line in filter(bytes.strip, lines):
                    yield line
    except OSError as error:
        code: WatchErrorCode = next((code for kind, code in _UNREADABLE.items() if isinstance(error, kind)), "internal")
        raise WatchError(code, f"{path} cannot be read: {error.strerror or error}.") from error


def _after(cursor: WatchCursor, frames: Sequence[WatchFrame], decoder: WatchDecoder) -> Sequence[WatchFrame]:
    """What is left for whoever has the cursor, which is looked for as it was given out."""
    wanted = cursor.encode()
    begun = 0  # the frame that began the transcript
    brought: list[
        tuple[int, int]
    ] = []  # the beginning of the transcript and the frame, for each that brought the cursor
    for index, frame in enumerate(frames):
        for event in decoder.decode(frame):
            if event.type == "reset":
                begun = index
            if event.id == wanted:
                brought.append((begun, index))
    if not brought:
        return frames
    begun, index = brought[-1]
    if len(brought) == 1:
        return frames[index if isinstance(frames[index], Rows) else index + 1 :]  # the rest of its rows may be new
    anew = Cleared(agent_id=cursor.bot_id, session_id=cursor.session_id, new_generation=cursor.generation)
    return [anew, *frames[begun if isinstance(frames[begun], Rows) else begun + 1 :]]
