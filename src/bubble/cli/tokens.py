"""`bubble tokens`: list, mint and revoke."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Final

import typer

from bubble.cli.failures import UsageProblem
from bubble.cli.grants import PrincipalArgument
from bubble.cli.output import Column, JsonOption, note, say, show_table, write_json
from bubble.cli.profiles import ProfileOption
from bubble.cli.remote import connected, run_async

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bubble.protocol.resources import MintedToken, Token

__all__ = ["app"]

app = typer.Typer(add_completion=False, name="tokens", help="List, mint and revoke tokens.")

_UNITS: Final = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


@app.command("list")
def list_tokens(principal_id: PrincipalArgument, *, as_json: JsonOption = False, profile: ProfileOption = None) -> None:
    """A principal's tokens, newest first; their secrets are kept nowhere."""
    tokens = run_async(_list(profile, principal_id))
    if as_json:
        write_json(tokens)
        return
    show_table(
        (
            Column("TOKEN"),
            "NAME",
            Column("CREATED", "time", from_width=100),
            Column("LAST USED", "time", from_width=100),
            Column("EXPIRES", "time", from_width=80),
            Column("REVOKED", "time"),
            "ONLY FOR",
        ),
        (
            (
                each.token_id,
                each.name,
                each.created_at,
                each.last_used_at,
                each.expires_at,
                each.revoked_at,
                _narrowing(each),
            )
            for each in tokens
        ),
        empty="No tokens.",
    )


async def _list(profile: str | None, principal_id: str) -> Sequence[Token]:
    async with connected(profile) as bubble:
        return await bubble.list_tokens(principal_id)


def _narrowing(token: Token) -> str | None:
    words = [*(token.capabilities or ()), *(f"thread {thread}" for thread in token.threads or ())]
    return ", ".join(words) or None


@app.command("mint")
def mint_token(
    principal_id: PrincipalArgument,
    *,
    name: Annotated[str | None, typer.Option("--name", help="What it is for.")] = None,
    expires: Annotated[
        str | None,
        typer.Option("--expires", metavar="TIME", help="When it ends: 30m, 12h, 90d, 4w, or an RFC 3339 time."),
    ] = None,
    capabilities: Annotated[
        list[str] | None,
        typer.Option("--capability", metavar="NAME", help="Only this may be done with it; repeatable."),
    ] = None,
    threads: Annotated[
        list[str] | None, typer.Option("--thread", metavar="THREAD", help="Only on this thread; repeatable.")
    ] = None,
    as_json: JsonOption = False,
    profile: ProfileOption = None,
) -> None:
    """Make a new token; its secret is printed this once."""
    expires_at = expiry(expires, now=datetime.now(UTC)) if expires else None
    token = run_async(
        _mint(profile, principal_id, name=name, expires_at=expires_at, capabilities=capabilities, threads=threads)
    )
    if as_json:
        write_json(token)
        return
    say(token.token)
    note(f"This is the only time it is shown. Its id is {token.token_id}.")


async def _mint(
    profile: str | None,
    principal_id: str,
    *,
    name: str | None,
    expires_at: str | None,
    capabilities: list[str] | None,
    threads: list[str] | None,
) -> MintedToken:
    async with connected(profile) as bubble:
        return await bubble.mint_token(
            principal_id, name=name, expires_at=expires_at, capabilities=capabilities or None, threads=threads or None
        )


def expiry(text: str, *, now: datetime) -> str:
    """`90d` from `now`, or a moment given in RFC 3339, as the wire says it; `UsageProblem` if it is neither or past."""
    moment = _moment(text, now)
    if moment is None or moment <= now:
        raise UsageProblem(
            f'--expires "{text}" must be like 30m, 12h, 90d, 4w or 2030-01-31T12:00:00Z, and in the future.'
        )
    utc = moment.astimezone(UTC)
    return f"{utc:%Y-%m-%dT%H:%M:%S}.{utc.microsecond // 1000:03}Z"


def _moment(text: str, now: datetime) -> datetime | None:
    try:
        if match := re.fullmatch(r"(\d{1,6})([mhdw])", text):
            return now + int(match.group(1)) * _UNITS[match.group(2)]
        moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


@app.command("revoke")
def revoke_token(
    principal_id: PrincipalArgument,
    token_id: Annotated[str, typer.Argument(metavar="TOKEN", help="The token's id, not its secret.")],
    *,
    profile: ProfileOption = None,
) -> None:
    """End a token and everything that was made with it, at once."""
    run_async(_revoke(profile, principal_id, token_id))
    note(f"Token {token_id} is revoked.")


async def _revoke(profile: str | None, principal_id: str, token_id: str) -> None:
    async with connected(profile) as bubble:
        await bubble.revoke_token(principal_id, token_id)
