"""What is shown of one bot's session at one moment, ready to be sent to any number of watchers.

*Theory of operation.* Nothing is queued for a watcher. What it has is its place: the counter of its last row, and how many asides it has
heard. What it still needs are the rows with a higher counter, as they are now, whatever they were in between, and the asides after those;
the board keeps both in that order. All rows of a message move on when it changes, as they do on every other board. But whoever had
everything at some event is not sent again what has shown the same since then: so a long message with many tool calls is not sent again for
each word that is added to it. The same bytes serve everybody at the same place.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Final

from bubble.assembler import BubbleMessage
from bubble.server.watching.clearing import Before
from bubble.server.watching.posting import placed
from bubble.server.watching.rows import Row
from bubble.server.watching.session import Aside, BotSession
from bubble.server.watching.slices import (
    Gone,
    Numbered,
    Place,
    Placed,
    Posted,
    Slice,
    Whose,
    counter_of,
    cut,
    numbered_back,
    seq_of,
)
from bubble.watch.frames import AgentState, BoxState, WatchFrame

__all__ = ["BotBoard"]

_MEMOS: Final = 8
#: So many asides are kept for those who come back or do not read.
KEPT_ASIDES: Final = 1_000


class BotBoard:
    """The session as of the event `head`. Whoever is at `covers` or beyond can be served from it.

    `before`: what was there of the messages when the session was last cleared. Asides are kept of what was told after the event
    `tells_from`. `after` is the board that this one takes the place of.
    """

    def __init__(
        self,
        session: BotSession,
        messages: Iterable[BubbleMessage],
        *,
        head: int,
        covers: int,
        before: Before,
        asides: Iterable[Aside] = (),
        tells_from: int,
        after: BotBoard | None = None,
    ) -> None:
        self.session = session
        self.head = head
        self.covers = covers
        self.tells_from = tells_from
        # The number of the last aside, and of the last that is not kept any more. What the board before this one numbered is forgotten.
        self.forgotten: int = 0 if after is None else after.heard + 1
        self.heard: int = self.forgotten
        self._rows: dict[str, Placed] = {}  # by id, in the order of their counters
        self._asides: deque[Numbered] = deque()
        self._slices: dict[tuple[Place, int | None], Slice | None] = {}
        self._post(messages, {entry_id: seq for entry_id, seq in session.deleted.items() if seq > covers}, before)
        self.tell(asides)

    @property
    def whose(self) -> Whose:
        """The bot, the thread and the generation."""
        return Whose(self.session.bot_id, self.session.thread_id, self.session.generation)

    @property
    def begins_after(self) -> int:
        """The counter before the first row of the present generation."""
        return 0 if self.session.cleared_seq == 0 else counter_of(self.session.cleared_seq - 1)

    def states(self) -> list[WatchFrame]:
        """What is going on, for who has just come."""
        box = self.session.box
        live = self.session.live()
        return [live] if box is None else [live, BoxState(snapshot=True, state=box.state, pins=box.pins)]

    def show(self, texts: Sequence[bytes], messages: Iterable[BubbleMessage], *, head: int, before: Before) -> None:
        """Shows what the next events, up to `head`, said and which messages they changed. `before`: as of the last clear among them."""
        generation, deleted = self.session.generation, dict(self.session.deleted)
        asides = self.session.read(texts)
        if self.session.generation != generation:
            self._rows.clear()
            deleted.clear()
        fresh = {entry_id: seq for entry_id, seq in self.session.deleted.items() if deleted.get(entry_id) != seq}
        self._post(messages, fresh, before)
        self.head = head
        self.tell(asides)

    def tell(self, asides: Iterable[Aside]) -> None:
        """Tells of something beside the transcript."""
        for aside in asides:
            if isinstance(aside.frame, AgentState):  # says everything that an earlier one said
                self._asides = deque(each for each in self._asides if not isinstance(each.aside.frame, AgentState))
            self.heard += 1
            self._asides.append(Numbered(self.heard, aside))
        while len(self._asides) > KEPT_ASIDES:
            self.forgotten, (self.tells_from, _) = self._asides.popleft()
        self._slices.clear()

    def heard_by(self, counter: int) -> int:
        """The number of the last aside that somebody has heard who has a row with this counter."""
        seq = seq_of(counter)
        return max((each.number for each in self._asides if each.aside.seq <= seq), default=self.forgotten)

    def unheard(self, heard: int, *, before: int) -> list[Numbered]:
        """The asides after the number `heard` that are from before the event `before`."""
        return [each for each in self._asides if each.number > heard and each.aside.seq < before]

    def after(self, place: Place, *, replay_to: int | None = None) -> Slice | None:
        """The next of what somebody at a place is missing; None if nothing is. The place must be covered.

        `replay_to`: only what was there at that seq, as a replay.
        """
        key = (place, replay_to)
        if key not in self._slices:
            if len(self._slices) >= _MEMOS:
                self._slices.clear()
            self._slices[key] = self._cut(place, replay_to)
        return self._slices[key]

    def _cut(self, place: Place, replay_to: int | None) -> Slice | None:
        head = self.head if replay_to is None else min(replay_to, self.head)
        rows = [each for each in self._missing(place) if each.counter <= counter_of(head)]
        asides = [each for each in self._asides if each.number > place.heard and each.aside.seq <= head]
        if not (rows or asides):
            return None
        heard = asides[-1].number if asides else place.heard
        # What changed after `head` may be as it was before, which is not told here.
        complete = head if head == self.head else place.complete
        end = Place(max(place.counter, counter_of(head)), heard, complete)
        return cut(rows, asides, whose=self.whose, before=place, end=end, replay=replay_to is not None)

    def _missing(self, place: Place) -> list[Posted]:
        rows = takewhile(lambda each: each.counter > place.counter, numbered_back(reversed(self._rows.values())))
        return [each for each in rows if each.since > place.complete][::-1]

    def _post(self, messages: Iterable[BubbleMessage], deleted: dict[str, int], before: Before) -> None:
        for each in placed(messages, self.session, deleted=deleted, before=before):
            known = self._rows.pop(each.row.entry_id, None)
            is_the_same = known is not None and _show_the_same(known.row, each.row)
            self._rows[each.row.entry_id] = each._replace(since=known.since) if known and is_the_same else each
        self._slices.clear()

    def forget(self, covers: int) -> None:
        """Lets go of rows that nobody can be served who is before `covers`."""
        self.covers = covers
        for entry_id, each in list(self._rows.items()):
            if each.seq > covers:
                break
            del self._rows[entry_id]


def _show_the_same(one: Row | Gone, other: Row | Gone) -> bool:
    return isinstance(one, Row) and isinstance(other, Row) and one.shows_the_same(other)
