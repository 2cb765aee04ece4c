"""`bubble export` and `bubble import`: a thread as a file, and back (see `exported`)."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Final

import typer
from msgspec import UNSET, structs

from bubble.cli.exported import ExportedGrant, ExportReader, ExportWriter, Header
from bubble.cli.failures import CommandError
from bubble.cli.output import JsonOption, note, progress, write_json
from bubble.cli.profiles import ProfileOption
from bubble.cli.remote import connected, run_async
from bubble.cli.threads import ThreadArgument
from bubble.protocol.errors import Conflict, NotFound
from bubble.protocol.timestamps import format_ms, system_clock

if TYPE_CHECKING:
    from bubble.client import BubbleConnection
    from bubble.protocol.events import SequencedEvent
    from bubble.protocol.resources import Thread

__all__ = ["export_app", "import_app"]

export_app = typer.Typer(add_completion=False, name="export", help="Write a thread to a file.")
import_app = typer.Typer(add_completion=False, name="import", help="Make a thread from an exported file.")

_STANDARD: Final = "-"


@export_app.command()
def export_thread(
    thread_id: ThreadArgument,
    *,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Where to; THREAD.jsonl by default, `-` is standard output."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if there is one.")] = False,
    profile: ProfileOption = None,
) -> None:
    """Write a thread to a file: JSON lines with a header and checksums, whole or not at all."""
    target = output or f"{thread_id}.jsonl"
    if target != _STANDARD and not force and Path(target).exists():
        raise CommandError(f"{target} exists: add --force to replace it, or name another file with --output.")
    with _written_whole(target) as file:
        events = run_async(_export(profile, thread_id, file))
    note(f"{events} events of {thread_id} are in {'standard output' if target == _STANDARD else target}.")


@contextmanager
def _written_whole(target: str) -> Iterator[IO[bytes]]:
    if target == _STANDARD:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(target)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


async def _export(profile: str | None, thread_id: str, file: IO[bytes]) -> int:
    async with connected(profile) as bubble:
        thread = await bubble.get_thread(thread_id)
        writer = ExportWriter()
        file.write(writer.header(await _header(bubble, thread)))
        with progress("Exporting", total=thread.head_seq) as steps:
            if thread.head_seq:
                async for event in bubble.iter_events(thread_id, from_seq=1, to_seq=thread.head_seq, unknown="keep"):
                    file.write(writer.event(event.text))
                    steps.advance()
        if steps.done != thread.head_seq:
            raise CommandError(f"The server gave {steps.done} of {thread.head_seq} events; nothing was written.")
        file.write(writer.end())
        return thread.head_seq


async def _header(bubble: BubbleConnection, thread: Thread) -> Header:
    return Header(
        thread_id=thread.thread_id,
        head_seq=thread.head_seq,
        exported_at=format_ms(system_clock()),
        join_policy=thread.join_policy,
        title=None if thread.title is UNSET else thread.title,
        metadata=None if thread.metadata is UNSET else thread.metadata,
        grants=[
            ExportedGrant(principal_id=grant.principal_id, role=grant.role)
            async for grant in bubble.list_grants(thread.thread_id)
        ],
    )


@import_app.command()
def import_thread(
    file: Annotated[str, typer.Argument(metavar="FILE", help="What `bubble export` wrote; `-` is standard input.")],
    *,
    thread_id: Annotated[
        str | None, typer.Option("--as", metavar="THREAD", help="Another id for the new thread.")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Only see whether the file is whole.")] = False,
    without_grants: Annotated[
        bool, typer.Option("--without-grants", help="Let nobody in but yourself: no role comes back.")
    ] = False,
    as_json: JsonOption = False,
    profile: ProfileOption = None,
) -> None:
    """Make a thread from an exported file, with the same seqs, times, authors and grants (for administrators).

    A bot that gets its role back may answer the old messages again. With --without-grants the thread is yours alone, and nobody sees it
    until you let them in.
    """
    header, events = _read(file)
    if check:
        note(f"The file is whole: {len(events)} events of {header.thread_id}, exported {header.exported_at}.")
        return
    if without_grants:
        header = structs.replace(header, grants=())
    thread, granted, missing = run_async(
        _import(profile, thread_id or header.thread_id, header, events, keep_participants=not without_grants)
    )
    for principal_id in missing:
        note(
            f"{principal_id} is not known here and got no role; `bubble principals create {principal_id}` registers it."
        )
    if as_json:
        write_json(thread)
    else:
        roles = _only_the_owner(thread) if without_grants else _restored_grants(granted)
        note(f"{thread.head_seq} events are on {thread.thread_id}; {roles}")


def _only_the_owner(thread: Thread) -> str:
    others = "anybody may join it" if thread.join_policy == "open" else "nobody else is let in"
    return f"it is yours alone, {others} (`bubble grants put`)."


def _restored_grants(granted: int) -> str:
    restored = "1 grant was restored" if granted == 1 else f"{granted} grants were restored"
    return f"{restored}, so bots among them may answer old messages (`bubble grants list`, `bubble grants remove`)."


def _read(file: str) -> tuple[Header, Sequence[SequencedEvent]]:
    if file == _STANDARD:
        return _read_lines(sys.stdin.buffer)
    with Path(file).open("rb") as lines:
        return _read_lines(lines)


def _read_lines(lines: IO[bytes]) -> tuple[Header, Sequence[SequencedEvent]]:
    reader = ExportReader(lines)
    events: list[SequencedEvent] = []
    with progress("Reading", total=reader.header.head_seq) as steps:
        for event in reader.events():
            events.append(event)
            steps.advance()
    return reader.header, events


async def _import(
    profile: str | None,
    thread_id: str,
    header: Header,
    events: Sequence[SequencedEvent],
    *,
    keep_participants: bool,
) -> tuple[Thread, int, Sequence[str]]:
    async with connected(profile) as bubble:
        thread = await bubble.import_thread(
            thread_id,
            events,
            title=header.title,
            join_policy=header.join_policy,
            metadata=header.metadata,
            owner=await _owner(bubble, header),
            keep_participants=keep_participants,
        )
        # Owners first: the last owner of a thread, maybe the importer, cannot be given a smaller role.
        grants = sorted(header.grants, key=lambda grant: grant.role != "owner")
        missing = [grant.principal_id for grant in grants if not await _restored(bubble, thread_id, grant)]
        # Counted there: the server also makes grants of who joined in the events.
        granted = [grant.principal_id async for grant in bubble.list_grants(thread_id)]
        return thread, len(granted), missing


async def _owner(bubble: BubbleConnection, header: Header) -> str | None:
    # The first of the thread's owners that is known here; where none is, the importer becomes the owner.
    for grant in header.grants:
        if grant.role == "owner":
            try:
                return (await bubble.get_principal(grant.principal_id)).principal_id
            except NotFound:
                continue
    return None


async def _restored(bubble: BubbleConnection, thread_id: str, grant: ExportedGrant) -> bool:
    try:
        await bubble.put_grant(thread_id, grant.principal_id, grant.role)
    except NotFound:
        return False
    except Conflict:  # nobody else is an owner, so the importer stays one
        return True
    return True
