"""`bubble grants`: who takes part in a thread, and in which role."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from bubble.cli.output import Column, JsonOption, note, show_table, write_json
from bubble.cli.profiles import ProfileOption
from bubble.cli.remote import connected, run_async, take
from bubble.cli.threads import ThreadArgument

if TYPE_CHECKING:
    from bubble.protocol.resources import Grant

__all__ = ["app"]

app = typer.Typer(add_completion=False, name="grants", help="Who takes part in a thread, and in which role.")

PrincipalArgument: TypeAlias = Annotated[str, typer.Argument(metavar="PRINCIPAL", help="The principal's id.")]


@app.command("list")
def list_grants(
    thread_id: Annotated[
        str | None, typer.Argument(metavar="[THREAD]", help="The thread; without it, your own grants.")
    ] = None,
    *,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="At most so many.")] = 1_000,
    as_json: JsonOption = False,
    profile: ProfileOption = None,
) -> None:
    """Who takes part in a thread; without a thread, where you take part."""
    grants = run_async(_list(profile, thread_id, limit))
    if as_json:
        write_json(grants)
        return
    of_threads = () if thread_id is not None else (Column("THREAD"),)
    show_table(
        (
            *of_threads,
            Column("PRINCIPAL"),
            "NAME",
            Column("KIND", from_width=80),
            Column("ROLE"),
            Column("GRANTED BY", from_width=80),
            Column("SINCE", "time", from_width=100),
        ),
        (
            (
                *(each.thread_id for _ in of_threads),
                each.principal_id,
                getattr(each.principal, "display_name", None),
                getattr(each.principal, "kind", None),
                each.role,
                each.granted_by,
                each.created_at,
            )
            for each in grants
        ),
        empty="No grants.",
    )


async def _list(profile: str | None, thread_id: str | None, limit: int) -> list[Grant]:
    async with connected(profile) as bubble:
        return await take(bubble.my_grants() if thread_id is None else bubble.list_grants(thread_id), limit)


@app.command("put")
def put_grant(
    thread_id: ThreadArgument,
    principal_id: PrincipalArgument,
    role: Annotated[
        str, typer.Argument(metavar="ROLE", help="`observer`, `participant`, `owner`, or a role of this server.")
    ],
    *,
    as_json: JsonOption = False,
    profile: ProfileOption = None,
) -> None:
    """Give somebody a role on a thread, or another one."""
    grant = run_async(_put(profile, thread_id, principal_id, role))
    if as_json:
        write_json(grant)
    else:
        note(f"{grant.principal_id} is {grant.role} of {grant.thread_id}.")


async def _put(profile: str | None, thread_id: str, principal_id: str, role: str) -> Grant:
    async with connected(profile) as bubble:
        return await bubble.put_grant(thread_id, principal_id, role)


@app.command("remove")
def remove_grant(thread_id: ThreadArgument, principal_id: PrincipalArgument, *, profile: ProfileOption = None) -> None:
    """Take somebody's role on a thread away; yourself, to leave it."""
    run_async(_remove(profile, thread_id, principal_id))
    note(f"{principal_id} has no role on {thread_id} any more.")


async def _remove(profile: str | None, thread_id: str, principal_id: str) -> None:
    async with connected(profile) as bubble:
        await bubble.remove_grant(thread_id, principal_id)
