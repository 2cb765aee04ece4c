"""`bubble tail`: a thread as it grows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bubble.cli.eventlines import event_line
from bubble.cli.failures import UsageProblem
from bubble.cli.output import note, say, write_raw
from bubble.cli.profiles import ProfileOption
from bubble.cli.remote import connected, run_async, tell_outage
from bubble.cli.threads import ThreadArgument

if TYPE_CHECKING:
    from bubble.client import BubbleConnection
    from bubble.protocol.events import SequencedEvent

__all__ = ["app"]

app = typer.Typer(add_completion=False, name="tail", help="Follow a thread live.")


@app.command()
def tail(
    thread_id: ThreadArgument,
    *,
    raw: Annotated[bool, typer.Option("--raw", help="Events as JSON lines, exactly as stored.")] = False,
    from_seq: Annotated[int | None, typer.Option("--from", metavar="SEQ", min=1, help="Begin with this seq.")] = None,
    last: Annotated[
        int | None, typer.Option("--last", "-n", min=0, help="Begin so many events before the end (10).")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow/--no-follow", help="Stay and wait for more, or stop at the end.")
    ] = True,
    profile: ProfileOption = None,
) -> None:
    """Follow a thread live, from its last events on, until Ctrl-C; a lost connection is resumed without loss."""
    if from_seq is not None and last is not None:
        raise UsageProblem("Give --from or --last, not both.")
    try:
        run_async(
            _tail(profile, thread_id, raw=raw, from_seq=from_seq, last=10 if last is None else last, follow=follow)
        )
    except KeyboardInterrupt:
        note("Stopped following.")


async def _tail(
    profile: str | None, thread_id: str, *, raw: bool, from_seq: int | None, last: int, follow: bool
) -> None:
    async with connected(profile, on_outage=tell_outage) as bubble:
        head = (await bubble.get_thread(thread_id)).head_seq
        first = from_seq if from_seq is not None else max(1, head - last + 1)
        if follow:
            await _follow(bubble, thread_id, first, raw=raw)
        elif first <= head:
            async for event in bubble.iter_events(thread_id, from_seq=first, to_seq=head, unknown="keep"):
                _show(event, raw=raw)


async def _follow(bubble: BubbleConnection, thread_id: str, first: int, *, raw: bool) -> None:
    async with bubble.subscribe_thread(thread_id, from_seq=first, unknown="keep") as events:
        async for event in events:
            _show(event, raw=raw)


def _show(event: SequencedEvent, *, raw: bool) -> None:
    if raw:
        write_raw(_in_one_line(event.text))
    else:
        say(event_line(event))


def _in_one_line(text: bytes) -> bytes:
    # Outside of strings a raw line break is white space, inside it does not exist: a space says the same.
    return text.replace(b"\n", b" ").replace(b"\r", b" ")
