"""What is shown of one thread at one moment, ready to be sent to any number of viewers.

*Theory of operation.* Nothing is queued for a viewer. What it has is one seq, its position: every change up to there. What it still needs
are the messages that changed after it, as they are now, whatever they were in between; and since a message tells the seq of its last
change, the board only has to keep them in that order. The same bytes serve everybody who has the same position.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from bubble.assembler import BubbleMessage, MessageChanges
from bubble.server.messages.forms import Form, Format
from bubble.server.messages.growing import Growing
from bubble.server.messages.paging import fitting, newest
from bubble.server.messages.portion import first_seq, last_seq
from bubble.server.messages.records import Change, Paged, Slice, cut_slice

__all__ = ["Board"]

_MEMOS: Final = 8


class Board:
    """The newest messages of a thread as of the event `head`. Whoever is at `covers` or beyond can be served from it."""

    def __init__(self, growing: Growing) -> None:
        self.head = growing.head
        self.covers = growing.covers
        self._messages: Sequence[BubbleMessage] = ()
        self._first = 0
        self._changes: dict[str, Change] = {}  # by id, in the order of their seqs
        self._forms: dict[Format, Form] = {}
        self._slices: dict[tuple[Format, int], Slice | None] = {}  # by position, for the present head
        self._pages: dict[tuple[Format, int], Paged] = {}  # by limit, for the present head
        self._post(growing.messages)
        self._refer_to(growing)

    def show(self, growing: Growing, changes: MessageChanges) -> None:
        """Shows what it has grown to."""
        self._post(changes.upserts)
        for gone in changes.removals:
            self._changes.pop(gone, None)
            self._changes[gone] = (growing.head, gone)
        self.head = growing.head
        self._refer_to(growing)

    def forget(self, growing: Growing) -> None:
        """Lets go of the messages that it does not hold any more. Whoever has not got those is not covered from now on."""
        kept = {message["id"] for message in growing.messages}
        gone = [id for id in self._changes if id not in kept]
        self.covers = max([self.covers, *(self._changes.pop(id)[0] for id in gone)])
        self._refer_to(growing)

    def form(self, format: Format) -> Form:
        """The form that all share who are sent this format."""
        return self._forms.setdefault(format, Form(format))

    def page(self, limit: int, format: Format = "json") -> Paged | None:
        """The newest `limit` messages, or all, or as many as fit on a page; None if they are not all here."""
        if (format, limit) not in self._pages:
            whole = [message for message in self._messages if first_seq(message) >= self._first]
            page = fitting(newest(whole, limit))
            if len(page) == len(whole) < limit and self._first > 1:
                return None
            self._pages[format, limit] = Paged(page, head=self.head, form=self.form(format))
        return self._pages[format, limit]

    def after(self, position: int, format: Format = "json") -> Slice | None:
        """The next of what changed after `position`; None if nothing did. The position must be covered."""
        if (format, position) not in self._slices:
            if len(self._slices) >= _MEMOS:
                self._slices.clear()
            self._slices[format, position] = self._cut(position, self.form(format))
        return self._slices[format, position]

    def messages_after(self, position: int) -> list[BubbleMessage]:
        """The messages that changed after `position`, in the order in which they did. The position must be covered."""
        return [what for _, what in self._missing(position) if not isinstance(what, str)]

    def _cut(self, position: int, form: Form) -> Slice | None:
        missing = self._missing(position)
        return cut_slice(missing, head=self.head, form=form) if missing else None

    def _missing(self, position: int) -> list[Change]:
        missing: list[Change] = []
        for change in reversed(self._changes.values()):
            if change[0] <= position:
                break
            missing.append(change)
        return missing[::-1]

    def _post(self, messages: Iterable[BubbleMessage]) -> None:
        for message in sorted(messages, key=last_seq):
            self._changes.pop(message["id"], None)
            self._changes[message["id"]] = (last_seq(message), message)

    def _refer_to(self, growing: Growing) -> None:
        self._messages = growing.messages
        self._first = growing.first
        self._slices.clear()
        self._pages.clear()
