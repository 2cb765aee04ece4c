"""The root of the command line: a table of commands, each loaded only when it is called.

`bubble --help` shows the table and nothing else, so it needs neither the server nor the client.
"""

from __future__ import annotations

import importlib
import io
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final, cast

import typer
from typer.core import TyperCommand, TyperGroup

from bubble import __version__
from bubble.cli.failures import exit_code_of, explain

__all__ = ["COMMANDS", "Entry", "root", "run"]

# What Typer makes of Ctrl-C.
_INTERRUPTED: Final = 130

_RUN: Final = "Run a server"
_TALK: Final = "Take part"
_MANAGE: Final = "Administer"
_KEEP: Final = "Look after data"


@dataclass(frozen=True, slots=True)
class Entry:
    """One command: where its `typer.Typer` stands (`module:attribute`), under which heading, and what it does."""

    name: str
    place: str
    panel: str
    help: str


COMMANDS: Final = (
    Entry("serve", "serve:app", _RUN, "Start a server that stays."),
    Entry("demo", "demo:app", _RUN, "See it work: people, a bot that streams, a reader that resumes."),
    Entry("reef", "reef:app", _RUN, "Let an A2A agent take part, as a bot."),
    Entry("mock-agent", "mock_agent:app", _RUN, "Run a small A2A agent to try reef with."),
    Entry("config", "config:app", _RUN, "Show the settings in effect and where each comes from."),
    Entry("doctor", "doctor:app", _RUN, "Find out what is wrong with this installation or its server."),
    Entry("bench", "bench:app", _RUN, "Measure this machine with a server of its own."),
    Entry("login", "login:app", _TALK, "Remember a server and a token."),
    Entry("whoami", "login:whoami_app", _TALK, "Show as whom the server knows you."),
    Entry("threads", "threads:app", _TALK, "List, create, show and delete threads."),
    Entry("post", "speak:app", _TALK, "Say something on a thread."),
    Entry("tail", "tail:app", _TALK, "Follow a thread live."),
    Entry("messages", "messages:app", _TALK, "Read a page of a thread's messages."),
    Entry("watch", "watch:app", _TALK, "Watch what a bot says and does."),
    Entry("approve", "deciding:approve_app", _TALK, "Approve or reject a tool call."),
    Entry("result", "results:app", _TALK, "Give a tool call its result."),
    Entry("interrupt", "deciding:interrupt_app", _TALK, "Ask a run to stop."),
    Entry("grants", "grants:app", _MANAGE, "Who takes part in a thread, and in which role."),
    Entry("principals", "principals:app", _MANAGE, "People, bots and their state."),
    Entry("tokens", "tokens:app", _MANAGE, "List, mint and revoke tokens."),
    Entry("export", "transfer:export_app", _KEEP, "Write a thread to a file."),
    Entry("import", "transfer:import_app", _KEEP, "Make a thread from an exported file."),
    Entry("db", "db:app", _KEEP, "Check, back up and migrate a store."),
)


class _Deferred(TyperCommand):
    """Stands for a command until it is called; its help text is all that is known before."""

    def __init__(self, entry: Entry) -> None:
        super().__init__(entry.name, help=entry.help, rich_help_panel=entry.panel)
        self._place = entry.place

    def make_context(
        self, info_name: str | None, args: list[str], parent: object = None, **extra: object
    ) -> typer.Context:
        module, _, attribute = self._place.partition(":")
        app: typer.Typer = getattr(importlib.import_module(f"bubble.cli.{module}"), attribute)
        real = typer.main.get_command(app)
        context = real.make_context(info_name, args, parent=cast("typer.Context | None", parent), **extra)
        return cast("typer.Context", context)


def _say_version(*, value: bool) -> None:
    if value:
        typer.echo(f"bubble {__version__}")
        raise typer.Exit


def _main(
    context: typer.Context,
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Show the version and leave.",
            callback=lambda value: _say_version(value=value),
            is_eager=True,
        ),
    ] = False,
) -> None:
    """The log that people and agents share: threads of events, durable and followed live."""
    del version
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def root() -> TyperGroup:
    """The whole command line, without any command's own module loaded."""
    app = typer.Typer(
        name="bubble",
        callback=_main,
        invoke_without_command=True,
        add_completion=True,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)  # noqa: S101 - an app with a callback is a group
    for entry in COMMANDS:
        group.add_command(_Deferred(entry))
    return group


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and gives its exit code; whatever went wrong is said in one sentence on standard error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(
            stream, io.TextIOWrapper
        ):  # a character that cannot be written is no reason to stop in the middle
            stream.reconfigure(errors="backslashreplace")
    try:
        code = root().main(arguments, prog_name="bubble", standalone_mode=False)
    except BaseException as error:  # noqa: BLE001 - the last place where an error can still become a sentence
        explain(error)
        return exit_code_of(error)
    if code == _INTERRUPTED:
        explain(KeyboardInterrupt())
        return exit_code_of(KeyboardInterrupt())
    return code if isinstance(code, int) else _flushed()


def _flushed() -> int:
    # A reader that has gone away (`bubble tail | head`) is noticed here, not by the interpreter at exit.
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        sys.stdout = None
        return 1
    return 0
