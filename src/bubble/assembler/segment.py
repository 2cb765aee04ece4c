"""One message in the making: a reducer for its parts, and beside it what the log knows of it.

Besides the parts a segment remembers two seqs for each of them: of the event that made it, and of the last one that showed something in it.
With the lengths of its texts after each delta (`TextMarks`) that is enough to tell what came after any seq, which is what a window asks
for (spec 4, `window()`), without folding anything twice.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, cast

from bubble.assembler.messages import BubbleMessage, MessagePart, RoleOf
from bubble.assembler.reactions import Reaction, Reactions
from bubble.assembler.reducer import MessageReducer
from bubble.assembler.rendering import closed, render
from bubble.assembler.text_marks import TextMarks
from bubble.protocol.jsontext import JSONValue

if TYPE_CHECKING:
    from bubble.assembler.fields import Part
    from bubble.assembler.handlers import Grown
    from bubble.assembler.runs import Run

__all__ = ["Now", "Segment"]


class Now:
    """The event that is being projected, and what it does; shared by a projection and its segments."""

    __slots__ = ("changed", "created_at", "dirty", "seq")

    def __init__(self) -> None:
        self.seq = 0
        self.created_at = ""
        self.changed = False
        self.dirty: list[Segment] = []


class Segment:
    """A message of `author`, opened by the event that is being projected. `run` is None for one that belongs to no run."""

    __slots__ = (
        "_closed",
        "_is_dirty",
        "_marks",
        "_message",
        "_now",
        "_opened",
        "_reactions",
        "_role_of",
        "_shown",
        "author",
        "continuation",
        "created_at",
        "error",
        "first_seq",
        "id",
        "last_seq",
        "place",
        "producer_message_id",
        "reducer",
        "run",
        "shown_seq",
        "updated_at",
    )

    def __init__(self, now: Now, *, id: str, author: str, run: Run | None, continuation: int, role_of: RoleOf) -> None:
        self.id = id
        self.author = author
        self.run = run
        self.continuation = continuation
        self.place = -1  # among the messages, once it is one
        self.reducer = MessageReducer()
        self.first_seq = self.last_seq = now.seq
        self.created_at = self.updated_at = now.created_at
        self.shown_seq = 0  # of the last event that showed something here
        self.error: str | None = None
        self.producer_message_id: str | None = None
        self._now = now
        self._role_of = role_of
        self._opened = array("Q")  # by part: the event that made it
        self._shown = array("Q")  # by part: the last event that showed something in it
        self._marks: dict[int, TextMarks] = {}
        self._reactions: Reactions | None = None
        self._message: BubbleMessage | None = None
        self._closed: tuple[list[MessagePart], list[MessagePart]] | None = (
            None  # the parts, and how they show after the run
        )
        self._is_dirty = False

    def show(self, chunk: Part) -> None:
        """Applies a chunk that makes a part, or changes one for everybody to see. `ReducerError` where it cannot."""
        self.reducer.apply(chunk)
        self._show(self.reducer.changed_part)

    def extend(self, chunk: Part, delta: str) -> None:
        """Applies a delta of a text that is open here."""
        self.reducer.apply(chunk)
        index = self.reducer.changed_part
        marks = self._marks.get(index)
        if marks is None:
            marks = self._marks[index] = TextMarks()
        marks.add(self._now.seq, delta)
        self._show(index)

    def note(self, chunk: Part) -> None:
        """Applies a chunk that shows nothing new: metadata, the end of a block."""
        if self.reducer.apply(chunk):
            self.touch()

    def describe(self, chunk: Part) -> None:
        """Applies what is said about the message as a whole: `start`, `message-metadata`, `finish`, `start-step`."""
        kind = chunk["type"]
        if kind == "start-step":
            self.reducer.apply(chunk)
            self._date_part(self.reducer.changed_part)
            self.touch()
        elif kind == "start":
            self._start(chunk)
        else:
            self.note(chunk)

    def amend_tool(self, call_id: str, fields: dict[str, JSONValue]) -> None:
        """Replaces fields of the part that an outcome of the call finds."""
        self.reducer.amend_tool(call_id, **fields)
        self._show(self.reducer.changed_part)

    def grow(self, kind: str, part_id: str, data: Grown) -> None:
        """Shows in a data part that is here what `data` holds, which has just changed."""
        self.reducer.grow_data(kind, part_id, data)
        self._show(self.reducer.changed_part)

    def react(self, reaction: Reaction) -> None:
        """Adds a reaction, or takes it away."""
        if self._reactions is None:
            self._reactions = Reactions()
        if self._reactions.take(reaction):
            self.touch()

    def touch(self) -> None:
        """The event that is being projected changes the message."""
        now = self._now
        self.last_seq = now.seq
        self.updated_at = now.created_at
        now.changed = True
        if not self._is_dirty:
            self._is_dirty = True
            now.dirty.append(self)

    def _show(self, index: int) -> None:
        self._date_part(index)
        self.shown_seq = self._now.seq
        self.touch()

    def _date_part(self, index: int) -> None:
        if index == len(self._opened):
            self._opened.append(self._now.seq)
            self._shown.append(self._now.seq)
        else:
            self._shown[index] = self._now.seq

    def _start(self, chunk: Part) -> None:
        # In a bare reducer another messageId wipes the message. In a thread the log alone says what a message is.
        self.note({name: value for name, value in chunk.items() if name != "messageId"})
        message_id = chunk.get("messageId")
        if isinstance(message_id, str):
            self.producer_message_id = message_id
            self.touch()

    def fail(self, text: str, *, is_all: bool = False) -> None:
        """Keeps what went wrong. `is_all`: that is what the message was opened for."""
        self.error = text
        if is_all:
            self.shown_seq = self._now.seq
        self.touch()

    def message(self) -> BubbleMessage:
        """The message as it is now; the same object until something changes it."""
        if self._message is None or self._is_dirty:
            self._message = self._render(self._parts(), after=0)
            self._is_dirty = False
        return self._message

    def adopt(self, message: BubbleMessage) -> None:
        """Gives out `message`, which is equal to its own, so that whoever compares by identity sees no change."""
        self._message = message

    def since(self, seq: int) -> BubbleMessage:
        """The message with nothing in it but what events above `seq` showed."""
        if self.first_seq > seq and self._reactions is None:
            return self.message()
        parts = [
            self._rest(index, part, after=seq) if self._opened[index] <= seq else part
            for index, part in enumerate(self._parts())
            if self._shown[index] > seq
        ]
        return self._render(parts, after=seq)

    def _rest(self, index: int, part: MessagePart, *, after: int) -> MessagePart:
        marks = self._marks.get(index)
        if marks is None:
            return part  # a tool call or a data part is shown whole
        return {**part, "text": marks.rest(cast("str", part["text"]), after=after)}

    def _parts(self) -> list[MessagePart]:
        parts = cast("list[MessagePart]", self.reducer.parts())
        if self.run is None or not self.run.is_finished:
            return parts
        if self._closed is None or self._closed[0] is not parts:
            self._closed = (parts, [closed(part) for part in parts])
        return self._closed[1]

    def _render(self, parts: list[MessagePart], *, after: int) -> BubbleMessage:
        reactions = {} if self._reactions is None else self._reactions.shown(after=after)
        return render(self, parts=parts, reactions=reactions, role_of=self._role_of)
