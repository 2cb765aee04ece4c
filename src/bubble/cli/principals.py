"""`bubble principals`: people, bots and their state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bubble.cli.grants import PrincipalArgument
from bubble.cli.output import Column, JsonOption, YesOption, confirm, note, show_fields, show_table, write_json
from bubble.cli.profiles import ProfileOption
from bubble.cli.remote import connected, run_async, take

if TYPE_CHECKING:
    from bubble.protocol.resources import DeploymentRole, Principal, PrincipalKind, PrincipalSummary

__all__ = ["app"]

app = typer.Typer(add_completion=False, name="principals", help="People, bots and their state.")


@app.command("list")
def list_principals(
    *,
    owner: Annotated[
        str | None, typer.Option("--owner", metavar="PRINCIPAL", help="Only the bots of this user.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="At most so many.")] = 1_000,
    as_json: JsonOption = False,
    profile: ProfileOption = None,
) -> None:
    """Everybody this server knows (for administrators); with --owner, the bots of a user."""
    principals = run_async(_list(profile, owner, limit))
    if as_json:
        write_json(principals)
        return
    show_table(
        (
            Column("PRINCIPAL"),
            "NAME",
            Column("KIND"),
            Column("DEPLOYMENT ROLE", from_width=80),
            Column("OWNER", from_width=80),
            Column("SINCE", "time", from_width=100),
            Column("DISABLED", "time"),
        ),
        (
            (
                each.principal_id,
                each.display_name,
                each.kind,
                each.deployment_role,
                each.owner_principal_id,
                each.created_at,
                each.disabled_at,
            )
            for each in principals
        ),
        empty="No principals.",
    )


async def _list(profile: str | None, owner: str | None, limit: int) -> list[Principal]:
    async with connected(profile) as bubble:
        return await take(bubble.list_principals(owner=owner, limit=min(limit, 1_000)), limit)


@app.command("create")
def create_principal(
    principal_id: PrincipalArgument,
    *,
    name: Annotated[str | None, typer.Option("--name", help="How others see it; by default its id.")] = None,
    kind: Annotated[Literal["user", "bot", "system"], typer.Option("--kind", help="What it is.")] = "user",
    owner: Annotated[
        str | None, typer.Option("--owner", metavar="PRINCIPAL", help="Whose bot it is; by default yours.")
    ] = None,
    role: Annotated[
        Literal["user", "admin"], typer.Option("--role", help="`admin` may do everything on this server.")
    ] = "user",
    as_json: JsonOption = False,
    profile: ProfileOption = None,
) -> None:
    """Register a person or a bot."""
    principal = run_async(_create(profile, principal_id, name=name or principal_id, kind=kind, owner=owner, role=role))
    if as_json:
        write_json(principal)
    else:
        note(f"{principal.principal_id} is registered; `bubble tokens mint {principal.principal_id}` lets it in.")


async def _create(
    profile: str | None,
    principal_id: str,
    *,
    name: str,
    kind: PrincipalKind,
    owner: str | None,
    role: DeploymentRole,
) -> Principal:
    async with connected(profile) as bubble:
        if kind == "bot" and owner is None:
            owner = (await bubble.who_am_i()).principal_id
        return await bubble.create_principal(
            principal_id, kind=kind, display_name=name, owner_principal_id=owner, deployment_role=role
        )


@app.command("show")
def show_principal(
    principal_id: PrincipalArgument, *, as_json: JsonOption = False, profile: ProfileOption = None
) -> None:
    """One principal; of others you see the name and the kind only, unless you are an administrator or its owner."""
    principal = run_async(_get(profile, principal_id))
    if as_json:
        write_json(principal)
        return
    names = (
        "principal_id",
        "display_name",
        "kind",
        "deployment_role",
        "owner_principal_id",
        "created_at",
        "disabled_at",
    )
    show_fields((name.removesuffix("_id").replace("_", " "), getattr(principal, name, None)) for name in names)


async def _get(profile: str | None, principal_id: str) -> Principal | PrincipalSummary:
    async with connected(profile) as bubble:
        return await bubble.get_principal(principal_id)


@app.command("update")
def update_principal(
    principal_id: PrincipalArgument,
    *,
    name: Annotated[str | None, typer.Option("--name", help="How others see it.")] = None,
    role: Annotated[
        Literal["user", "admin"] | None, typer.Option("--role", help="`admin` may do everything on this server.")
    ] = None,
    as_json: JsonOption = False,
    profile: ProfileOption = None,
) -> None:
    """Change a principal's name or deployment role."""
    principal = run_async(_update(profile, principal_id, name=name, role=role))
    if as_json:
        write_json(principal)
    else:
        note(f"{principal.principal_id} is {principal.display_name}, {principal.deployment_role}.")


@app.command("disable")
def disable_principal(
    principal_id: PrincipalArgument, *, yes: YesOption = False, profile: ProfileOption = None
) -> None:
    """Refuse a principal from now on: its tokens end, its connections are closed."""
    confirm(f"Disable {principal_id} and close its connections?", yes=yes)
    run_async(_update(profile, principal_id, disabled=True))
    note(f"{principal_id} is disabled; `bubble principals enable {principal_id}` lets it in again.")


@app.command("enable")
def enable_principal(principal_id: PrincipalArgument, *, profile: ProfileOption = None) -> None:
    """Let a disabled principal in again."""
    run_async(_update(profile, principal_id, disabled=False))
    note(f"{principal_id} is enabled.")


@app.command("disconnect")
def disconnect_principal(principal_id: PrincipalArgument, *, profile: ProfileOption = None) -> None:
    """Close a principal's connections now; a valid token lets it come back."""
    run_async(_disconnect(profile, principal_id))
    note(f"The connections of {principal_id} are closed.")


async def _update(
    profile: str | None,
    principal_id: str,
    *,
    name: str | None = None,
    role: DeploymentRole | None = None,
    disabled: bool | None = None,
) -> Principal:
    async with connected(profile) as bubble:
        return await bubble.update_principal(principal_id, display_name=name, deployment_role=role, disabled=disabled)


async def _disconnect(profile: str | None, principal_id: str) -> None:
    async with connected(profile) as bubble:
        await bubble.close_connections(principal_id)
