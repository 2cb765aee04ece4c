"""`bubble reef`: lets an A2A agent take part in threads."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from bubble.cli.failures import CommandError, UsageProblem
from bubble.cli.output import note, write_json
from bubble.cli.stdin import UntilStdinEndsOption, stop_when_stdin_ends

if TYPE_CHECKING:
    from bubble.reef.settings import ReefConfig

__all__ = ["ReefConfigOption", "app", "reef_config"]

app = typer.Typer(add_completion=False, name="reef", help="Let an A2A agent take part, as a bot.")

ReefConfigOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="The configuration; without it the variables BUBBLE_REEF_… say all."),
]


@app.command()
def reef(
    *,
    config: ReefConfigOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="One line of JSON on standard output once it knows its threads.")
    ] = False,
    until_stdin_ends: UntilStdinEndsOption = False,
) -> None:
    """Let the A2A agent of the configuration take part in every thread that its bot is a participant of, until Ctrl-C or SIGTERM."""
    chosen = reef_config(config)
    if until_stdin_ends:
        stop_when_stdin_ends()
    _run(chosen, as_json=as_json)


def _run(chosen: ReefConfig, *, as_json: bool) -> None:
    from bubble.amphibian.config import ConfigError
    from bubble.amphibian.launcher import log_to_stderr, run_until_signalled
    from bubble.protocol.errors import BubbleError
    from bubble.reef.running import attend

    def tell() -> None:
        if as_json:
            write_json({"principalId": chosen.bubble.principal_id, "pid": os.getpid()})
        else:
            note(f"{chosen.bubble.principal_id} is attending; Ctrl-C stops it.")

    log_to_stderr()
    try:
        run_until_signalled(lambda stop: attend(chosen, stop=stop, on_ready=tell))
    except ConfigError as error:
        raise UsageProblem(str(error)) from None
    except BubbleError as error:
        raise CommandError(error.message) from None


def reef_config(file: Path | None) -> ReefConfig:
    """The configuration; `UsageProblem` names the key that is wrong."""
    from bubble.amphibian.config import ConfigError, read_config
    from bubble.reef.settings import NAME, ReefConfig

    try:
        return read_config(ReefConfig, name=NAME, file=file, environ=os.environ)
    except ConfigError as error:
        raise UsageProblem(str(error)) from None
