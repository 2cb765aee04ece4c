"""What became different between two snapshots of a thread, for those who pass messages on one by one."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from bubble.assembler.messages import BubbleMessage
from bubble.assembler.thread import ThreadSnapshot

__all__ = ["MessageChanges", "message_changes"]


@dataclass(frozen=True, slots=True)
class MessageChanges:
    """Messages that are new or other than before, in the order of the later snapshot, and the ids of those that are gone."""

    upserts: tuple[BubbleMessage, ...]
    removals: tuple[str, ...]


def message_changes(before: ThreadSnapshot | None, after: ThreadSnapshot) -> MessageChanges:
    """The changes from one snapshot of a thread assembler to a later one; None stands for nothing seen yet.

    Messages are compared by identity, which snapshots of one assembler keep where nothing changed, so this costs no more than looking at
    each message once.
    """
    if before is None:
        return MessageChanges(after.messages, ())
    start = _common_start(before, after)
    old = {message["id"]: message for message in islice(before.messages, start, None)}
    fresh = islice(after.messages, start, None)
    upserts = tuple(message for message in fresh if old.pop(message["id"], None) is not message)
    return MessageChanges(upserts, tuple(old))


def _common_start(before: ThreadSnapshot, after: ThreadSnapshot) -> int:
    for index, (old, new) in enumerate(zip(before.messages, after.messages, strict=False)):
        if old is not new:
            return index
    return min(len(before.messages), len(after.messages))
