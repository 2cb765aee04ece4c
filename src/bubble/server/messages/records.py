"""Messages as server-sent events, in slices that a viewer is sent one at a time.

A slice of changes ends where whoever has got it has every change up to some seq, its `position`. So its last event can carry an id, the
seq of the last change in it (protocol, section 6), and a client that resumes from there misses nothing. A page gets its id with its last
message.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from bubble.assembler import BubbleMessage
from bubble.protocol.jsontext import dump_json
from bubble.server.messages.forms import Form
from bubble.server.messages.portion import first_seq

__all__ = ["Change", "Paged", "Slice", "cut_slice"]

#: How much a viewer is sent at a time, if it is not one message that is larger.
SLICE_BYTES: Final = 128 * 1024

#: The seq of a message's last change, and the message; or the id of one that is gone.
Change: TypeAlias = tuple[int, "BubbleMessage | str"]


@dataclass(frozen=True, slots=True)
class Slice:
    """Server-sent events, and the position of whoever has got them."""

    data: bytes
    position: int


def cut_slice(changes: Sequence[Change], *, head: int, form: Form) -> Slice:
    """The first of the changes, which are in the order of their seqs and not empty. Within the slice the messages are in their own order.

    All changes of one seq are in one slice. After the last one the position is `head`.
    """
    records: list[tuple[int, bytes]] = []
    size, last = 0, 0
    for seq, what in changes:
        if seq != last and size > SLICE_BYTES:
            break
        last = seq
        record = _record(what, form)
        size += form.weight * len(record)
        records.append((seq if isinstance(what, str) else first_seq(what), record))
    texts = [record for _, record in sorted(records, key=lambda one: one[0])]
    return Slice(_joined(texts, id=last), head if len(records) == len(changes) else last)


class Paged:
    """A page of messages in their order, as they are at `head`; the slices are made as they are asked for, and once for everybody."""

    def __init__(self, messages: Sequence[BubbleMessage], *, head: int, form: Form) -> None:
        self.head = head
        self._form = form
        self._messages = messages
        self._sliced = 0
        self._slices: list[bytes] = []

    def slice(self, number: int) -> bytes | None:
        """The slices from 0 on, each when the one before was asked for; None after the last."""
        if number == len(self._slices) and self._sliced < len(self._messages):
            self._slices.append(self._next())
        return self._slices[number] if number < len(self._slices) else None

    def _next(self) -> bytes:
        records: list[bytes] = []
        size = 0
        while self._sliced < len(self._messages) and size <= SLICE_BYTES:
            records.append(_record(self._messages[self._sliced], self._form))
            size += self._form.weight * len(records[-1])
            self._sliced += 1
        return b"".join(records) if self._sliced < len(self._messages) else _joined(records, id=self.head)


def _record(what: BubbleMessage | str, form: Form) -> bytes:
    if isinstance(what, str):
        return b"event: message.removed\ndata: %b\n\n" % dump_json({"id": what})
    return b"event: message\ndata: %b\n\n" % form.encode(what)


def _joined(records: Sequence[bytes], *, id: int) -> bytes:
    *others, last = records
    name, _, rest = last.partition(b"\n")
    return b"".join([*others, name, b"\nid: %d\n" % id, rest])
