"""The ways to follow a thread: told as a conversation, as JSON lines of messages, or as the log itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bubble.cli.conversation import Conversation, Screen
from bubble.cli.eventlines import event_line
from bubble.cli.output import say, stdout_console, write_json, write_raw
from bubble.cli.remote import connected, outage_in_words, tell_outage
from bubble.server.messages.encoding import message_json

if TYPE_CHECKING:
    from bubble.assembler import BubbleMessage, Grouping
    from bubble.client import BubbleConnection, MessagesSubscription, MessagesUpdate
    from bubble.protocol.errors import BubbleError
    from bubble.protocol.events import SequencedEvent

__all__ = ["Span", "follow_events", "follow_json", "follow_messages"]

# Between two updates, in seconds. What comes meanwhile is in the next one: a long message is not told anew for each of its tokens.
_FRAME: Final = 0.06


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Where to begin: with the seq `from_seq`, or else `last` messages (or events) before the end; `stays`: whether to wait for more."""

    from_seq: int | None
    last: int
    stays: bool


# --- messages -----------------------------------------------------------------------------------------------------------------------


async def follow_messages(profile: str | None, thread_id: str, span: Span, *, grouping: Grouping) -> None:
    """Tells the thread on standard output, in words."""
    with Screen(stdout_console()) as screen:

        def tell(problem: BubbleError | None) -> None:
            screen.aside(outage_in_words(problem))

        async with connected(profile, on_outage=tell) as bubble:
            await _tell(bubble, thread_id, span, screen, grouping=grouping)


async def _tell(bubble: BubbleConnection, thread_id: str, span: Span, screen: Screen, *, grouping: Grouping) -> None:
    conversation = Conversation(grouping=grouping)
    try:
        async with _updates(bubble, thread_id, span, grouping) as (first, updates):
            before, shown = _divided(first.messages, span)
            conversation.pass_over(before)
            screen.show(conversation.take(shown), conversation.growing(room=screen.room))
            async for update in updates:
                screen.show(conversation.take(update.upserts), conversation.growing(room=screen.room))
    except BrokenPipeError:
        raise
    except BaseException:
        screen.end(conversation.rest())
        raise
    screen.end(conversation.rest())


async def follow_json(profile: str | None, thread_id: str, span: Span, *, grouping: Grouping) -> None:
    """Writes each state of each message as one line: `{"type":"message","message":…}` or `{"type":"message.removed","id":…}`."""
    async with (
        connected(profile, on_outage=tell_outage) as bubble,
        _updates(bubble, thread_id, span, grouping) as (first, updates),
    ):
        _write(_divided(first.messages, span)[1], ())
        async for update in updates:
            _write(update.upserts, update.removals)


def _write(upserts: Sequence[BubbleMessage], removals: Sequence[str]) -> None:
    for message_id in removals:
        write_json({"type": "message.removed", "id": message_id})
    for message in upserts:
        write_raw(b'{"type":"message","message":%s}' % message_json(message))


@asynccontextmanager
async def _updates(
    bubble: BubbleConnection, thread_id: str, span: Span, grouping: Grouping
) -> AsyncIterator[tuple[MessagesUpdate, AsyncIterator[MessagesUpdate]]]:
    """The first update, which reaches back as far as is wanted, and those that follow it."""
    async with bubble.follow_messages(thread_id, grouping=grouping, from_seq=span.from_seq) as view:
        first = await anext(view)
        # One more than is wanted: the oldest one may lack its beginning.
        while span.from_seq is None and len(first.messages) <= span.last and view.has_older:
            first = await view.load_older()
        yield first, _paced(view, span)


async def _paced(view: MessagesSubscription, span: Span) -> AsyncIterator[MessagesUpdate]:
    if span.stays:
        async for update in view:
            yield update
            await asyncio.sleep(_FRAME)


def _divided(messages: Sequence[BubbleMessage], span: Span) -> tuple[Sequence[BubbleMessage], Sequence[BubbleMessage]]:
    """Those before what is shown, and those to show."""
    cut = 0 if span.from_seq is not None else max(0, len(messages) - span.last)
    return messages[:cut], messages[cut:]


# --- events -------------------------------------------------------------------------------------------------------------------------


async def follow_events(profile: str | None, thread_id: str, span: Span, *, as_stored: bool) -> None:
    """Writes each event as one line, in words or `as_stored`."""
    show = _write_as_stored if as_stored else _say_event
    async with connected(profile, on_outage=tell_outage) as bubble:
        head = (await bubble.get_thread(thread_id)).head_seq
        first = span.from_seq if span.from_seq is not None else max(1, head - span.last + 1)
        if span.stays:
            async with bubble.subscribe_thread(thread_id, from_seq=first, unknown="keep") as events:
                async for event in events:
                    show(event)
        elif first <= head:
            async for event in bubble.iter_events(thread_id, from_seq=first, to_seq=head, unknown="keep"):
                show(event)


def _say_event(event: SequencedEvent) -> None:
    say(event_line(event))


def _write_as_stored(event: SequencedEvent) -> None:
    # Outside of strings a raw line break is white space, inside it does not exist: a space says the same.
    write_raw(event.text.replace(b"\n", b" ").replace(b"\r", b" "))
