"""What a watcher is sent at a time: frames, and the same as server-sent events, made once for all who are at the same place.

A place in a transcript is the counter of its last row. A counter is the seq of the last event that changed the row's message, times 65,536,
plus a number, so that no two rows have the same. The log alone decides on it, so a place that one server, board or stretch gave is the same
place on every other, before and after a restart. Of a message with more rows than there are numbers, the newest are told.

The rows of one event are numbered from the end. Of what it changed, less and less is left as later events change it again, so a row that
somebody has not got yet keeps its number or gets a higher one, never a lower one than what they have. That holds where rows are told as
they are later than they were told then; `stretches` sees to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from bubble.server.watching.rows import Row
from bubble.server.watching.session import Aside
from bubble.watch import WatchCursor, WatchDecoder, encode_event
from bubble.watch.frames import Delete, Entry, Rows, WatchFrame

__all__ = [
    "LAST",
    "Gone",
    "Numbered",
    "Place",
    "Placed",
    "Posted",
    "Slice",
    "Whose",
    "counter_of",
    "cut",
    "encode_frames",
    "is_amid",
    "numbered_back",
    "seq_behind",
    "seq_of",
]

#: The number of the last row that an event changed.
LAST: Final = 65_535
#: How much a watcher is sent at a time, if it is not one row that is larger; bytes of bodies.
SLICE_BYTES: Final = 128 * 1024
_DELETE_BYTES: Final = 100


class Whose(NamedTuple):
    """The bot, the thread, and how often the bot has cleared its session there."""

    bot_id: str
    thread_id: str
    generation: int


class Gone(NamedTuple):
    """A row that was deleted by the event `seq`."""

    entry_id: str
    seq: int


class Placed(NamedTuple):
    """A row, and the last event that changed its message. `since`: it has shown the same since that event, or for longer."""

    seq: int
    since: int
    row: Row | Gone


class Posted(NamedTuple):
    """A row with its counter; `since` as in `Placed`."""

    counter: int
    since: int
    row: Row | Gone


class Numbered(NamedTuple):
    """An aside, and which one it is."""

    number: int
    aside: Aside


class Place(NamedTuple):
    """What a watcher has: every row up to `counter`, and every aside up to the number `heard`.

    `complete`: it was seen to have everything as it was at that event (0 for never).
    """

    counter: int
    heard: int
    complete: int = 0


def counter_of(seq: int, number: int = LAST) -> int:
    """The counter of a row that the event `seq` changed; without a number, one that none is above."""
    return seq * (LAST + 1) + number


def seq_of(counter: int) -> int:
    """The event that the counter is of."""
    return counter // (LAST + 1)


def seq_behind(counter: int) -> int:
    """The seq up to which no row is above the counter."""
    return max(0, (counter + 1) // (LAST + 1) - 1)


def is_amid(counter: int) -> bool:
    """Whether more rows of the same event may be above the counter."""
    return counter % (LAST + 1) != LAST


def numbered_back(rows: Iterable[Placed]) -> Iterator[Posted]:
    """The rows with their counters, but those for which an event has no number left. They are given from the last one back."""
    seq, number = 0, LAST
    for row in rows:
        number = number - 1 if row.seq == seq else LAST
        seq = row.seq
        if number >= 0:
            yield Posted(counter_of(seq, number), row.since, row.row)


def encode_frames(frames: Iterable[WatchFrame], whose: Whose, *, after: int | None) -> bytes:
    """The events of the frames for whoever has every row up to `after`; None for who has nothing yet."""
    cursor = None
    if after is not None:
        cursor = WatchCursor(
            bot_id=whose.bot_id,
            session_id=whose.thread_id,
            generation=whose.generation,
            after_updated_seq=after,
        )
    decoder = WatchDecoder(bot_id=whose.bot_id, session_id=whose.thread_id, cursor=cursor)
    return b"".join(encode_event(event) for frame in frames for event in decoder.decode(frame))


@dataclass(slots=True)
class Slice:
    """Frames, and the place of whoever has got them."""

    frames: Sequence[WatchFrame]
    whose: Whose
    before: int
    place: Place
    _data: bytes | None = field(default=None, repr=False)

    @property
    def data(self) -> bytes:
        """The frames as server-sent events, made once."""
        if self._data is None:
            self._data = encode_frames(self.frames, self.whose, after=self.before)
        return self._data


class _Frames:
    """Frames in the making: rows that follow each other are one."""

    def __init__(self, whose: Whose, *, replay: bool) -> None:
        self.size = 0
        self._whose = whose
        self._replay = replay
        self._done: list[WatchFrame] = []
        self._entries: list[Entry] = []
        self._deletes: list[Delete] = []

    def add_row(self, posted: Posted) -> None:
        counter, row = posted.counter, posted.row
        if isinstance(row, Gone):
            self._deletes.append(Delete(seq=row.seq, updated_seq=counter, entry_id=row.entry_id))
            self.size += _DELETE_BYTES
            return
        entry = Entry(seq=row.seq, updated_seq=counter, entry_kind=row.kind, entry_id=row.entry_id, body=row.body)
        self._entries.append(entry)
        self.size += len(row.body)

    def add_aside(self, aside: Aside) -> None:
        self._end_rows()
        self._done.append(aside.frame)

    def all(self) -> list[WatchFrame]:
        self._end_rows()
        return self._done

    def _end_rows(self) -> None:
        if self._entries or self._deletes:
            rows = Rows(
                agent_id=self._whose.bot_id,
                session_id=self._whose.thread_id,
                generation=self._whose.generation,
                replay=self._replay,
                entries=self._entries,
                deletes=self._deletes,
            )
            self._done.append(rows)
            self._entries, self._deletes = [], []


def cut(
    rows: Sequence[Posted],
    asides: Sequence[Numbered],
    *,
    whose: Whose,
    before: Place,
    end: Place,
    replay: bool,
) -> Slice:
    """The first of what somebody at `before` is missing, in the order of the log; with all of it they are at `end`.

    What is told beside an event comes before the rows that it changed. So whoever has one of those has been told.
    """
    frames = _Frames(whose, replay=replay)
    place, spoken = before, 0
    for posted in rows:
        while spoken < len(asides) and asides[spoken].aside.seq <= seq_of(posted.counter):
            frames.add_aside(asides[spoken].aside)
            place = place._replace(heard=asides[spoken].number)
            spoken += 1
        if frames.size >= SLICE_BYTES:
            return Slice(frames.all(), whose, before.counter, place)
        frames.add_row(posted)
        place = place._replace(counter=posted.counter)
    for each in asides[spoken:]:
        frames.add_aside(each.aside)
    return Slice(frames.all(), whose, before.counter, end)
