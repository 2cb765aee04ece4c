"""`bubble serve`: a server that stays."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from bubble.cli.failures import CommandError, UsageProblem
from bubble.cli.options import (
    ConfigOption,
    DataOption,
    HostOption,
    InsecureOption,
    PortOption,
    PublicUrlOption,
    StoreOption,
    settings,
)
from bubble.cli.output import note, say, write_json
from bubble.cli.stdin import UntilStdinEndsOption, stop_when_stdin_ends

if TYPE_CHECKING:
    from bubble.server.running import Started
    from bubble.server.settings import Settings

__all__ = ["app"]

app = typer.Typer(add_completion=False, name="serve", help="Start a server that stays.")


@app.command()
def serve(
    *,
    config: ConfigOption = None,
    data: DataOption = None,
    store: StoreOption = None,
    host: HostOption = None,
    port: PortOption = None,
    public_url: PublicUrlOption = None,
    insecure: InsecureOption = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One line of JSON instead of the welcome, once it listens.")
    ] = False,
    login_link: Annotated[
        bool, typer.Option("--login-link", help="Print a login link also where the output is no terminal.")
    ] = False,
    until_stdin_ends: UntilStdinEndsOption = False,
) -> None:
    """Start a server that stays until Ctrl-C or SIGTERM. The data survives.

    On a terminal each start prints a link that logs a browser in as the administrator, once. The first start prints one wherever it writes
    to, and a token.

    More settings are in `bubble.toml` and in `BUBBLE_…` variables: `bubble config` shows them all.
    """
    chosen = settings(
        config=config, data=data, store=store, host=host, port=port, public_url=public_url, insecure=insecure
    )
    if until_stdin_ends:
        stop_when_stdin_ends()
    _run(chosen, as_json=as_json, with_login_link=login_link or (sys.stdout.isatty() and not as_json))


def _run(chosen: Settings, *, as_json: bool, with_login_link: bool) -> None:
    from bubble.protocol.errors import Unavailable
    from bubble.server.running import run
    from bubble.server.settings import SettingsError

    try:
        run(
            chosen,
            on_started=_announce_as_json if as_json else lambda started: _welcome(started, chosen),
            with_login_link=with_login_link,
        )
    except SettingsError as error:
        raise UsageProblem(str(error)) from None
    except Unavailable as error:  # its own store; `bubble doctor` looks at servers that run
        raise CommandError(error.message) from None
    except OSError as error:
        if error.filename is not None:
            raise
        where = f"{chosen.host}:{chosen.port}"
        raise CommandError(
            f"Cannot listen on {where} ({error.strerror or error}): choose another --port or --host."
        ) from None


def _announce_as_json(started: Started) -> None:
    link = {} if started.login_url is None else {"loginUrl": started.login_url}
    token = {} if started.first_start is None else {"token": started.first_start.token}
    write_json({"url": started.url, "port": started.port, "pid": os.getpid(), **link, **token})


def _welcome(started: Started, chosen: Settings) -> None:
    listening = _bound_address(started, chosen)
    say(f"Bubble listens on {listening}")
    if started.url != listening:
        say(f"It is reached at {started.url}")
    say(f"Data: {_where_data_is(chosen)}")
    if started.first_start is not None:
        say("")
        say("This is the first start. These are shown once and work for the administrator:")
        say(f"  log a browser in, within {_login_lifetime(chosen)}:  {started.login_url}")
        say(f"  token for everything else:            {started.first_start.token}")
        say(f"  remember it for this command:         bubble login {started.url}")
        say("")
    elif started.login_url is not None:
        say("")
        say(f"Log a browser in as the administrator, once, within {_login_lifetime(chosen)}:")
        say(f"  {started.login_url}")
        say("")
    note("Ctrl-C stops it; nothing that was acknowledged is lost.")


def _login_lifetime(chosen: Settings) -> str:
    from bubble.server.durations import duration_text

    seconds = chosen.sessions.login_lifetime
    return f"{seconds // 60:.0f} minutes" if seconds > 60 and seconds % 60 == 0 else duration_text(seconds)


def _bound_address(started: Started, chosen: Settings) -> str:
    host = f"[{chosen.host}]" if ":" in chosen.host else chosen.host
    return f"{chosen.scheme}://{host}:{started.port}"


def _where_data_is(chosen: Settings) -> str:
    if chosen.store is None:
        return str(chosen.data.absolute())
    return "in memory only, gone when it stops" if chosen.store == "memory:" else chosen.store
