"""Which rows the messages of a stretch of the log are, and in which order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from bubble.assembler import BubbleMessage
from bubble.server.messages.portion import first_seq, last_seq
from bubble.server.watching.clearing import Before
from bubble.server.watching.rows import Row, rows_of
from bubble.server.watching.session import BotSession
from bubble.server.watching.slices import Gone, Placed

__all__ = ["placed"]


def placed(
    messages: Iterable[BubbleMessage], session: BotSession, *, deleted: Mapping[str, int], before: Before
) -> Iterator[Placed]:
    """The rows of the messages in their order, and what was `deleted` among them, by id and seq.

    All messages that an event changed must be given together. Of one that was there when the session was last cleared only what came after
    is shown, and nothing where `before` does not have it. A row that is deleted never comes back.
    """
    by_seq: defaultdict[int, list[Row | Gone]] = defaultdict(list)
    for message in sorted(messages, key=lambda message: (last_seq(message), first_seq(message))):
        by_seq[last_seq(message)] += (
            row for row in _shown(message, session, before) if row.entry_id not in session.deleted
        )
    for entry_id, seq in deleted.items():
        by_seq[seq].append(Gone(entry_id, seq))
    for seq in sorted(by_seq):
        for row in by_seq[seq]:
            yield Placed(seq, seq, row)


def _shown(message: BubbleMessage, session: BotSession, before: Before) -> list[Row]:
    if first_seq(message) > session.cleared_seq:
        return rows_of(message, session.bot_id)
    there = before.get(message["id"])
    return [] if there is None else rows_of(message, session.bot_id, before=there)
