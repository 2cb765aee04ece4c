"""From the frames of one stream to the events of one bot's session (spec 3, "Ordering inside one frame").

*Theory of operation.* A decoder is a place in a transcript, the cursor: a generation, and the counter of the last row that was applied. A
row at or behind the counter was applied before, so it is passed over: an upstream may repeat as much as it likes. A row beyond it is
applied and moves the counter, whether its body can be read or not, so that no row can block those after it.

Another generation than the cursor's, whichever is larger, means another transcript: the page is told to drop what it has, the counter
starts at 0, and everything is new. A fresh watch has no generation yet and takes the first that it sees.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import UNSET

from bubble.protocol.sse import MAX_ID
from bubble.watch import events
from bubble.watch.beside import event_beside
from bubble.watch.bodies import decode_body, id_of, text_of
from bubble.watch.cursor import WatchCursor
from bubble.watch.errors import WatchError
from bubble.watch.events import WatchEvent
from bubble.watch.frame_json import decode_frame
from bubble.watch.frames import Cleared, CursorTooOld, Delete, Entry, Rows, WatchFrame

__all__ = ["WatchDecoder"]


class WatchDecoder:
    """Frames in, events out. `cursor`, where given, is where to go on.

    `WatchError` `invalid_cursor` for one of another bot or session; `ValueError` for ids so long that no cursor of theirs could travel.
    """

    def __init__(self, *, bot_id: str, session_id: str = "", cursor: WatchCursor | None = None) -> None:
        if not bot_id or WatchCursor.longest(bot_id=bot_id, session_id=session_id) > MAX_ID:
            raise ValueError("`bot_id` must not be empty, and with `session_id` no longer than a cursor can hold.")
        if cursor is not None and (cursor.bot_id, cursor.session_id) != (bot_id, session_id):
            raise WatchError("invalid_cursor", "The cursor is of another bot or session.")
        self.bot_id = bot_id
        self.session_id = session_id
        self.is_over = False
        self._generation = None if cursor is None else cursor.generation
        self._after = 0 if cursor is None else cursor.after_updated_seq

    @property
    def cursor(self) -> WatchCursor | None:
        """Where to resume; None as long as nothing was said about the session."""
        return None if self._generation is None else self._at(self._generation)

    def decode(self, frame: WatchFrame | Mapping[str, object]) -> list[WatchEvent]:
        """The events of the next frame, a value or JSON data; none once `is_over`. `WatchError` `protocol_error` for what is no frame."""
        known = frame if isinstance(frame, WatchFrame) else decode_frame(frame)
        if self.is_over or known is None:
            return []
        if not isinstance(known, Rows | Cleared | CursorTooOld):
            event = event_beside(known, bot_id=self.bot_id, session_id=self.session_id)
            return [] if event is None else [event]
        if (known.agent_id, known.session_id) != (self.bot_id, self.session_id):
            return []
        if isinstance(known, Rows):
            return list(self._rows(known))
        return [self._reset(known.new_generation) if isinstance(known, Cleared) else self._resync(known)]

    def _at(self, generation: int) -> WatchCursor:
        return WatchCursor(
            bot_id=self.bot_id, session_id=self.session_id, generation=generation, after_updated_seq=self._after
        )

    def _rows(self, frame: Rows) -> Iterable[WatchEvent]:
        if self._generation is None:
            self._generation = frame.generation
        elif frame.generation != self._generation:
            yield self._reset(frame.generation)
        # Sorting is stable: entries stay before deletes, and all of them in the order of their list.
        rows: list[Entry | Delete] = [*frame.entries, *frame.deletes]
        for row in sorted(rows, key=lambda row: row.updated_seq):
            if row.updated_seq > self._after:
                self._after = row.updated_seq
                yield self._entry(row, frame) if isinstance(row, Entry) else self._delete(row, frame)

    def _reset(self, generation: int) -> events.ResetEvent:
        self._generation, self._after = generation, 0
        data = events.ResetData(bot_id=self.bot_id, session_id=self.session_id, generation=generation)
        return events.ResetEvent(id=self._at(generation).encode(), data=data)

    def _resync(self, frame: CursorTooOld) -> events.ResyncRequiredEvent:
        self.is_over = True
        data = events.ResyncRequiredData(bot_id=self.bot_id, session_id=self.session_id, generation=frame.generation)
        return events.ResyncRequiredEvent(data=data)

    def _entry(self, row: Entry, frame: Rows) -> WatchEvent:
        body = decode_body(row.body)
        common = self._common(row, frame, entry_id=row.entry_id or id_of(body))
        cursor = self._at(frame.generation).encode()
        if body is UNSET:
            data = events.UnavailableEntryData(
                **common,
                entry_kind=row.entry_kind,
                body_omitted=row.body_omitted,
                blob_hash=row.blob_hash or UNSET,
            )
            return events.UnavailableEntryEvent(id=cursor, data=data)
        text = text_of(body)
        if text is not None:
            return events.MessageEvent(id=cursor, data=events.MessageData(**common, text=text))
        return events.EntryEvent(id=cursor, data=events.EntryData(**common, entry_kind=row.entry_kind, entry=body))

    def _delete(self, row: Delete, frame: Rows) -> events.MessageDeletedEvent:
        data = events.MessageDeletedData(**self._common(row, frame, entry_id=row.entry_id))
        return events.MessageDeletedEvent(id=self._at(frame.generation).encode(), data=data)

    def _common(self, row: Entry | Delete, frame: Rows, *, entry_id: str | None) -> dict[str, Any]:
        return {
            "bot_id": self.bot_id,
            "session_id": self.session_id,
            "generation": frame.generation,
            "seq": str(row.seq),
            "updated_seq": str(row.updated_seq),
            "entry_id": entry_id or str(row.seq),
            "replay": frame.replay,
        }
