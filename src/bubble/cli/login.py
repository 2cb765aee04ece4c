"""`bubble login` and `bubble whoami`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from bubble.cli.failures import CommandError, UsageProblem, is_foreign
from bubble.cli.output import JsonOption, note, say, show_fields, show_table, write_json
from bubble.cli.profiles import (
    Profile,
    ProfileOption,
    check_profile_name,
    check_url,
    load_profiles,
    profile_name_for,
    save_profiles,
)
from bubble.cli.remote import connected, run_async
from bubble.protocol.errors import Unauthenticated

if TYPE_CHECKING:
    from bubble.protocol.resources import Principal

__all__ = ["app", "whoami_app"]

app = typer.Typer(add_completion=False, name="login", help="Remember a server and a token.")
whoami_app = typer.Typer(add_completion=False, name="whoami", help="Show as whom the server knows you.")


@app.command()
def login(
    url: Annotated[
        str | None, typer.Argument(metavar="[URL]", help="The server, for instance http://127.0.0.1:3000.")
    ] = None,
    *,
    token: Annotated[
        str | None,
        typer.Option("--token", help="The token; better pasted when asked for, or piped in, where nobody sees it."),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option("--profile", "-p", metavar="NAME", help="What to call it; by default the host and port."),
    ] = None,
    use: Annotated[
        str | None, typer.Option("--use", metavar="NAME", help="Go on with a profile that is known.")
    ] = None,
    forget: Annotated[str | None, typer.Option("--forget", metavar="NAME", help="Remove a profile.")] = None,
    show: Annotated[bool, typer.Option("--list", help="Show the profiles.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Remember a server and a token, so that every other command knows them."""
    if [url is not None, use is not None, forget is not None, show].count(True) != 1:
        raise UsageProblem("Give the URL of a server, or one of --use, --forget and --list.")
    if url is not None:
        _log_in(check_url(url), token=token, name=profile)
    elif use is not None:
        save_profiles(load_profiles().using(use))
        note(f'Profile "{use}" is in use.')
    elif forget is not None:
        save_profiles(load_profiles().without(forget))
        note(f'Profile "{forget}" is forgotten. Its token stays valid until it is revoked: `bubble tokens revoke`.')
    else:
        _show_profiles(as_json=as_json)


def _log_in(url: str, *, token: str | None, name: str | None) -> None:
    name = check_profile_name(name or profile_name_for(url))
    secret = (token or _read_token()).strip()
    if not secret:
        raise UsageProblem(
            "No token was given: `bubble serve` prints one at its first start, `bubble tokens mint` makes more."
        )
    try:
        principal = run_async(_ask(url, secret))
    except Unauthenticated as error:
        if is_foreign(error):
            raise
        raise CommandError(
            f"{error.message} See whether the token is whole and of this server, or mint another one."
        ) from None
    profile = Profile(url=url, token=secret, principal_id=principal.principal_id)
    path = save_profiles(load_profiles().having(name, profile))
    say(f"You are {principal.principal_id} ({principal.display_name}) on {url}.")
    note(f'Kept as profile "{name}" in {path}.')


def _read_token() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline()
    answer: str = typer.prompt("Token", hide_input=True, err=True)
    return answer


async def _ask(url: str, token: str) -> Principal:
    from bubble.client import BubbleConnection

    async with BubbleConnection(url, token=token) as bubble:
        return await bubble.who_am_i()


def _show_profiles(*, as_json: bool) -> None:
    known = load_profiles()
    rows = [(name, each.url, each.principal_id, name == known.current) for name, each in known.profiles.items()]
    if as_json:
        write_json(
            [{"name": name, "url": url, "principalId": who, "current": current} for name, url, who, current in rows]
        )
        return
    show_table(
        ("", "PROFILE", "SERVER", "PRINCIPAL"),
        (("*" if current else "", name, url, who) for name, url, who, current in rows),
        empty="No profiles yet: `bubble login URL` makes one.",
    )


@whoami_app.command()
def whoami(*, as_json: JsonOption = False, profile: ProfileOption = None) -> None:
    """Show as whom the server knows you."""
    principal = run_async(_who_am_i(profile))
    if as_json:
        write_json(principal)
        return
    show_fields(
        [
            ("principal", principal.principal_id),
            ("name", principal.display_name),
            ("kind", principal.kind),
            ("deployment role", principal.deployment_role),
            ("owner", principal.owner_principal_id),
            ("since", principal.created_at),
        ]
    )


async def _who_am_i(profile: str | None) -> Principal:
    async with connected(profile) as bubble:
        return await bubble.who_am_i()
