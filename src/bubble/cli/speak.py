"""`bubble post`: what a person says on a thread."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from bubble.cli.failures import UsageProblem
from bubble.cli.given import checked_text, read_text
from bubble.cli.output import JsonOption, note, write_json
from bubble.cli.profiles import ProfileOption
from bubble.cli.remote import connected, run_async
from bubble.cli.threads import ThreadArgument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bubble.client import AttachedFile, SentMessage

__all__ = ["app"]

app = typer.Typer(add_completion=False, name="post", help="Say something on a thread.")

_URL: Final = re.compile(r"https?://|data:", re.IGNORECASE)


@app.command()
def post(
    thread_id: ThreadArgument,
    text: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TEXT]...", help="What to say; without it, or as `-`, it is read from standard input."),
    ] = None,
    *,
    files: Annotated[
        list[str] | None,
        typer.Option("--file", "-f", metavar="FILE", help="A file to send with it, or a URL; may be repeated."),
    ] = None,
    as_json: JsonOption = False,
    profile: ProfileOption = None,
) -> None:
    """Say something: one message of yours, appended whole or not at all."""
    attached = [_attached(file) for file in files or ()]
    sent = run_async(_post(profile, thread_id, _text(text or [], may_be_empty=bool(attached)), attached))
    if as_json:
        write_json({"runId": sent.run_id, "startedSeq": sent.started_seq, "finishedSeq": sent.finished_seq})
    else:
        note(f"Said in run {sent.run_id}, seq {sent.started_seq} to {sent.finished_seq}.")


def _attached(file: str) -> AttachedFile:
    if _URL.match(file):
        return checked_text(file)
    path = Path(file)
    if not path.is_file():
        raise UsageProblem(f"{file} is not there, or it is no file.")
    checked_text(path.name)  # which is told with it
    return path


def _text(words: Sequence[str], *, may_be_empty: bool) -> str:
    text = checked_text(" ".join(words))
    if text == "-" or not (text or may_be_empty):
        text = read_text(asks="what to say")
    if not (text or may_be_empty):
        raise UsageProblem("There is nothing to say: give the text, or pipe it in.")
    return text


async def _post(profile: str | None, thread_id: str, text: str, files: Sequence[AttachedFile]) -> SentMessage:
    async with connected(profile) as bubble:
        return await bubble.send_message(thread_id, text, files=files)
