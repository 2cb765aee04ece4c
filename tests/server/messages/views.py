"""Threads as they are shown, and what they must be shown as."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from bubble.assembler import BubbleMessage, Grouping, create_assembler
from bubble.hub import tail
from bubble.protocol.events import SequencedEvent
from bubble.server.messages import following, growing, paging, portion, reading, records, stream
from bubble.server.messages.portion import View
from bubble.server.messages.reading import ThreadLog
from bubble.store.base import BubbleStore

__all__ = ["THREAD", "a_view", "in_small", "whole"]

THREAD = "t"
ASSEMBLER = create_assembler()


def a_view(store: BubbleStore, grouping: Grouping = "speaker") -> View:
    """The thread `t` of the store."""
    return View(ThreadLog(store, THREAD), ASSEMBLER, grouping)


async def whole(view: View, head: int) -> list[BubbleMessage]:
    """What folding the whole thread up to `head` gives."""
    texts = await view.log.store.read(THREAD, from_seq=1, to_seq=head, limit=10**6, max_bytes=2**40)
    events = [SequencedEvent.from_stored(text) for text in texts]
    return list((await view.assembler.assemble(events, grouping=view.grouping)).messages)


@contextmanager
def in_small() -> Iterator[None]:
    """Everything that is bounded is bounded to so little that a short thread is long."""
    with (
        patch.multiple(tail, SLICE_BYTES=600),
        patch.multiple(paging, LOOK_BACK=3, LOOK_BEYOND=2, _LONGER=2),
        patch.multiple(growing, LONG_EVENTS=15, KEPT_MESSAGES=3),
        patch.multiple(portion, SLICE_EVENTS=3, SLICE_BYTES=2_000),
        patch.multiple(reading, READ_EVENTS=7, SEARCHED_EVENTS=5),
        patch.multiple(records, SLICE_BYTES=1_000),
        patch.multiple(following, FIRST_MESSAGES=2, SHORTEST_REST=0.0, LONGEST_REST=0.0),
        patch.multiple(stream, STRETCH_EVENTS=6, STRETCH_BYTES=4_000),
    ):
        yield
