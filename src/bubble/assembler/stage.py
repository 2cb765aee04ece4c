"""The messages of a thread in the order in which they were opened, and who has the floor.

What a voice says goes into the segment where it has the floor; if it has none, a segment is opened. How it all fits together is told
in `projection`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final, cast

from bubble.assembler.equality import equal
from bubble.assembler.failure import ReducerError
from bubble.assembler.fields import Part
from bubble.assembler.messages import BubbleMessage, Grouping, RoleOf
from bubble.assembler.reactions import Anchor, Places
from bubble.assembler.reducer import MessageReducer
from bubble.assembler.runs import Run, Voice
from bubble.assembler.segment import Now, Segment

__all__ = ["Stage"]

_NOT_BUILT: Final = cast("BubbleMessage", None)  # holds a place until somebody looks


class Stage:
    """Where the runs of one thread are said."""

    def __init__(self, *, grouping: Grouping, role_of: RoleOf) -> None:
        self.now = Now()
        self.places = Places()
        self.is_by_run = grouping == "run"
        self.last: Segment | None = None
        self._role_of = role_of
        self._runs: dict[str, Run] = {}
        self._segments: list[Segment] = []
        self._messages: list[BubbleMessage] = []

    def run(self, run_id: str) -> Run:
        """The run of that id, known from now on."""
        run = self._runs.get(run_id)
        if run is None:
            run = self._runs[run_id] = Run(run_id)
        return run

    def speak(self, voice: Voice, chunk: Part) -> Segment:
        """Applies a chunk that makes a visible part, where the voice has the floor. `ReducerError` leaves everything as it was."""
        segment = voice.segment
        if segment is None or not (self.is_by_run or segment is self.last):
            if voice.pending:  # much may wait: a chunk that opens nothing must not pay for it, each time anew
                MessageReducer().apply(chunk)
            return self._open(voice, lambda opened: opened.show(chunk))
        segment.show(chunk)
        return segment

    def fail(self, voice: Voice, text: str) -> Segment:
        """Says that something went wrong: on what the voice said last, or else in a message that has nothing else to show."""
        if voice.segment is None:
            return self._open(voice, lambda opened: opened.fail(text, is_all=True))
        voice.segment.fail(text)
        return voice.segment

    def announce(self, author: str, chunk: Part) -> Segment:
        """Opens a message that belongs to no run."""
        segment = self._segment(f"~{self.now.seq}", author, run=None, continuation=0)
        segment.show(chunk)
        self._append(segment)
        return segment

    def state(self, run: Run, author: str, fact: Part, anchor: Anchor) -> None:
        """Says a fact about a run: as its author, or on the owner's message, as soon as it is known whose that is."""
        speaker = run.starter if self.is_by_run else author
        if speaker is None:
            run.owed.append((fact, anchor))
        else:
            anchor.settle(self.speak(run.voice(speaker), fact))

    def pay(self, run: Run) -> None:
        """Says the facts that waited for the run's owner."""
        owed, run.owed = run.owed, []
        for fact, anchor in owed:
            self.state(run, "", fact, anchor)

    def messages(self) -> list[BubbleMessage]:
        """The messages; those that did not change since the last call are the same objects. The list is the caller's to read."""
        dirty = self.now.dirty
        for segment in dirty:
            if segment.place >= 0:
                self._messages[segment.place] = segment.message()
        dirty.clear()
        return self._messages

    def messages_since(self, seq: int) -> list[BubbleMessage]:
        """The messages in which events above `seq` showed something, with that and nothing else in them."""
        return [segment.since(seq) for segment in self._segments if segment.shown_seq > seq]

    def adopt(self, known: Mapping[str, BubbleMessage]) -> None:
        """Gives out those of the `known` messages, by id, that are equal to the ones here."""
        for segment, message in zip(self._segments, self.messages(), strict=True):
            other = known.get(segment.id)
            if other is not None and equal(other, message):
                segment.adopt(other)
                self._messages[segment.place] = other

    def _open(self, voice: Voice, begin: Callable[[Segment], None]) -> Segment:
        run, had_changed = voice.run, self.now.changed
        number = len(run.segments)
        segment_id = f"{run.id}~{number}" if number else run.id
        segment = self._segment(segment_id, voice.author, run=run, continuation=number)
        try:
            for described in voice.pending:
                _describe_if_possible(segment, described)
            begin(segment)
        except ReducerError:
            self.now.changed = had_changed
            raise
        voice.pending.clear()
        voice.segment = segment
        run.segments.append(segment)
        self._append(segment)
        voice.anchor.settle(segment)
        run.anchor.settle(segment)
        return segment

    def _segment(self, id: str, author: str, *, run: Run | None, continuation: int) -> Segment:
        return Segment(self.now, id=id, author=author, run=run, continuation=continuation, role_of=self._role_of)

    def _append(self, segment: Segment) -> None:
        segment.place = len(self._segments)
        self._segments.append(segment)
        self._messages.append(_NOT_BUILT)
        self.last = segment


def _describe_if_possible(segment: Segment, chunk: Part) -> None:
    with suppress(ReducerError):  # what was said too early is as good as what is said in time: what is bad costs itself
        segment.describe(chunk)
