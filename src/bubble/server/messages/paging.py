"""One page of a thread's messages, exactly as the whole thread would show them, out of the events that it takes.

*Theory of operation.* The page is looked for backwards from its end: a portion of the log is folded, and if it holds too few messages, a
longer one. Where the page does not end at the head, what came later may have changed its messages. Up to the end of the portion, which
reaches until another message opened beyond the page, everything is folded. From there on nobody speaks in the page's messages any more,
and only the rest of their runs and reactions can change them; all else is passed over.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from bubble.assembler import BubbleMessage
from bubble.server.messages.encoding import message_json
from bubble.server.messages.forms import Form
from bubble.server.messages.glances import Glance, glance
from bubble.server.messages.portion import Portion, View, first_seq, last_seq, run_of
from bubble.server.messages.reading import ThreadLog, Turns

__all__ = ["Look", "Page", "fitting", "left_of", "newest", "read_lone", "read_page", "read_run", "write_page"]

#: How far back and how far beyond the page the first look goes, in events.
LOOK_BACK: Final = 128
LOOK_BEYOND: Final = 32
#: A further look is at most so many times as long as the one before,
_LONGER: Final = 64
#: and takes no more bytes than this, as far as the one before can tell, unless it is only twice as long.
LOOK_BYTES: Final = 16 * 1024 * 1024
#: A page ends with the message that would bring it beyond so many bytes, if that is not its only one.
PAGE_BYTES: Final = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Page:
    """Messages in ascending order; `next_before` is where the page before ends, None if there is none."""

    messages: Sequence[BubbleMessage]
    next_before: int | None


async def read_page(view: View, *, before: int, limit: int, head: int) -> Page:
    """The newest `limit` messages that opened before the seq `before`, as they are at `head`; fewer where these are `PAGE_BYTES` already.

    Messages that one event opened are never parted, so there may be a few more. Raises what the store raises.
    """
    end = min(before, head + 1)
    look = Look(view, end=end, head=head)
    portion, found = await look.find(limit)
    page = fitting(newest(found, limit))
    if not page:
        return Page([], None)
    run_ids = {run_id for message in page if (run_id := run_of(message)) is not None}
    await _bring_up_to_date(portion, view.log, run_ids, after=look.last, head=head)
    ids = {message["id"] for message in page}
    shown = (await portion.snapshot()).messages
    messages = [message for message in shown if message["id"] in ids]
    oldest = first_seq(messages[0])
    has_more = first_seq(shown[0]) < oldest or await _opens_before(view, oldest, until=portion.first - 1)
    return Page(messages, oldest if has_more else None)


async def write_page(page: Page, form: Form, turns: Turns) -> tuple[list[bytes], int | None]:
    """The messages of the page in this form, in order, and where the page before ends.

    Where they are more than `PAGE_BYTES`, only the last that are not; then the others are on the page before.
    """
    texts: list[bytes] = []
    size, last = 0, 0
    for message in reversed(page.messages):
        text = form.encode(message)
        size += len(text)
        if size > PAGE_BYTES and texts and first_seq(message) != last:
            return texts[::-1], last
        texts.append(text)
        last = first_seq(message)
        await turns.next()
    return texts[::-1], page.next_before


async def read_run(view: View, run_id: str, *, head: int) -> list[BubbleMessage]:
    """All messages of one run, as they are at `head`; none for a run that the store does not know."""
    run = (await view.log.runs([run_id])).get(run_id)
    if run is None:
        return []
    last = min(run.last_seq, head)
    portion = await Portion.fold(view, first=last + 1, last=last, runs=[run_id])
    await _bring_up_to_date(portion, view.log, [run_id], after=last, head=head)
    return [message for message in (await portion.snapshot()).messages if run_of(message) == run_id]


async def read_lone(view: View, seq: int, *, head: int) -> list[BubbleMessage]:
    """The message that the event `seq`, which belongs to no run, opened, as it is at `head`."""
    portion = await Portion.fold(view, first=seq, last=seq)
    await _bring_up_to_date(portion, view.log, (), after=seq, head=head)
    return list((await portion.snapshot()).messages)


async def left_of(view: View, text: bytes, *, head: int) -> list[BubbleMessage]:
    """The messages that the event changed which the text says, and no later one up to `head`; in their order."""
    seen = glance(text)
    owner, seq = seen.run_id, seen.seq
    if seen.target is not None and 0 < seen.target < seq:
        [target] = await view.log.texts(seen.target, seen.target)
        owner, seq = glance(target).run_id, seen.target
    messages = await (read_lone(view, seq, head=head) if owner is None else read_run(view, owner, head=head))
    return [message for message in messages if last_seq(message) == seen.seq]


@dataclass(slots=True)
class Look:
    """How much of a thread is looked at for a page that ends before `end`; it grows until `find` has what it takes."""

    view: View
    end: int
    head: int
    first: int = 0
    last: int = 0

    def __post_init__(self) -> None:
        self.first = max(1, self.end - LOOK_BACK)
        self.last = min(self.head, self.end - 1 + LOOK_BEYOND)

    async def find(self, limit: int) -> tuple[Portion, list[BubbleMessage]]:
        """A portion with the newest `limit` messages before `end` (or all), and those that it holds, in order."""
        while True:
            portion = await Portion.fold(self.view, first=self.first, last=self.last)
            shown = (await portion.snapshot()).messages
            found = [message for message in shown if portion.first <= first_seq(message) < self.end]
            is_long = portion.first == 1 or len(found) >= limit or len(fitting(found)) < len(found)
            # Nobody speaks any more in a message that was not the last one.
            is_sealed = self.last == self.head or (bool(shown) and first_seq(shown[-1]) >= self.end)
            if is_long and is_sealed:
                return portion, found
            if not is_long:
                self._go_back(portion, found=len(found), wanted=limit)
            if not is_sealed:
                self._go_beyond()

    def _go_back(self, portion: Portion, *, found: int, wanted: int) -> None:
        # As far as the others should be, if they lie as close together.
        length = self.end - portion.first
        missing = -(-(wanted - found + 1) * length // max(found, 1))
        affordable = length * LOOK_BYTES // portion.bytes
        self.first = max(1, portion.first - min(max(missing, length), max(affordable, length), _LONGER * length))

    def _go_beyond(self) -> None:
        self.last = min(self.head, self.last + (self.last - self.end + 1) * _LONGER)


def newest(messages: Sequence[BubbleMessage], limit: int) -> Sequence[BubbleMessage]:
    """The last `limit`, and those that the same event opened as the first of them."""
    start = max(0, len(messages) - limit)
    while start and first_seq(messages[start - 1]) == first_seq(messages[start]):
        start -= 1
    return messages[start:]


def fitting(messages: Sequence[BubbleMessage]) -> Sequence[BubbleMessage]:
    """The last messages that are no more than `PAGE_BYTES` together, or at least those that the same event opened."""
    size = 0
    for count, message in enumerate(reversed(messages)):
        size += len(message_json(message))
        if size > PAGE_BYTES:
            return newest(messages, max(count, 1))
    return messages


async def _bring_up_to_date(
    portion: Portion, log: ThreadLog, run_ids: Collection[str], *, after: int, head: int
) -> None:
    """Folds what came after and may change messages of the runs, or messages without a run."""
    if after == head:
        return
    known = await log.runs(run_ids)
    ends = [known[run_id].last_seq if run_id in known else head for run_id in run_ids]
    until = min(head, max([after, *ends]))
    targets = range(portion.begin, until + 1)
    async for texts in log.slices(after + 1, until):
        await portion.add([text for text in texts if _is_for(run_ids, targets, glance(text))])
    async for texts in log.natives(until + 1, head):
        await portion.add([text for text in texts if _is_for((), targets, glance(text))])


def _is_for(run_ids: Collection[str], targets: range, seen: Glance) -> bool:
    return (seen.target is not None and seen.target in targets) or seen.run_id in run_ids


async def _opens_before(view: View, oldest: int, *, until: int) -> bool:
    """Whether an event up to `until` opened a message before the seq `oldest`."""
    last, until = 0, min(until, oldest - 1)
    while last < until:
        # A thread as a rule begins with a message, so the first look almost always tells.
        last = min(until, max(LOOK_BEYOND, last * 2))
        if (await (await Portion.fold(view, first=1, last=last)).snapshot()).messages:
            return True
    return False
