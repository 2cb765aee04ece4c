"""One watcher's way through a session: from wherever it begins to where the board is, and on with it.

It has a place, and nothing else. Where the board does not reach back to that place, it takes stretches of the log until it does. What was
told beside the transcript is in those as well, but for how things stand and how the bot is listed: that is told when the board is reached,
if it has changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bubble.protocol.resources import Principal
from bubble.server.watching.board import BotBoard
from bubble.server.watching.following import BotFollowing
from bubble.server.watching.slices import Place, Slice, Whose, counter_of, encode_frames, is_amid, seq_behind, seq_of
from bubble.server.watching.stretches import STRETCH_EVENTS, From, Stretch
from bubble.watch import WatchCursor
from bubble.watch.frames import Cleared, CursorTooOld, WatchFrame

__all__ = ["Own", "Viewer"]


class Own(NamedTuple):
    """Frames for one watcher alone; `after` is what it has of the transcript, None for nothing."""

    frames: Sequence[WatchFrame]
    whose: Whose
    after: int | None

    @property
    def data(self) -> bytes:
        """The frames as server-sent events."""
        return encode_frames(self.frames, self.whose, after=self.after)


class Viewer:
    """Goes on from `cursor`, or begins at the beginning. `through` is the head at that moment: what is up to there is a replay."""

    def __init__(self, following: BotFollowing, *, cursor: WatchCursor | None, through: int, now_ms: int) -> None:
        self.is_over = False
        self._following = following
        self._cursor = cursor
        self._through = through
        self._now_ms = now_ms
        self._generation: int | None = None
        self._counter = 0
        self._complete = 0  # the event at which it had everything for certain
        self._heard: int | None = None  # None: what it has not heard is in the log
        self._states: Sequence[WatchFrame] | None = (
            None  # how things stood when it was told last, if nothing that the board told came after
        )
        self._bot: Principal | None = None  # as it was listed then, or when it was looked last
        self._stretch: Stretch | None = None
        self._next_slice = 0
        self._events = STRETCH_EVENTS

    async def take(self, *, released: int) -> Slice | Own | None:
        """What comes next, of what may be seen up to the seq `released`; None if there is nothing now. Raises what ended the following."""
        following = self._following
        if following.error is not None:
            raise following.error
        board = following.board
        if board is None or board.head > released or self.is_over:
            return None
        if self._generation is None:
            return self._begin(board) if board.head >= self._through else None
        if self._generation != board.session.generation:
            return self._begin_anew(board)
        if self._heard is not None and self._heard < board.forgotten:
            self._heard = self._states = None
        if not self._is_reached(board):
            taken = await self._take_from_log(board, released)
        elif self._heard is None and (states := self._hear(board)):
            return Own(states, board.whose, None)
        else:
            taken = self._take_from(board)
        if taken is not None:
            self._counter = taken.place.counter
            if (
                taken.place.complete >= self._through
            ):  # wherever its cursor is from, that has not told of anything later
                self._complete = taken.place.complete
        return taken

    def _begin(self, board: BotBoard) -> Own:
        cursor, generation = self._cursor, board.session.generation
        whose = board.whose
        self._states, self._bot = board.states(), board.session.bot
        if cursor is None:
            self._generation, self._counter = generation, board.begins_after
            self._heard = board.heard_by(counter_of(self._through))
            return Own(self._states, whose, None)
        self._generation = cursor.generation
        if cursor.generation == generation:
            if seq_of(cursor.after_updated_seq) > self._through:
                self.is_over = True
                stale = CursorTooOld(agent_id=whose.bot_id, session_id=whose.thread_id, generation=generation)
                return Own([stale], whose, cursor.after_updated_seq)
            self._counter = max(cursor.after_updated_seq, board.begins_after)
        return Own([*self._states, board.session.listed(at_ms=self._now_ms)], whose, None)

    def _begin_anew(self, board: BotBoard) -> Own:
        whose = board.whose
        self._generation, self._counter, self._complete = whose.generation, board.begins_after, 0
        self._stretch = None
        told = [] if self._heard is None else board.unheard(self._heard, before=board.session.cleared_seq)
        if told:
            self._heard = told[-1].number
        cleared = Cleared(agent_id=whose.bot_id, session_id=whose.thread_id, new_generation=whose.generation)
        return Own([*(each.aside.frame for each in told), cleared], whose, None)

    def _is_reached(self, board: BotBoard) -> bool:
        """Whether the board has everything that is missing here."""
        if self._stretch is not None or seq_behind(self._counter) < board.covers:
            return False
        return self._heard is not None or seq_of(self._counter) >= board.tells_from

    def _hear(self, board: BotBoard) -> Sequence[WatchFrame]:
        """Listens to the board from now on; how things stand and how the bot is listed, as far as that has changed."""
        self._heard = board.heard_by(self._counter)
        states, bot = self._states, self._bot
        self._states, self._bot = board.states(), board.session.bot
        changed = [] if self._states == states else [*self._states]
        return changed if self._bot == bot else [*changed, board.session.listed(at_ms=self._now_ms)]

    def _take_from(self, board: BotBoard) -> Slice | None:
        taken: Slice | None = None
        if self._is_replay:
            taken = board.after(self._place, replay_to=self._through)
            if taken is None and board.head >= self._through:
                self._counter = counter_of(self._through)
        if taken is None and not self._is_replay:
            taken = board.after(self._place)
        if taken is not None:
            self._heard = taken.place.heard
        return taken

    @property
    def _place(self) -> Place:
        return Place(self._counter, self._heard or 0, self._complete)

    @property
    def _is_replay(self) -> bool:
        return seq_behind(self._counter) < self._through

    async def _take_from_log(self, board: BotBoard, released: int) -> Slice | None:
        if self._stretch is None:
            # What is deleted or cleared beyond the board is not known yet.
            last = min(board.head, self._through if self._is_replay else released)
            told = self._heard is None
            now = board.head if is_amid(self._counter) else 0
            begin = From(self._counter, last, self._events, told=told, replay=self._is_replay, now=now)
            self._stretch = await self._following.stretches.find(begin, board.session)
            self._next_slice = 0
        stretch = self._stretch
        if stretch is None:
            return None
        taken = stretch.slice(self._next_slice)
        self._next_slice += 1
        if taken is None or taken.place.counter == stretch.end:
            self._events = max(STRETCH_EVENTS, stretch.size)
            self._stretch = None
        return taken
