"""`bubble watch`: one bot's live state on a thread, in words or as the events themselves."""

from __future__ import annotations

from typing import Annotated

import typer

from bubble.cli.output import note
from bubble.cli.profiles import ProfileOption
from bubble.cli.remote import run_async

__all__ = ["app"]

app = typer.Typer(add_completion=False, name="watch", help="Watch what a bot says and does.")


@app.command()
def watch(
    bot_id: Annotated[str, typer.Argument(metavar="BOT", help="The bot's principal.")],
    *,
    thread_id: Annotated[str, typer.Option("--session", metavar="THREAD", help="The thread to watch it on.")],
    as_json: Annotated[bool, typer.Option("--json", help="Each event as a JSON line with type, id and data.")] = False,
    resume: Annotated[
        str | None, typer.Option("--resume", metavar="CURSOR", help="Go on after the event that had this id.")
    ] = None,
    profile: ProfileOption = None,
) -> None:
    """Watch what a bot says and does on a thread, until Ctrl-C; a lost connection is resumed without loss."""
    from bubble.cli import watching

    try:
        run_async(watching.watch(profile, bot_id, thread_id, resume=resume, as_json=as_json))
    except KeyboardInterrupt:
        note("Stopped watching.")
