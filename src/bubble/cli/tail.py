"""`bubble tail`: a thread as it grows, as messages or as the events that they are made of."""

from __future__ import annotations

from typing import Annotated

import typer

from bubble.cli.failures import UsageProblem
from bubble.cli.output import note
from bubble.cli.profiles import ProfileOption
from bubble.cli.remote import run_async
from bubble.cli.threads import GroupingOption, ThreadArgument

__all__ = ["app"]

app = typer.Typer(add_completion=False, name="tail", help="Follow a thread live.")


@app.command()
def tail(
    thread_id: ThreadArgument,
    *,
    as_json: Annotated[
        bool, typer.Option("--json", help="Messages as JSON lines: each new state of each one.")
    ] = False,
    events: Annotated[bool, typer.Option("--events", help="The log instead: one line for each event.")] = False,
    raw: Annotated[bool, typer.Option("--raw", help="The log as JSON lines, exactly as stored.")] = False,
    grouping: GroupingOption = "speaker",
    from_seq: Annotated[int | None, typer.Option("--from", metavar="SEQ", min=1, help="Begin with this seq.")] = None,
    last: Annotated[
        int | None,
        typer.Option("--last", "-n", min=0, help="Begin so many messages (or events) before the end (10)."),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow/--no-follow", help="Stay and wait for more, or stop at the end.")
    ] = True,
    profile: ProfileOption = None,
) -> None:
    """Follow a thread live, from its last messages on, until Ctrl-C; a lost connection is resumed without loss."""
    from bubble.cli import following

    if from_seq is not None and last is not None:
        raise UsageProblem("Give --from or --last, not both.")
    if [as_json, events, raw].count(True) > 1:
        raise UsageProblem("Give one of --json, --events and --raw.")
    if grouping != "speaker" and (events or raw):
        raise UsageProblem("--grouping is about messages: leave it out with --events and --raw.")
    span = following.Span(from_seq=from_seq, last=10 if last is None else last, stays=follow)
    if events or raw:
        work = following.follow_events(profile, thread_id, span, as_stored=raw)
    elif as_json:
        work = following.follow_json(profile, thread_id, span, grouping=grouping)
    else:
        work = following.follow_messages(profile, thread_id, span, grouping=grouping)
    try:
        run_async(work)
    except KeyboardInterrupt:
        note("Stopped following.")
