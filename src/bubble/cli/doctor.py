"""`bubble doctor`: what is wrong, one sentence each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import typer

from bubble.cli.checks import Finding, local_findings, server_findings
from bubble.cli.failures import UsageProblem
from bubble.cli.options import ConfigOption, DataOption, HostOption, PortOption, StoreOption, settings
from bubble.cli.output import JsonOption, say, write_json
from bubble.cli.profiles import ProfileOption, resolve_target
from bubble.cli.reef import ReefConfigOption, reef_config
from bubble.cli.remote import run_async

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["app"]

app = typer.Typer(
    add_completion=False, name="doctor", help="Find out what is wrong with this installation or its server."
)

_MARKS: Final = {
    "ok": ("ok", ""),
    "warning": ("warn", "yellow"),
    "failed": ("FAILED", "bold red"),
    "skipped": ("-", "dim"),
}


@app.callback(invoke_without_command=True)
def doctor(
    context: typer.Context,
    *,
    config: ConfigOption = None,
    data: DataOption = None,
    store: StoreOption = None,
    host: HostOption = None,
    port: PortOption = None,
    as_json: JsonOption = False,
    profile: ProfileOption = None,
) -> None:
    """Look at this installation and at the server you are logged in to; exit code 1 if something is wrong."""
    if context.invoked_subcommand is not None:
        return
    findings = [
        *_local(config=config, data=data, store=store, host=host, port=port),
        *_remote(profile),
    ]
    _show(findings, as_json=as_json)


@app.command("reef", help="Look at a reef: its agent's card, how it is spoken to, the bot's identity, the store.")
def doctor_reef(*, config: ReefConfigOption = None, as_json: JsonOption = False) -> None:
    """The same for a reef."""
    from bubble.cli.reef_checks import reef_findings

    _show(run_async(reef_findings(reef_config(config))), as_json=as_json)


def _show(findings: list[Finding], *, as_json: bool) -> None:
    if as_json:
        write_json([{"check": each.check, "state": each.state, "sentence": each.sentence} for each in findings])
    else:
        for each in findings:
            mark, style = _MARKS[each.state]
            say(f"{mark:>6}  {each.check:<9} {each.sentence}", style=style or None)
    if any(each.state == "failed" for each in findings):
        raise typer.Exit(1)


def _local(
    *, config: Path | None, data: Path | None, store: str | None, host: str | None, port: int | None
) -> list[Finding]:
    try:
        chosen = settings(config=config, data=data, store=store, host=host, port=port)
        return list(local_findings(chosen))
    except UsageProblem as error:
        return [Finding(check="settings", state="failed", sentence=str(error))]


def _remote(profile: str | None) -> list[Finding]:
    try:
        target = resolve_target(profile)
    except UsageProblem as error:
        if profile is not None:
            raise
        return [Finding(check="server", state="skipped", sentence=str(error))]
    return run_async(server_findings(target))
