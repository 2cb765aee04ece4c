"""`bubble threads`: list, create, show and delete."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from bubble.cli.failures import UsageProblem
from bubble.cli.output import Column, JsonOption, YesOption, confirm, note, say, show_fields, show_table, write_json
from bubble.cli.profiles import ProfileOption
from bubble.cli.remote import connected, run_async, take

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bubble.protocol.errors import BubbleError
    from bubble.protocol.resources import JoinPolicy, Metadata, Run, Thread

__all__ = ["GroupingOption", "ThreadArgument", "app"]

app = typer.Typer(add_completion=False, name="threads", help="List, create, show and delete threads.")

ThreadArgument: TypeAlias = Annotated[str, typer.Argument(metavar="THREAD", help="The thread's id.")]
GroupingOption: TypeAlias = Annotated[
    Literal["speaker", "run"],
    typer.Option("--grouping", help="`speaker`: who said what when; `run`: each run in one piece."),
]


@app.command("list")
def list_threads(
    *,
    query: Annotated[str | None, typer.Option("--query", "-q", help="Only those with this in title or id.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="At most so many.")] = 50,
    as_json: JsonOption = False,
    profile: ProfileOption = None,
) -> None:
    """The threads you can see, latest activity first."""
    threads = run_async(_list(profile, query=query, limit=limit))
    if as_json:
        write_json(threads)
        return
    show_table(
        (
            Column("THREAD"),
            "TITLE",
            Column("EVENTS"),
            Column("LAST ACTIVE", "time", from_width=90),
            Column("YOUR ROLE"),
        ),
        ((each.thread_id, each.title, each.head_seq, each.last_activity_at, each.role) for each in threads),
        empty="There is no thread here yet: `bubble threads create` makes one.",
    )


async def _list(profile: str | None, *, query: str | None, limit: int) -> list[Thread]:
    async with connected(profile) as bubble:
        return await take(bubble.list_threads(query=query, limit=min(limit, 1_000)), limit)


@app.command("create")
def create_thread(
    *,
    title: Annotated[str | None, typer.Option("--title", "-t", help="What it is called.")] = None,
    thread_id: Annotated[str | None, typer.Option("--id", help="Its id; only administrators may choose one.")] = None,
    join: Annotated[
        Literal["invite", "open"], typer.Option("--join", help="`open` lets anybody join who can log in.")
    ] = "invite",
    participants: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="PRINCIPAL[=ROLE]",
            help="Takes part from the start; as `participant` if no role is given.",
        ),
    ] = None,
    metadata: Annotated[
        str | None, typer.Option("--metadata", metavar="JSON", help="An object to keep with it.")
    ] = None,
    as_json: JsonOption = False,
    profile: ProfileOption = None,
) -> None:
    """Make a thread of which you are the owner; prints its id."""
    thread = run_async(
        _create(
            profile,
            thread_id=thread_id,
            title=title,
            join_policy=join,
            participants=[_participant(text) for text in participants or ()],
            metadata=_object(metadata),
        )
    )
    if as_json:
        write_json(thread)
    else:
        say(thread.thread_id)


async def _create(
    profile: str | None,
    *,
    thread_id: str | None,
    title: str | None,
    join_policy: JoinPolicy,
    participants: list[tuple[str, str]],
    metadata: Metadata | None,
) -> Thread:
    from bubble.protocol.errors import BubbleError

    async with connected(profile) as bubble:
        try:
            return await bubble.create_thread(
                thread_id=thread_id,
                title=title,
                join_policy=join_policy,
                participants=dict(participants),
                metadata=metadata,
            )
        except BubbleError as error:
            raise _with_hint(error, [principal_id for principal_id, _ in participants]) from None


def _with_hint(error: BubbleError, principal_ids: Sequence[str]) -> Exception:
    # An id may have a colon, so only that nobody is called like that tells that a role was meant.
    for each in principal_ids:
        name, colon, role = each.rpartition(":")
        if colon and f'"{each}"' in error.message:
            return UsageProblem(f"{error.message} A role stands behind an equals sign: --with {name}={role}.")
    return error


def _participant(text: str) -> tuple[str, str]:
    principal_id, _, role = text.partition("=")
    return principal_id, role or "participant"


def _object(text: str | None) -> Metadata | None:
    if text is None:
        return None
    try:
        value = json.loads(text)
    except ValueError as error:
        raise UsageProblem(f"--metadata is not JSON: {error}.") from None
    if not isinstance(value, dict):
        raise UsageProblem("--metadata must be a JSON object.")
    return value


@app.command("show")
def show_thread(thread_id: ThreadArgument, *, as_json: JsonOption = False, profile: ProfileOption = None) -> None:
    """One thread: its state, and which runs are open on it."""
    thread, runs = run_async(_show(profile, thread_id))
    if as_json:
        write_json({"thread": thread, "openRuns": runs})
        return
    show_fields(
        [
            ("thread", thread.thread_id),
            ("title", thread.title),
            ("events", thread.head_seq),
            ("join policy", thread.join_policy),
            ("your role", thread.role),
            ("created", thread.created_at),
            ("last activity", thread.last_activity_at),
            *(("metadata", json.dumps(thread.metadata)) for _ in range(1) if isinstance(thread.metadata, dict)),
            *(("open run", f"{run.run_id} of {run.principal_id} since {run.started_at}") for run in runs),
        ]
    )


async def _show(profile: str | None, thread_id: str) -> tuple[Thread, list[Run]]:
    async with connected(profile) as bubble:
        thread = await bubble.get_thread(thread_id)
        return thread, await take(bubble.list_runs(thread_id, state="open"), 100)


@app.command("delete")
def delete_thread(thread_id: ThreadArgument, *, yes: YesOption = False, profile: ProfileOption = None) -> None:
    """Delete a thread with everything said on it, for good."""
    thread = run_async(_get(profile, thread_id))
    title = f' "{thread.title}"' if isinstance(thread.title, str) else ""
    confirm(f"Delete thread {thread_id}{title} and its {thread.head_seq} events for good?", yes=yes)
    run_async(_delete(profile, thread_id))
    note(f"Thread {thread_id} is gone.")


async def _get(profile: str | None, thread_id: str) -> Thread:
    async with connected(profile) as bubble:
        return await bubble.get_thread(thread_id)


async def _delete(profile: str | None, thread_id: str) -> None:
    async with connected(profile) as bubble:
        await bubble.delete_thread(thread_id)
